package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// strike carries out the plan of faults, with work coming in all along, and
// returns when the last fault has passed and all work is handed in.
func (r *run) strike(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var under sync.WaitGroup
	defer under.Wait()
	for i, s := range r.steps {
		// Work is handed in in step with the faults, so that each meets some.
		if err := r.load.release(ctx, (i+1)*r.plan.Len()/len(r.steps)); err != nil {
			return err
		}
		if err := pause(ctx, s.After); err != nil {
			return err
		}
		n, err := r.victim(ctx, s.Node)
		if err != nil {
			return err
		}
		r.tell("fault %d of %d: %s", i+1, len(r.steps), s.words(n))
		under.Go(func() {
			defer n.faulty.Unlock()
			if err := r.befall(ctx, n, s); err != nil {
				cancel(fmt.Errorf("fault %d: %w", i+1, err))
			}
		})
	}
	under.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.load.wait(ctx)
}

// victim waits for a node that nothing befalls, and locks it.
func (r *run) victim(ctx context.Context, first int) (*node, error) {
	nodes := r.cluster.nodes
	for {
		for i := range nodes {
			if n := nodes[(first+i)%len(nodes)]; n.faulty.TryLock() {
				return n, nil
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// words say what befalls whom.
func (s Step) words(n *node) string {
	whom := fmt.Sprint("node ", n.number)
	if s.Fault == Terminate || s.Fault == Restart {
		whom = "the database"
	}
	if s.For == 0 {
		return fmt.Sprintf("%s: %s", whom, s.Fault)
	}
	return fmt.Sprintf("%s: %s for %s", whom, s.Fault, s.For)
}

// befall does it, and returns when it has passed.
func (r *run) befall(ctx context.Context, n *node, s Step) error {
	switch s.Fault {
	case Kill:
		n.kill()
		return n.start(ctx)
	case KillStarting:
		n.kill()
		if _, err := n.launch(ctx); err != nil {
			return err
		}
		err := pause(ctx, s.For)
		n.kill()
		return errors.Join(err, n.start(ctx))
	case KillDraining:
		n.signal(syscall.SIGTERM)
		err := pause(ctx, s.For)
		n.kill()
		return errors.Join(err, n.start(ctx))
	case Stop:
		// Where the database is away, the drain's limit ends it, which is told by the
		// status 1; anything else is none of its own ends.
		err := n.stop()
		if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() == 1 {
			err = nil
		}
		if err != nil {
			return err
		}
		return n.start(ctx)
	case Freeze, Doze:
		n.signal(syscall.SIGSTOP)
		defer n.signal(syscall.SIGCONT)
		return pause(ctx, s.For)
	case Cut:
		n.database.cut()
		return nil
	case Slow:
		n.database.slow(100 * time.Millisecond)
		defer n.database.slow(0)
		return pause(ctx, s.For)
	case Away:
		n.database.block(true)
		defer n.database.block(false)
		return pause(ctx, s.For)
	case Terminate:
		return r.cluster.database.terminate(ctx)
	case Restart:
		return r.restart(ctx)
	case Full:
		return r.fill(ctx, n, s.For)
	}
	return fmt.Errorf("no such fault: %s", s.Fault)
}

// restart has the database server killed and started again, one at a time.
func (r *run) restart(ctx context.Context) error {
	r.restarting.Lock()
	defer r.restarting.Unlock()
	err := r.o.Restart(ctx)
	if err != nil {
		return fmt.Errorf("restart the database: %w", err)
	}
	r.tell("the database is back")
	return nil
}

// fill lets no file of the node grow for a while.
func (r *run) fill(ctx context.Context, n *node, lasting time.Duration) error {
	largest := int64(0)
	files, err := filepath.Glob(filepath.Join(n.data, "*"))
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && !info.IsDir() {
			largest = max(largest, info.Size())
		}
	}
	if err != nil {
		return err
	}
	lift, err := limitFiles(n.pid(), uint64(largest))
	if err != nil {
		return err
	}
	return errors.Join(pause(ctx, lasting), lift())
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
