package retention

import (
	"context"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// callback removes the endpoint that a callback_url became once none but erased
// operations have named it.
func (r *Remover) callback(ctx context.Context, id pawl.ID) error {
	var rows ledger.Rows
	if err := r.o.Reader.Load(ctx, &ledger.Keys{Endpoints: []pawl.ID{id}}, &rows); err != nil {
		return err
	}
	ep, ok := rows.Endpoints.Get(id)
	if !ok || ep.URL == "" {
		return nil
	}
	if used, err := r.used(ctx, ep); err != nil || used {
		return err
	}
	c := ledger.RemoveCallback{Header: store.NewHeader(""), Endpoint: id}
	if _, err := r.do(ctx, c); err != nil {
		return err
	}
	// What was submitted before is found now, and what comes later ends the look.
	if used, err := r.used(ctx, ep); err != nil || used {
		return err
	}
	c.Header, c.Unused = store.NewHeader(""), true
	_, err := r.do(ctx, c)
	return err
}

// used reports whether an operation that was not erased has named the endpoint: it
// is unfinished, or has told it of its end. The one that was found last is asked
// first, so that a tenant's erasure does not walk for each of its operations.
func (r *Remover) used(ctx context.Context, ep ledger.Endpoint) (bool, error) {
	if known, ok := r.users[ep.ID]; ok {
		if used, err := r.usedBy(ctx, ep, known); err != nil || used {
			return used, err
		}
		delete(r.users, ep.ID)
	}
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.Operations(ctx, store.OperationFilter{Tenant: ep.Tenant, Unfinished: true}, p)
		if err != nil {
			return false, err
		}
		if len(rows) == 0 {
			break
		}
		for _, op := range rows {
			p.After = op.ID
			if op.Callback == ep.ID {
				r.users[ep.ID] = op.ID
				return true, nil
			}
		}
	}
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.Deliveries(ctx, store.DeliveryFilter{Endpoint: ep.ID}, p)
		if err != nil || len(rows) == 0 {
			return false, err
		}
		var ops []pawl.ID
		for _, row := range rows {
			p.After = row.ID
			if !row.Operation.IsZero() && !slices.Contains(ops, row.Operation) {
				ops = append(ops, row.Operation)
			}
		}
		if used, err := r.usedBy(ctx, ep, ops...); err != nil || used {
			return used, err
		}
	}
}

// usedBy reports whether one of some operations has named the endpoint and was
// not erased.
func (r *Remover) usedBy(ctx context.Context, ep ledger.Endpoint, ops ...pawl.ID) (bool, error) {
	var rows ledger.Rows
	if err := r.o.Reader.Load(ctx, &ledger.Keys{Operations: ops}, &rows); err != nil {
		return false, err
	}
	for _, id := range ops {
		if op, ok := rows.Operations.Get(id); ok && !op.ErasedAt.IsSet() && op.Callback == ep.ID {
			r.users[ep.ID] = id
			return true, nil
		}
	}
	return false, nil
}
