package retention

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Pass removes what is old at a moment.
func (r *Remover) Pass(ctx context.Context, now time.Time) error {
	s, at, n := r.o.Settings.Now(), pawl.TimeOf(now), counts{}
	defer func() {
		r.tell("old content was removed", n)
	}()
	for kept := ledger.Kept(1); kept < ledger.KeptWords; kept++ {
		if err := r.operations(ctx, kept, idAt(at.Add(-shortest(kept, s.Ages))), s.Ages, at, &n); err != nil {
			return err
		}
	}
	for _, part := range [...]func(context.Context, Settings, pawl.Time, *counts) error{r.events, r.keys, r.seal, r.audits} {
		if err := part(ctx, s, at, &n); err != nil {
			return err
		}
	}
	r.o.Metrics.RetentionPass.Set(float64(now.Unix()))
	return nil
}

// shortest is the age at which the first of some classes is over.
func shortest(kept ledger.Kept, a ledger.Ages) time.Duration {
	age := time.Duration(1<<63 - 1)
	for _, class := range [...]struct {
		kept ledger.Kept
		age  time.Duration
	}{{ledger.KeptInput, a.Input}, {ledger.KeptResult | ledger.KeptFiles, a.Result}, {ledger.KeptCallbacks, a.Callbacks}, {ledger.KeptDeliveries, a.Deliveries}} {
		if kept&class.kept != 0 {
			age = min(age, class.age)
		}
	}
	return age
}

// operations walks over the operations that hold exactly some classes.
func (r *Remover) operations(ctx context.Context, kept ledger.Kept, before pawl.ID, ages ledger.Ages, at pawl.Time, n *counts) error {
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.KeptOperations(ctx, kept, before, p)
		if err != nil || len(rows) == 0 {
			return err
		}
		gone, err := r.page(ctx, rows, ages, at)
		n.operations += gone
		if err != nil {
			return err
		}
		p.After = rows[len(rows)-1].ID
	}
}

// page removes what is over of some operations. What was erased counts as erased
// once it is in no file any more.
func (r *Remover) page(ctx context.Context, rows []ledger.Operation, ages ledger.Ages, at pawl.Time) (gone int, err error) {
	var emptied []ledger.Operation
	erased := false
	for _, op := range rows {
		removed, err := r.operation(ctx, op, ages, at)
		if err != nil {
			return 0, err
		}
		if !removed {
			continue
		}
		emptied, erased = append(emptied, op), erased || op.ErasedAt.IsSet()
		if op.ErasedAt.IsSet() && !op.Callback.IsZero() {
			if err := r.callback(ctx, op.Callback); err != nil {
				return 0, err
			}
		}
	}
	if erased && r.o.Scrub != nil {
		if err := r.o.Scrub(ctx); err != nil {
			return 0, err
		}
	}
	for _, op := range emptied {
		over := op.Over(ages, at)
		c := ledger.RemoveContent{Operation: op.ID, Ages: ages, Done: over, Seen: op.Version}
		if _, err := r.own(ctx, c, over); err != nil {
			return gone, err
		}
		// What came between the look and the end.
		c.Done = 0
		if _, err := r.eventsOf(ctx, c, over); err != nil {
			return gone, err
		}
		gone++
	}
	return gone, nil
}

// operation removes what is over of one operation: first what it holds itself,
// then of what hangs on it, then the files; that it is gone is noted by the page.
func (r *Remover) operation(ctx context.Context, op ledger.Operation, ages ledger.Ages, at pawl.Time) (removed bool, err error) {
	over := op.Over(ages, at)
	if over == 0 {
		return false, nil
	}
	if busy, err := r.busy(ctx, op); err != nil || busy {
		return false, err
	}
	c := ledger.RemoveContent{Operation: op.ID, Ages: ages}
	for _, part := range [...]func(context.Context, ledger.RemoveContent, ledger.Kept) (bool, error){r.own, r.eventsOf, r.reviewsOf, r.deliveriesOf} {
		if ok, err := part(ctx, c, over); err != nil || !ok {
			return false, err
		}
	}
	if over&ledger.KeptFiles != 0 {
		if err := r.files(ctx, op.ID); err != nil {
			return false, err
		}
	}
	return true, nil
}

// busy reports whether a delivery of the operation is still to be made. Those of
// an erased one are skipped.
func (r *Remover) busy(ctx context.Context, op ledger.Operation) (bool, error) {
	if op.ErasedAt.IsSet() {
		return false, nil
	}
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.Deliveries(ctx, store.DeliveryFilter{Operation: op.ID}, p)
		if err != nil || len(rows) == 0 {
			return false, err
		}
		for _, row := range rows {
			p.After = row.ID
			if row.DueAt != pawl.Never || row.Leased {
				return true, nil
			}
		}
	}
}

// own removes what is named, and what the operation holds itself; false if
// something of it is needed.
func (r *Remover) own(ctx context.Context, c ledger.RemoveContent, _ ledger.Kept) (bool, error) {
	c.Header = store.NewHeader("")
	reason, err := r.do(ctx, c)
	return reason == "removed", err
}

func (r *Remover) eventsOf(ctx context.Context, c ledger.RemoveContent, over ledger.Kept) (bool, error) {
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.Events(ctx, store.EventFilter{Operation: c.Operation}, p)
		if err != nil || len(rows) == 0 {
			return true, err
		}
		c.Events = nil
		for _, e := range rows {
			p.After = e.ID
			if e.RemovedAt == 0 || over&ledger.KeptResult != 0 && !e.Result.IsZero() {
				c.Events = append(c.Events, e.ID)
			}
		}
		if len(c.Events) == 0 {
			continue
		}
		if ok, err := r.own(ctx, c, over); err != nil || !ok {
			return false, err
		}
	}
}

func (r *Remover) reviewsOf(ctx context.Context, c ledger.RemoveContent, over ledger.Kept) (bool, error) {
	if over&(ledger.KeptResult|ledger.KeptWords) == 0 {
		return true, nil
	}
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.Reviews(ctx, store.ReviewFilter{Operation: c.Operation}, p)
		if err != nil || len(rows) == 0 {
			return true, err
		}
		c.Reviews = nil
		for _, row := range rows {
			p.After = row.ID
			c.Reviews = append(c.Reviews, row.ID)
		}
		if ok, err := r.own(ctx, c, over); err != nil || !ok {
			return false, err
		}
	}
}

func (r *Remover) deliveriesOf(ctx context.Context, c ledger.RemoveContent, over ledger.Kept) (bool, error) {
	if over&ledger.KeptDeliveries == 0 {
		return true, nil
	}
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.Deliveries(ctx, store.DeliveryFilter{Operation: c.Operation}, p)
		if err != nil || len(rows) == 0 {
			return true, err
		}
		c.Deliveries, c.Endpoints = nil, nil
		for _, row := range rows {
			p.After = row.ID
			c.Deliveries, c.Endpoints = append(c.Deliveries, row.ID), append(c.Endpoints, row.Endpoint)
		}
		if ok, err := r.own(ctx, c, over); err != nil || !ok {
			return false, err
		}
	}
}

// files removes all copies of the operation's result files.
func (r *Remover) files(ctx context.Context, op pawl.ID) error {
	var rows ledger.Rows
	if err := r.o.Reader.Load(ctx, &ledger.Keys{ArtifactSets: []pawl.ID{op}}, &rows); err != nil {
		return err
	}
	for _, a := range rows.ArtifactsOf(op) {
		if a.State != pawl.ArtifactDropped {
			continue
		}
		if err := r.o.RemoveFiles(ctx, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// events walks over the events of no operation.
func (r *Remover) events(ctx context.Context, s Settings, at pawl.Time, n *counts) error {
	before := idAt(at.Add(-min(s.Ages.Callbacks, s.Ages.Deliveries)))
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.KeptEvents(ctx, before, p)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, e := range rows {
			p.After = e.ID
			removed, err := r.event(ctx, e, s.Ages, false)
			if err != nil {
				return err
			}
			if removed {
				n.events++
			}
		}
	}
}

func (r *Remover) event(ctx context.Context, e ledger.Event, ages ledger.Ages, erase bool) (removed bool, err error) {
	c := ledger.RemoveEvent{Header: store.NewHeader(""), Event: e.ID, Ages: ages, Erase: erase}
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.Deliveries(ctx, store.DeliveryFilter{Event: e.ID}, p)
		if err != nil {
			return false, err
		}
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			p.After = row.ID
			c.Deliveries, c.Endpoints = append(c.Deliveries, row.ID), append(c.Endpoints, row.Endpoint)
		}
	}
	reason, err := r.do(ctx, c)
	return reason == "removed", err
}

// keys walks over idempotency keys of old things.
func (r *Remover) keys(ctx context.Context, s Settings, at pawl.Time, n *counts) error {
	ended := at.Add(-s.Keys)
	for p := (store.Page{Limit: step}); ; {
		rows, err := r.o.Reader.OldKeys(ctx, idAt(ended), p)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, k := range rows {
			p.After = k.Operation
			if k.ExpiresAt > ended {
				continue
			}
			reason, err := r.do(ctx, ledger.ForgetKey{Header: store.NewHeader(""), Key: k.ID, Before: ended})
			if err != nil {
				return err
			}
			if reason == "removed" {
				n.keys++
			}
		}
	}
}
