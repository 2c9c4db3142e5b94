package simulate

import (
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"github.com/pawlhq/pawl/internal/work"
)

// loop is the shell around a node's claims: it sleeps until something may be
// due.
type loop struct {
	claim func() (claimed int)
	kinds []ledger.QueueKind
	// at is when it will claim next, 0 for never; round tells an old alarm from
	// the present one.
	at    pawl.Time
	round int
	// busy: a claim is under way; again is when to claim after it.
	busy  bool
	again pawl.Time
	// fruitless counts claims in a row that found nothing although something
	// seemed to be due.
	fruitless int
}

func (n *node) loopOf(kind ledger.QueueKind) *loop {
	if kind == ledger.DeliveryQueue {
		return &n.sending
	}
	return &n.working
}

// wake has the loop claim at a moment, or earlier if it would anyway.
func (n *node) wake(l *loop, at pawl.Time) {
	w := n.world
	at = max(at, w.now)
	switch {
	case !n.up || n.draining || at >= pawl.Never:
		return
	case l.busy:
		if l.again == 0 || at < l.again {
			l.again = at
		}
		return
	case l.at != 0 && l.at <= at:
		return
	}
	l.at = at
	l.round++
	round := l.round
	n.after(at.Sub(w.now), func() {
		if l.round == round && !n.draining {
			n.turn(l)
		}
	})
}

// turn claims once and says when to claim again.
func (n *node) turn(l *loop) {
	l.at, l.busy, l.again = 0, true, 0
	n.spawn("claims", func() {
		claimed := l.claim()
		next := n.world.now.Add(n.world.lag())
		if claimed > 0 {
			l.fruitless = 0
		} else {
			next = n.nextDue(l)
		}
		l.busy = false
		if l.again != 0 {
			next = min(next, l.again)
		}
		n.wake(l, next)
	})
}

// nextDue is when the loop may find something; seconds away, and ever more, if
// that should have been now.
func (n *node) nextDue(l *loop) pawl.Time {
	next := pawl.Never
	for _, kind := range l.kinds {
		names := []string{""}
		if kind != ledger.DeliveryQueue {
			names = n.world.upstreamNames()
		}
		for _, name := range names {
			queues, err := n.world.driver.Ready(noLimit, kind, name, pawl.Never-1, 1)
			if err == nil && len(queues) > 0 {
				next = min(next, n.due(n.world.gated(queues[0])))
			}
		}
	}
	if next > n.world.now {
		l.fruitless = 0
		return next
	}
	l.fruitless++
	return n.world.now.Add(min(time.Second<<min(l.fruitless-1, 10), 2*time.Minute))
}

// gated is a queue as ready as the gate of its upstream lets it be.
func (w *world) gated(q ledger.Queue) ledger.Queue {
	if q.ID.Kind == ledger.SubmitQueue {
		gate, _ := w.rows(ledger.Keys{Queues: []ledger.QueueID{ledger.GateID(q.ID.Upstream)}}).Queues.Get(ledger.GateID(q.ID.Upstream))
		q.PausedUntil = max(q.PausedUntil, gate.PausedUntil)
	}
	return q
}

// due is the true time at which a queue is ready both for the node, which looks
// for it by its own clock, and for the database, which leases.
func (n *node) due(q ledger.Queue) pawl.Time {
	ready := q.Ready()
	if ready == pawl.Never {
		return ready
	}
	return max(ready.Add(-n.skew), ready.Add(-n.world.skew))
}

// claimWork leases what is due at upstreams and starts it.
func (n *node) claimWork() int {
	claimed, at := n.clock(), n.world.now
	jobs, _ := n.worker.Claim(noLimit, claimed)
	for _, j := range jobs {
		n.after(max(j.Start().Sub(n.clock()), 0)+n.queued(), func() {
			// A real clock also has a monotonic part, which is never set back.
			now := n.clock()
			if passed := claimed.Add(n.world.now.Sub(at)); passed.After(now) {
				now = passed
			}
			n.spawn(j.Action().String(), func() { n.do(j, now) })
		})
	}
	return len(jobs)
}

// queued is how long something leased waits in the node's own queue.
func (n *node) queued() time.Duration {
	d := n.world.lag()
	if n.world.hit(LateStart, 40) {
		d += n.world.between(5*time.Second, 40*time.Minute)
	}
	return d
}

// do carries a job out.
func (n *node) do(j work.Job, now time.Time) {
	if n.draining {
		n.worker.Release(oneTry, j)
		return
	}
	done := n.worker.Act(noLimit, j, now)
	n.unrecorded()
	n.worker.Record(oneTry, done)
	n.wake(&n.working, n.world.now.Add(n.world.lag()))
}

// unrecorded is the time between an action's end and its record.
func (n *node) unrecorded() {
	d := n.world.lag()
	if n.world.hit(LateRecord, 40) {
		d += n.world.between(5*time.Second, 20*time.Minute)
	}
	n.sleep(d)
	n.world.running.tries = 6
}

// claimDeliveries leases what is due at endpoints and starts it.
func (n *node) claimDeliveries() int {
	jobs, _ := n.outbox.Claim(noLimit, n.clock())
	for _, j := range jobs {
		n.after(n.queued(), func() { n.spawn("delivery", func() { n.deliver(j) }) })
	}
	return len(jobs)
}

func (n *node) deliver(j outbox.Job) {
	if n.draining {
		n.outbox.Release(oneTry, j)
		return
	}
	attempt := n.outbox.Act(noLimit, j, n.clock())
	n.unrecorded()
	n.outbox.Record(oneTry, attempt)
	n.wake(&n.sending, n.world.now.Add(n.world.lag()))
}

// drain stops the node in order: what is leased and not begun is handed back,
// what is under way ends, unless that takes too long.
func (n *node) drain() {
	if !n.up || n.draining {
		return
	}
	n.world.trace("%s drains", n.name)
	n.draining = true
	n.after(n.world.between(time.Second, 10*time.Second), n.crash)
}
