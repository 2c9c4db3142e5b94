package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/upstream"
)

// Job is a leased action. It holds a slot of its upstream until [Worker.Act]
// or [Worker.Release].
type Job struct {
	lease ledger.Lease
	up    upstream.Upstream
	slots *slots
	// claimed is a moment before the lease began.
	claimed time.Time
	start   time.Time
}

// Start is when the action's turn comes: at once, or later where the upstream
// has a rate.
func (j Job) Start() time.Time { return j.start }

// Action is what is to be done.
func (j Job) Action() ledger.Action { return j.lease.Action }

// Operation is the id of the operation.
func (j Job) Operation() pawl.ID { return j.lease.Operation.ID }

// overdue reports whether the action would begin so late that it could outlast
// its lease: a node that stood still may find that another has taken over, or
// that a person has decided. Both clocks are asked, since the monotonic one
// stands still while a machine sleeps.
func (j Job) overdue(now time.Time) bool {
	late := max(now.Sub(j.claimed), now.Round(0).Sub(j.claimed.Round(0)))
	return late >= ledger.LeaseMargin
}

// share is a queue with the number of slots taken for it.
type share struct {
	queue ledger.QueueID
	up    upstream.Upstream
	slots *slots
	n     int
}

// Claim takes free slots for the queues that are ready at now and leases as
// many of their oldest due operations. Each job must be given to [Worker.Act],
// not before its start, or to [Worker.Release].
//
// There may be jobs beside an error: some queues could not be leased.
func (w *Worker) Claim(ctx context.Context, now time.Time) ([]Job, error) {
	var shares []share
	var errs []error
	set, all := w.o.Upstreams.Now(), w.inForce()
	for _, key := range slices.SortedFunc(maps.Keys(all), slotKey.compare) {
		up, ok := set[key.upstream]
		if !ok {
			continue // taken away a moment ago
		}
		some, err := w.share(ctx, key.kind, up, all[key], now)
		shares = append(shares, some...)
		if err != nil {
			errs = append(errs, fmt.Errorf("work: claim: ready queues: %w", err))
		}
	}
	if len(shares) == 0 {
		return nil, errors.Join(errs...)
	}
	jobs, err := w.lease(ctx, shares, now)
	return jobs, errors.Join(append(errs, err)...)
}

func (k slotKey) compare(other slotKey) int {
	return cmp.Or(cmp.Compare(k.kind, other.kind), cmp.Compare(k.upstream, other.upstream))
}

// share gives an upstream's free slots to its queues that are ready, those
// longest ready first: each is a tenant's.
func (w *Worker) share(ctx context.Context, kind ledger.QueueKind, up upstream.Upstream, s *slots, now time.Time) ([]share, error) {
	free := s.free(now)
	if free == 0 {
		return nil, nil
	}
	queues, err := w.ready(ctx, kind, up, s, now, free)
	if err != nil {
		return nil, err
	}
	var shares []share
	for i, q := range queues {
		// The first ones get what is left over.
		n := free / len(queues)
		if i < free%len(queues) {
			n++
		}
		if n = s.take(n, now); n > 0 {
			shares = append(shares, share{q.ID, up, s, n})
		}
	}
	return shares, nil
}

// lease issues the commands at once, so that they share a commit, and gives
// unused slots back. A lease that was taken must be known, so it is not given up
// half-way.
func (w *Worker) lease(ctx context.Context, shares []share, now time.Time) ([]Job, error) {
	commands := make([]ledger.Command, len(shares))
	for i, s := range shares {
		commands[i] = ledger.LeaseWork{Header: store.NewHeader(""), Queue: s.queue, Limit: s.n, Up: s.up.Policy()}
	}
	var jobs []Job
	var errs []error
	for i, r := range w.o.Store.DoAll(context.WithoutCancel(ctx), commands...) {
		s, err := shares[i], r.Err
		if err == nil && r.Outcome.Err != nil {
			err = r.Outcome.Err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("work: lease at upstream %s: %w", s.up.Name(), err))
		}
		leases, _ := r.Outcome.Value.([]ledger.Lease)
		s.slots.unused(s.n - len(leases))
		for _, l := range leases {
			j := Job{lease: l, up: s.up, slots: s.slots, claimed: now}
			j.start = s.slots.turn(now, l.Action != ledger.ActAdvance)
			jobs = append(jobs, j)
		}
	}
	return jobs, errors.Join(errs...)
}
