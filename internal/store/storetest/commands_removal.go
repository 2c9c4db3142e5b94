package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// removals are what takes content away: by its age, or because a person has it
// erased.
func removals() []Generator {
	remove := Generator{Name: "RemoveContent", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.Upstream) ledger.Command {
		c := ledger.RemoveContent{Header: l.Header, Operation: op.ID, Ages: ages(t), Seen: op.Version - pick[int64](t, "old", 0, 0, 1)}
		events, err := l.Events(context.Background(), store.EventFilter{Operation: op.ID}, wide)
		deliveries, err2 := l.Deliveries(context.Background(), store.DeliveryFilter{Operation: op.ID}, wide)
		reviews, err3 := l.Reviews(context.Background(), store.ReviewFilter{Operation: op.ID}, wide)
		if err != nil || err2 != nil || err3 != nil {
			panic("a list failed")
		}
		for _, d := range deliveries {
			c.Deliveries, c.Endpoints = append(c.Deliveries, d.ID), append(c.Endpoints, d.Endpoint)
		}
		// Only who names everything may say that nothing is left.
		if rapid.Bool().Draw(t, "all") {
			c.Done = ^ledger.Kept(0)
			c.Events, c.Reviews = ids(events, eventID), ids(reviews, func(r ledger.Review) pawl.ID { return r.ID })
		}
		return c
	})}
	return []Generator{
		remove, remove,
		{Name: "EraseOperation", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.Upstream) ledger.Command {
			return ledger.EraseOperation{Header: l.Header, Tenant: pick(t, "of", op.Tenant, op.Tenant, ""), Operation: op.ID, Whose: op.Tenant, Correlation: op.CorrelationID, Reason: "asked for"}
		})},
		{Name: "RemoveCallback", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.Upstream) ledger.Command {
			if op.Callback.IsZero() {
				return nil
			}
			return ledger.RemoveCallback{Header: l.Header, Endpoint: op.Callback, Unused: rapid.Bool().Draw(t, "unused")}
		})},
		{Name: "RemoveEvent", Make: func(t *rapid.T, l Live) ledger.Command {
			all, err := l.KeptEvents(context.Background(), last, wide)
			e, ok := pickRow(t, "event", all, err)
			if !ok {
				return nil
			}
			c := ledger.RemoveEvent{Header: l.Header, Event: e.ID, Ages: ages(t), Erase: rapid.Bool().Draw(t, "erase")}
			deliveries, err := l.Deliveries(context.Background(), store.DeliveryFilter{Event: e.ID}, wide)
			if err != nil {
				panic(err)
			}
			for _, d := range deliveries {
				c.Deliveries, c.Endpoints = append(c.Deliveries, d.ID), append(c.Endpoints, d.Endpoint)
			}
			return c
		}},
		{Name: "ForgetKey", Make: func(t *rapid.T, l Live) ledger.Command {
			all, err := l.OldKeys(context.Background(), last, wide)
			k, ok := pickRow(t, "key", all, err)
			if !ok {
				return nil
			}
			return ledger.ForgetKey{Header: l.Header, Key: k.ID, Before: pick(t, "before", pawl.Never, k.ExpiresAt, k.ExpiresAt-1)}
		}},
		{Name: "ForgetAudits", Make: func(t *rapid.T, l Live) ledger.Command {
			seals, err := l.AuditSeals(context.Background(), 0, wide.Limit)
			seal, ok := pickRow(t, "seal", seals, err)
			if !ok {
				return nil
			}
			all, err := l.Audits(context.Background(), store.AuditFilter{}, wide)
			a, ok := pickRow(t, "audit", all, err)
			if !ok {
				return nil
			}
			return ledger.ForgetAudits{Header: l.Header, Seal: seal.Number, Audits: []pawl.ID{a.ID}, Removal: [32]byte{1}, Differs: rapid.Bool().Draw(t, "differs")}
		}},
		{Name: "EraseTenant", Repeat: []string{"tenants", "audits"}, Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.EraseTenant{Header: l.Header, Tenant: drawTenant(t), Reason: "asked for"}
		}},
	}
}

// last is above every id.
var last = pawl.NewID(at(1<<20), 1<<62-1)

func ages(t *rapid.T) ledger.Ages {
	draw := func(what string) time.Duration { return pick(t, what, 0, 0, time.Hour) }
	return ledger.Ages{Input: draw("input"), Result: draw("result"), Callbacks: draw("callbacks"), Deliveries: draw("deliveries")}
}
