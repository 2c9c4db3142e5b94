package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Job is a leased delivery with what sending it needs. It prints nothing of
// that but the delivery's id.
type Job struct {
	// claimed is a moment before the lease began.
	claimed  time.Time
	delivery ledger.Delivery
	event    ledger.Event
	endpoint ledger.Endpoint
	// key signs for endpoints of kind callback.
	key ledger.APIKey
	// metadata and result belong to the event's operation, data to an event of
	// none; sent is the body of an earlier attempt.
	metadata, result, data, sent string
	// received is the body of an event of a generic source, current the record as it
	// was read before handing it over, nil if the source does not ask for that.
	received string
	current  *ledger.CurrentJSON
}

// Delivery is the id of the job's delivery.
func (j Job) Delivery() pawl.ID { return j.delivery.ID }

// String is the delivery's id: the rest holds secrets and payloads.
func (j Job) String() string { return j.delivery.ID.Text(pawl.PrefixDelivery) }

// GoString is [Job.String].
func (j Job) GoString() string { return j.String() }

// overdue reports whether an attempt would begin so late that it could outlast
// its lease: a node that stood still may find that the endpoint was disabled or
// its secret replaced since. Both clocks are asked, since the monotonic one
// stands still while a machine sleeps.
func (j Job) overdue(now time.Time) bool {
	late := max(now.Sub(j.claimed), now.Round(0).Sub(j.claimed.Round(0)))
	return late >= ledger.LeaseMargin
}

// load reads events, endpoints and payloads of leased deliveries. Those whose
// endpoint takes nothing any more, and all if reading fails, are handed back.
func (o *Outbox) load(ctx context.Context, leased []ledger.Delivery, endpoints map[pawl.ID]ledger.Endpoint, now time.Time) ([]Job, error) {
	if len(leased) == 0 {
		return nil, nil
	}
	jobs, err := o.read(ctx, leased, endpoints)
	if err != nil {
		for _, d := range leased {
			o.Release(ctx, Job{delivery: d})
		}
		return nil, fmt.Errorf("outbox: load: %w", err)
	}
	for i := range jobs {
		jobs[i].claimed = now
	}
	return slices.DeleteFunc(jobs, func(j Job) bool {
		closed := j.endpoint.Disabled && !j.delivery.Forced || j.endpoint.DeletedAt != 0
		if closed {
			o.Release(ctx, j)
		}
		return closed
	}), nil
}

func (o *Outbox) read(ctx context.Context, leased []ledger.Delivery, endpoints map[pawl.ID]ledger.Endpoint) ([]Job, error) {
	var keys ledger.Keys
	for _, d := range leased {
		keys.Events = append(keys.Events, d.Event)
		keys.Endpoints = append(keys.Endpoints, d.Endpoint)
		if key := endpoints[d.Endpoint].APIKey; !key.IsZero() {
			keys.APIKeys = append(keys.APIKeys, key)
		}
	}
	keys.Events, keys.Endpoints, keys.APIKeys = distinct(keys.Events), distinct(keys.Endpoints), distinct(keys.APIKeys)
	var rows ledger.Rows
	if err := o.o.Reader.Load(ctx, &keys, &rows); err != nil {
		return nil, err
	}
	jobs := make([]Job, len(leased))
	var wanted []ledger.PayloadID
	for i, d := range leased {
		j := Job{delivery: d}
		j.event, _ = rows.Events.Get(d.Event)
		j.endpoint, _ = rows.Endpoints.Get(d.Endpoint)
		if !j.endpoint.APIKey.IsZero() {
			j.key, _ = rows.APIKeys.Get(j.endpoint.APIKey)
		}
		jobs[i] = j
		wanted = append(wanted, j.rendering().Payloads()...)
	}
	bodies, err := o.o.Reader.Payloads(ctx, wanted...)
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		j := &jobs[i]
		d := j.rendering()
		d.Fill(bodies)
		j.metadata, j.result, j.data, j.received, j.sent = d.Metadata, d.Result, d.Data, d.Received, d.Sent
	}
	return jobs, nil
}

func distinct(ids []pawl.ID) []pawl.ID {
	slices.SortFunc(ids, pawl.ID.Compare)
	return slices.Compact(ids)
}

// policyOf is how deliveries to an endpoint are tried: what it says itself, in
// place of what its scheme says.
func policyOf(ep ledger.Endpoint) ledger.Policy {
	p, err := ledger.ParsePolicy(ep.Scheme, ep.Policy)
	if err != nil {
		// It was checked when it was set; the scheme's own is a safe reading.
		p = ledger.PolicyOf(ep.Scheme)
	}
	return p
}
