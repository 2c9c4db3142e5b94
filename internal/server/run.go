package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Run serves until the context ends, then drains: readiness off, stop
// claiming, finish or hand back what is under way, last commit, close. It
// returns nil after a clean stop.
func (n *Node) Run(ctx context.Context) error {
	claiming, stopClaiming := context.WithCancel(context.WithoutCancel(ctx))
	acting, stopActing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopClaiming()
	defer stopActing()
	n.ready.begin()
	failed := make(chan error, 2)
	var loops sync.WaitGroup
	loops.Go(func() { n.worker.Run(claiming, acting) })
	loops.Go(func() { n.worker.Sweep(claiming) })
	loops.Go(func() { n.capturer.Run(claiming, acting) })
	loops.Go(func() { n.replayer.Run(claiming) })
	loops.Go(func() { n.watch.Run(claiming) })
	loops.Go(func() { n.desk.Run(claiming) })
	loops.Go(func() { n.console.Run(claiming) })
	loops.Go(func() { n.disk.run(claiming) })
	loops.Go(func() { n.remover.Run(claiming) })
	loops.Go(func() { n.hindrance.run(claiming) })
	loops.Go(func() { n.beats(claiming) })
	loops.Go(func() {
		if err := n.outbox.Run(context.WithoutCancel(ctx)); err != nil {
			n.log.Error("deliveries stopped", "error", err)
		}
	})
	go func() { failed <- n.apiServer.Serve(n.apiListener) }()
	go func() { failed <- n.adminServer.Serve(n.adminListener) }()
	watched, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	n.systemd.Ready(n.serving())
	go n.systemd.Watch(watched, n.progressed)

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	drain := n.loaded.Load().Drain
	n.log.Info("stopping", "limit", drain.String())
	n.ready.end()
	n.systemd.Stopping("Finishing what is under way, for " + drain.String() + " at most")
	n.watch.Close()
	n.desk.Close()
	n.console.Close()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	stopClaiming()
	n.beat(limit)
	// At once: a client that dawdles over its request must not use up the time
	// of what is on the wire.
	var edges sync.WaitGroup
	edges.Go(func() { n.shutdown(limit) })
	n.finish(limit, stopActing, &loops)
	edges.Wait()
	return errors.Join(err, n.close())
}

// serving says in one line what the node does.
func (n *Node) serving() string { return "Serving " + n.APIURL() + ", admin " + n.AdminURL() }

// progressed is when the loop that is slowest was last seen to work: those that
// claim turn every second even where nothing is due and where the ledger does
// not answer, and a batch ends in seconds or fails.
func (n *Node) progressed() time.Time {
	return slices.MinFunc([]time.Time{n.worker.Turned(), n.outbox.Turned(), n.store.Turned()}, time.Time.Compare)
}

// shutdown lets requests under way be answered.
func (n *Node) shutdown(limit context.Context) {
	for _, s := range [...]*http.Server{n.apiServer, n.adminServer} {
		if err := s.Shutdown(limit); err != nil {
			n.log.Warn("requests were cut at the end of the drain", "error", err)
			_ = s.Close()
		}
	}
}

// finish waits for what is on the wire; near the end of the limit it is given
// up, and its leases say so to whoever starts next.
func (n *Node) finish(limit context.Context, stopActing func(), loops *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { loops.Wait(); close(done) }()
	deadline, _ := limit.Deadline()
	patience, cancel := context.WithTimeout(limit, time.Until(deadline)*3/4)
	defer cancel()
	if err := n.outbox.Drain(patience); err != nil {
		n.log.Warn("deliveries were cut at the end of the drain", "error", err)
	}
	select {
	case <-done:
		return
	case <-patience.Done():
	}
	stopActing()
	select {
	case <-done:
	case <-limit.Done():
		n.log.Warn("work was given up at the end of the drain")
	}
}

func (n *Node) close() error {
	var errs []error
	for _, l := range []interface{ Close() error }{n.apiListener, n.adminListener} {
		if l != nil {
			_ = l.Close()
		}
	}
	if n.client != nil {
		n.client.Close()
	}
	if n.store != nil {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, n.store.Drain(limit))
	}
	if n.files != nil {
		errs = append(errs, n.files.Close())
	}
	n.leave()
	if n.driver != nil {
		errs = append(errs, n.driver.Close())
	}
	return errors.Join(errs...)
}
