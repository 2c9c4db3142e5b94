package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// skipAtOnce is how many deliveries of a deleted endpoint one claim skips:
// they take no slots.
const skipAtOnce = 200

// Claim takes free slots for the endpoints that are ready at now, leases as
// many of their oldest due deliveries, and loads what sending them needs. Each
// job must end in [Outbox.Record] or [Outbox.Release], which give its slot
// back. Rows of a queue that is paused or has no free slot are not touched.
//
// There may be jobs beside an error: some endpoints could not be leased.
func (o *Outbox) Claim(ctx context.Context, now time.Time) ([]Job, error) {
	jobs, err := o.queued(ctx, now)
	forced, forcedErr := o.forced(ctx, now)
	return append(jobs, forced...), errors.Join(err, forcedErr)
}

// queued claims from the queues of endpoints.
func (o *Outbox) queued(ctx context.Context, now time.Time) ([]Job, error) {
	queues, err := o.o.Reader.Ready(ctx, ledger.DeliveryQueue, "", pawl.TimeOf(now), o.look())
	if err != nil {
		return nil, fmt.Errorf("outbox: claim: ready queues: %w", err)
	}
	ready := make([]pawl.ID, len(queues))
	for i, q := range queues {
		ready[i] = q.ID.Endpoint
	}
	grants := o.slots.take(ready)
	if len(grants) == 0 {
		return nil, nil
	}
	endpoints, err := o.endpoints(ctx, grants)
	if err != nil {
		for _, g := range grants {
			o.slots.give(g.endpoint, g.n)
		}
		return nil, fmt.Errorf("outbox: claim: endpoints: %w", err)
	}
	leased, leaseErr := o.lease(ctx, grants, endpoints)
	jobs, err := o.load(ctx, leased, endpoints, now)
	return jobs, errors.Join(leaseErr, err)
}

func (o *Outbox) endpoints(ctx context.Context, grants []grant) (map[pawl.ID]ledger.Endpoint, error) {
	var keys ledger.Keys
	for _, g := range grants {
		keys.Endpoints = append(keys.Endpoints, g.endpoint)
	}
	wanted := slices.Clone(keys.Endpoints)
	var rows ledger.Rows
	if err := o.o.Reader.Load(ctx, &keys, &rows); err != nil {
		return nil, err
	}
	found := make(map[pawl.ID]ledger.Endpoint, len(wanted))
	for _, id := range wanted {
		found[id], _ = rows.Endpoints.Get(id)
	}
	return found, nil
}

// lease issues the commands at once, so that they share a commit. A lease that
// was taken must be known, so it is not given up half-way.
func (o *Outbox) lease(ctx context.Context, grants []grant, endpoints map[pawl.ID]ledger.Endpoint) ([]ledger.Delivery, error) {
	commands := make([]ledger.Command, len(grants))
	for i, g := range grants {
		ep, limit := endpoints[g.endpoint], g.n
		if ep.DeletedAt != 0 {
			limit = skipAtOnce
		}
		commands[i] = ledger.LeaseDeliveries{Header: o.header(), Endpoint: g.endpoint, Limit: limit, Timeout: policyOf(ep).Timeout}
	}
	return o.leased(ctx, grants, commands)
}

// leased issues commands that lease within the grants, and gives back what they
// leave of these.
func (o *Outbox) leased(ctx context.Context, grants []grant, commands []ledger.Command) ([]ledger.Delivery, error) {
	var leased []ledger.Delivery
	var errs []error
	for i, r := range o.o.Store.DoAll(context.WithoutCancel(ctx), commands...) {
		rows, _ := r.Outcome.Value.([]ledger.Delivery)
		o.slots.give(grants[i].endpoint, grants[i].n-len(rows))
		leased = append(leased, rows...)
		if err := failed(r); err != nil {
			errs = append(errs, fmt.Errorf("outbox: lease: %w", err))
		}
	}
	return leased, errors.Join(errs...)
}

// failed is the error of a command, or its refusal.
func failed(r store.Result) error {
	if r.Err == nil && r.Outcome.Err != nil {
		return r.Outcome.Err
	}
	return r.Err
}
