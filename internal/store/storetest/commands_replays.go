package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// replaying is what is done again by hand.
func replaying() []Generator {
	lease := Generator{Name: "LeaseReplay", Repeat: []string{"*"}, Make: onReplay(func(_ *rapid.T, l Live, r ledger.Replay) ledger.Command {
		return ledger.LeaseReplay{Header: l.Header, ID: r.ID, For: 30 * time.Second}
	})}
	return []Generator{
		lease, lease,
		{Name: "CreateReplay", Repeat: []string{"replays", "audits"}, Make: createReplay},
		{Name: "StepReplay", Make: onReplay(stepReplay)},
		{Name: "StepReplay", Make: onReplay(stepReplay)},
		{Name: "RestReplay", Make: onReplay(func(t *rapid.T, l Live, r ledger.Replay) ledger.Command {
			return ledger.RestReplay{
				Header: l.Header, ID: r.ID, Fence: fence(t, r.Lease), After: id(rapid.IntRange(0, 5).Draw(t, "after")),
				End: rapid.Bool().Draw(t, "end"), Counted: 2, Worked: rapid.IntRange(0, 2).Draw(t, "worked"),
			}
		})},
		{Name: "ReplayEvent", Repeat: []string{"*"}, Make: onReplay(func(t *rapid.T, l Live, r ledger.Replay) ledger.Command {
			all, err := l.Events(context.Background(), store.EventFilter{Direction: ledger.Inbound}, wide)
			e, ok := pickRow(t, "event", all, err)
			if !ok {
				return nil
			}
			c := ledger.ReplayEvent{Replay: r.ID, Fence: fence(t, r.Lease), Unread: pick(t, "unread", "body_gone", "source_unknown")}
			c.Header, c.ID, c.Whose = l.Header, e.ID, e.Tenant
			return c
		})},
		{Name: "ChangeReplay", Make: onReplay(func(t *rapid.T, l Live, r ledger.Replay) ledger.Command {
			return ledger.ChangeReplay{
				Header: l.Header, Tenant: pick(t, "whose", "", r.Tenant, "t"), ID: r.ID, Once: drawOnce(t),
				To: pick(t, "to", pawl.ReplayRunning, pawl.ReplayRunning, pawl.ReplayPaused, pawl.ReplayCanceled),
			}
		})},
		{Name: "FreeReplay", Make: onReplay(func(t *rapid.T, l Live, r ledger.Replay) ledger.Command {
			return ledger.FreeReplay{Header: l.Header, ID: r.ID, Fence: fence(t, r.Lease)}
		})},
		{Name: "LeaseForced", Repeat: []string{"*"}, Make: onDelivery(func(_ *rapid.T, l Live, row ledger.Delivery) ledger.Command {
			return ledger.LeaseForced{Header: l.Header, Delivery: row.ID, Endpoint: row.Endpoint, Timeout: 15 * time.Second}
		})},
	}
}

func onReplay(make func(*rapid.T, Live, ledger.Replay) ledger.Command) func(*rapid.T, Live) ledger.Command {
	return func(t *rapid.T, l Live) ledger.Command {
		all, err := l.Replays(context.Background(), "", wide)
		r, ok := pickRow(t, "replay", all, err)
		if !ok {
			return nil
		}
		return make(t, l, r)
	}
}

func createReplay(t *rapid.T, l Live) ledger.Command {
	r := ledger.Replay{
		Tenant: pick(t, "tenant", "", "t", "u"), Kind: pick(t, "kind", ledger.ReplayDeliveries, ledger.ReplayDeliveries, ledger.ReplayEvents),
		DryRun: pick(t, "dry run", false, false, true), Force: rapid.Bool().Draw(t, "force"), Rate: 10,
		Filter: ledger.ReplayFilter{State: pick(t, "state", pawl.DeliveryDead, pawl.DeliveryDelivered)},
	}
	if rapid.Bool().Draw(t, "of an endpoint") {
		r.Filter.Endpoint = id(200 + rapid.IntRange(0, 3).Draw(t, "endpoint"))
	}
	return ledger.CreateReplay{Header: l.Header, Replay: r, Once: drawOnce(t)}
}

// drawOnce is a key of a request, or none.
func drawOnce(t *rapid.T) ledger.Once {
	if !rapid.Bool().Draw(t, "keyed") {
		return ledger.Once{}
	}
	tenant := drawTenant(t)
	return ledger.Once{APIKey: keyOf(tenant), KeyTenant: tenant, Key: drawKey(t), Window: time.Hour}
}

func stepReplay(t *rapid.T, l Live, r ledger.Replay) ledger.Command {
	rows, err := l.Deliveries(context.Background(), store.DeliveryFilter{Tenant: r.Tenant, State: r.Filter.State}, store.Page{Limit: 3, Oldest: true})
	if err != nil {
		panic(err)
	}
	c := ledger.StepReplay{Header: l.Header, ID: r.ID, Fence: fence(t, r.Lease), End: rapid.Bool().Draw(t, "end")}
	for _, row := range rows {
		c.Rows = append(c.Rows, ledger.ReplayRow{Delivery: row.ID, Endpoint: row.Endpoint, Event: row.Event, Review: row.Review})
	}
	return c
}
