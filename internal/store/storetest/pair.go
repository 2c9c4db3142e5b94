package storetest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// pair is the driver under test beside the memory driver with the same rows.
type pair struct {
	store.Driver
	reference *memory.Store
	batches   int
}

func newPair(t *testing.T, open Open) *pair {
	p := &pair{Driver: open(t), reference: memory.New(memory.Options{})}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// rows is a change to be saved: what to put, and what to add to the logs.
type rows struct {
	keys ledger.Keys
	put  func(*ledger.Draft)
	logs ledger.Rows
}

// save saves into both drivers, each in one transaction.
func (p *pair) save(t *testing.T, r rows) {
	t.Helper()
	for _, d := range []store.Driver{p.Driver, p.reference} {
		p.batches++
		if err := saveInto(t.Context(), d, id(p.batches), r); err != nil {
			t.Fatalf("save: %v", err)
		}
	}
}

// put saves rows that are new.
func (p *pair) put(t *testing.T, put func(*ledger.Draft)) {
	t.Helper()
	p.save(t, rows{put: put})
}

func saveInto(ctx context.Context, d store.Driver, batch pawl.ID, r rows) error {
	return d.Update(ctx, batch, func(tx store.Tx) error { return saveIn(tx, r) })
}

func saveIn(tx store.Tx, r rows) error {
	loaded := new(ledger.Rows)
	keys := ledger.Keys{}
	keys.Merge(r.keys)
	if err := tx.Load(&keys, loaded); err != nil {
		return err
	}
	for saved := r.put == nil; !saved; {
		out, miss := ledger.NewDraft(loaded).Run(step(r.put), epoch)
		if out.Err != nil || miss != nil && len(miss.Keys.Budgets) == 0 {
			panic("storetest: a sample reads what it has not loaded")
		}
		if saved = miss == nil; saved {
			break
		}
		// The budgets that count an operation move with it.
		if err := tx.Load(&miss.Keys, loaded); err != nil {
			return err
		}
	}
	loaded.Payloads, loaded.History, loaded.Entries = r.logs.Payloads, r.logs.History, r.logs.Entries
	loaded.Attempts, loaded.Audits = r.logs.Attempts, r.logs.Audits
	loaded.Removed = r.logs.Removed
	return tx.Save(loaded)
}

// step is a command that does as it is told.
type step func(*ledger.Draft)

func (step) Head() ledger.Header { return ledger.Header{} }
func (step) Keys(*ledger.Keys)   {}
func (s step) Decide(d *ledger.Draft) ledger.Outcome {
	s(d)
	return ledger.Outcome{}
}

// load reads rows outside of a transaction.
func load(t *testing.T, d store.Reader, keys ledger.Keys) *ledger.Rows {
	t.Helper()
	loaded := new(ledger.Rows)
	if err := d.Load(t.Context(), &keys, loaded); err != nil {
		t.Fatalf("load: %v", err)
	}
	return loaded
}

// ask asks both drivers the same, insists on the same answer and returns it.
func ask[A any](t *testing.T, p *pair, what string, question func(context.Context, store.Driver) (A, error)) A {
	t.Helper()
	got, err := question(t.Context(), p.Driver)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	want, err := question(t.Context(), p.reference)
	if err != nil {
		t.Fatalf("%s: memory: %v", what, err)
	}
	same(t, what+" (-memory +got)", want, got)
	return got
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

// ids are the ids of rows in their order.
func ids[R any](all []R, of func(R) pawl.ID) []pawl.ID {
	out := make([]pawl.ID, 0, len(all))
	for _, r := range all {
		out = append(out, of(r))
	}
	return out
}

// numbered are the ids of the samples with the given numbers.
func numbered(n ...int) []pawl.ID {
	out := make([]pawl.ID, 0, len(n))
	for _, i := range n {
		out = append(out, id(i))
	}
	return out
}

func operationID(o ledger.Operation) pawl.ID { return o.ID }
func eventID(e ledger.Event) pawl.ID         { return e.ID }
func deliveryID(d ledger.Delivery) pawl.ID   { return d.ID }
func artifactID(a ledger.Artifact) pawl.ID   { return a.ID }
