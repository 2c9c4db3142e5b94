package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// corrections are what stops an operation, and what takes a finished one to
// another end.
func corrections() []Generator {
	cancel := Generator{Name: "Cancel", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
		return ledger.Cancel{Header: l.Header, Once: perhaps(t, op.Tenant), Tenant: op.Tenant, Operation: op.ID, Up: up}
	})}
	record := Generator{Name: "RecordCancel", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
		if op.Task == "" {
			return nil
		}
		return ledger.RecordCancel{
			Header: l.Header, Up: up, Operation: op.ID, Fence: fence(t, op.Lease),
			Outcome: pick(t, "outcome", ledger.CancelTaken, ledger.CancelTaken, ledger.CancelRefused, ledger.CancelUnknown, ledger.CancelUnreachable),
			Obs:     observation(t, pick(t, "of", op.Task, op.Task, "other")), Observed: rapid.Bool().Draw(t, "observed"),
			RetryAfter: pick(t, "after", 0, time.Minute),
		}
	})}
	return []Generator{
		cancel, record, record,
		{Name: "ResolveOperation", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
			to := pick(t, "to", pawl.Succeeded, pawl.Failed, pawl.Canceled, pawl.Expired)
			return ledger.ResolveOperation{
				Header: l.Header, Once: perhaps(t, op.Tenant), Tenant: op.Tenant, Operation: op.ID, Up: up, Decision: to.String(),
				From: op.State, Note: pick(t, "note", "why", "why", ""), HasCharge: rapid.Bool().Draw(t, "charge"),
				Charge: pick[pawl.Amount](t, "amount", 0, 10, 30, 31),
			}
		})},
		{Name: "AssignReview", Make: func(t *rapid.T, l Live) ledger.Command {
			all, err := l.Reviews(context.Background(), store.ReviewFilter{}, wide)
			r, ok := pickRow(t, "review", all, err)
			if !ok {
				return nil
			}
			return ledger.AssignReview{Header: l.Header, Tenant: r.Tenant, Review: r.ID, Operation: r.Operation, Owner: pick(t, "owner", "ada", "bea", "")}
		}},
		{Name: "NoteReview", Make: func(t *rapid.T, l Live) ledger.Command {
			all, err := l.Reviews(context.Background(), store.ReviewFilter{}, wide)
			r, ok := pickRow(t, "review", all, err)
			if !ok {
				return nil
			}
			return ledger.NoteReview{Header: l.Header, Once: perhaps(t, r.Tenant), Tenant: r.Tenant, Review: r.ID, Operation: r.Operation, Note: pick(t, "note", "asked", "answered")}
		}},
		{Name: "DiscardUnknown", Make: func(t *rapid.T, l Live) ledger.Command {
			all, err := l.Events(context.Background(), store.EventFilter{Direction: ledger.Inbound, Inbox: pawl.InboxReview}, wide)
			e, ok := pickRow(t, "event", all, err)
			if !ok {
				return nil
			}
			return ledger.DiscardUnknown{Header: l.Header, Event: e.ID, Tenant: e.Tenant}
		}},
		{Name: "CreateAccount", Make: func(t *rapid.T, l Live) ledger.Command {
			tenant := drawTenant(t)
			return ledger.CreateAccount{Header: l.Header, Once: key(t, tenant), Tenant: tenant, Currency: pick(t, "currency", "USD", "EUR")}
		}},
	}
}

// perhaps is an Idempotency-Key, or none.
func perhaps(t *rapid.T, tenant string) ledger.Once {
	if rapid.Bool().Draw(t, "keyed") {
		return key(t, tenant)
	}
	return ledger.Once{}
}

func key(t *rapid.T, tenant string) ledger.Once {
	return ledger.Once{APIKey: keyOf(tenant), KeyTenant: tenant, Key: drawKey(t), Window: time.Hour}
}

// orphan completes the decision about an event that nobody claimed.
func (l Live) orphan(t *rapid.T, c *ledger.ResolveReview) {
	rows := new(ledger.Rows)
	if err := l.Load(context.Background(), &ledger.Keys{Events: []pawl.ID{c.Event}}, rows); err != nil {
		panic(err)
	}
	e, _ := rows.Events.Get(c.Event)
	c.EventTask, c.Up = e.Task, upstreamOf(e.Source)
	if op, _, ok := l.operation(t); ok {
		c.Target = op.ID
	}
}
