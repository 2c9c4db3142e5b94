package retention

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// again is how long a tenant of which something cannot be erased yet is left
// alone.
const again = 5 * time.Minute

// Erase removes what hangs on erased operations, and goes on with the tenants
// that are being erased.
func (r *Remover) Erase(ctx context.Context, now time.Time) error {
	at, n := pawl.TimeOf(now), counts{}
	defer func() { r.tell("content was erased", n) }()
	tenants, err := r.o.Reader.Tenants(ctx)
	if err != nil {
		return err
	}
	over := make(map[string]pawl.Time)
	for _, t := range tenants {
		if !t.EraseBefore.IsSet() || now.Before(r.later[t.Name]) {
			continue
		}
		left, err := r.tenant(ctx, t, &n)
		if err != nil {
			return err
		}
		if left == 0 {
			over[t.Name] = t.EraseBefore
			delete(r.later, t.Name)
		} else {
			r.later[t.Name] = now.Add(again)
		}
	}
	for kept := ledger.KeptWords; kept < ledger.KeptWords<<1; kept++ {
		if err := r.operations(ctx, kept, idAt(at.Add(time.Hour)), ledger.Ages{}, at, &n); err != nil {
			return err
		}
	}
	if n != (counts{}) && r.o.Scrub != nil {
		if err := r.o.Scrub(ctx); err != nil {
			return err
		}
	}
	for name, before := range over {
		if _, err := r.do(ctx, ledger.EraseTenant{Header: store.NewHeader(""), Tenant: name, Last: true, Before: before}); err != nil {
			return err
		}
	}
	return nil
}

// tenant erases what can be erased of a tenant and says how much is left.
func (r *Remover) tenant(ctx context.Context, t ledger.Tenant, n *counts) (left int, err error) {
	err = EachOf(ctx, r.o.Reader, t.Name, t.EraseBefore, func(op ledger.Operation) error {
		if op.Erasable() != "" {
			left++
			return nil
		}
		reason, err := r.do(ctx, ledger.EraseOperation{Header: store.NewHeader(""), Operation: op.ID, Whose: op.Tenant, Correlation: op.CorrelationID, Reason: "with its tenant"})
		if err == nil && reason == "not_erasable" {
			left++
		}
		return err
	}, func(e ledger.Event) error {
		removed, err := r.event(ctx, e, ledger.Ages{}, true)
		if removed {
			n.events++
		} else if err == nil {
			left++
		}
		return err
	})
	return left, err
}

// EachOf visits the operations of a tenant that were made before a moment and are
// not erased, and its events of no operation that hold anything, newest first.
func EachOf(ctx context.Context, from store.Reader, tenant string, before pawl.Time, op func(ledger.Operation) error, event func(ledger.Event) error) error {
	for p := (store.Page{After: idAt(before + 1000), Limit: step}); ; {
		rows, err := from.Operations(ctx, store.OperationFilter{Tenant: tenant}, p)
		if err != nil {
			return err
		}
		for _, row := range rows {
			p.After = row.ID
			if row.ErasedAt.IsSet() || row.CreatedAt >= before {
				continue
			}
			if err := op(row); err != nil {
				return err
			}
		}
		if len(rows) == 0 {
			break
		}
	}
	for p := (store.Page{After: idAt(before + 1000), Limit: step}); ; {
		rows, err := from.Events(ctx, store.EventFilter{Tenant: tenant}, p)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, e := range rows {
			p.After = e.ID
			if !e.Operation.IsZero() || e.RemovedAt.IsSet() || e.At >= before {
				continue
			}
			if err := event(e); err != nil {
				return err
			}
		}
	}
}
