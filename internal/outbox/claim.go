package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
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
	jobs, err := o.load(ctx, leased, endpoints)
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

// lease issues the commands at once, so that they share a commit.
func (o *Outbox) lease(ctx context.Context, grants []grant, endpoints map[pawl.ID]ledger.Endpoint) ([]ledger.Delivery, error) {
	leased := make([][]ledger.Delivery, len(grants))
	errs := make([]error, len(grants))
	var all sync.WaitGroup
	for i, g := range grants {
		all.Go(func() { leased[i], errs[i] = o.leaseOne(ctx, g, endpoints[g.endpoint]) })
	}
	all.Wait()
	return slices.Concat(leased...), errors.Join(errs...)
}

func (o *Outbox) leaseOne(ctx context.Context, g grant, ep ledger.Endpoint) ([]ledger.Delivery, error) {
	limit := g.n
	if ep.DeletedAt != 0 {
		limit = skipAtOnce
	}
	// A lease that was taken must be known, so it is not given up half-way.
	out, err := o.o.Store.Do(context.WithoutCancel(ctx), ledger.LeaseDeliveries{
		Header: o.header(), Endpoint: g.endpoint, Limit: limit, Timeout: policyOf(ep).Timeout,
	})
	if err == nil && out.Err != nil {
		err = out.Err
	}
	rows, _ := out.Value.([]ledger.Delivery)
	o.slots.give(g.endpoint, g.n-len(rows))
	if err != nil {
		return nil, fmt.Errorf("outbox: lease: %w", err)
	}
	return rows, nil
}
