package memory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Driver { return memory.New(memory.Options{}) })
}

// tenant is a command that makes a tenant.
type tenant struct{ name string }

func (tenant) Head() ledger.Header   { return ledger.Header{} }
func (c tenant) Keys(k *ledger.Keys) { k.Tenants = append(k.Tenants, c.name) }
func (c tenant) Decide(d *ledger.Draft) ledger.Outcome {
	d.Tenants.Put(c.name, ledger.Tenant{Name: c.name, CreatedAt: d.Now})
	return ledger.Outcome{}
}

// make runs the command in one transaction.
func (c tenant) make(ctx context.Context, s *memory.Store, batch pawl.ID) error {
	return s.Update(ctx, batch, func(tx store.Tx) error {
		var keys ledger.Keys
		var rows ledger.Rows
		c.Keys(&keys)
		if err := tx.Load(&keys, &rows); err != nil {
			return err
		}
		ledger.NewDraft(&rows).Run(c, tx.Now())
		return tx.Save(&rows)
	})
}

func TestFaults(t *testing.T) {
	broken := errors.New("broken")
	for step, tc := range map[memory.Step]struct{ commit, kept bool }{
		memory.OnLoad:       {},
		memory.OnSave:       {},
		memory.BeforeCommit: {commit: true},
		memory.AfterCommit:  {commit: true, kept: true},
	} {
		s := memory.New(memory.Options{Fault: func(at memory.Step) error {
			if at == step {
				return broken
			}
			return nil
		}})
		err := tenant{"t"}.make(t.Context(), s, pawl.ID{1})
		var commit *store.CommitError
		if !errors.Is(err, broken) || errors.As(err, &commit) != tc.commit {
			t.Errorf("step %d: error is %v", step, err)
		}
		all, err := s.Tenants(t.Context())
		if err != nil || (len(all) == 1) != tc.kept {
			t.Errorf("step %d: %d tenants, %v; want it kept: %v", step, len(all), err, tc.kept)
		}
		if took, err := s.Committed(t.Context(), pawl.ID{1}); err != nil || took != tc.kept {
			t.Errorf("step %d: committed %v, %v", step, took, err)
		}
	}
}

func TestClock(t *testing.T) {
	s := memory.New(memory.Options{Now: func() pawl.Time { return 42 }})
	if err := (tenant{"t"}).make(t.Context(), s, pawl.ID{1}); err != nil {
		t.Fatal(err)
	}
	all, err := s.Tenants(t.Context())
	if err != nil || len(all) != 1 || all[0].CreatedAt != 42 {
		t.Errorf("tenants are %v, %v; want one made at 42", all, err)
	}
}

// TestStaleSave: a row that was changed since it was loaded is not overwritten.
func TestStaleSave(t *testing.T) {
	s := memory.New(memory.Options{})
	err := s.Update(t.Context(), pawl.ID{1}, func(tx store.Tx) error {
		var first, second ledger.Rows
		for _, rows := range []*ledger.Rows{&first, &second} {
			if err := tx.Load(&ledger.Keys{Tenants: []string{"t"}}, rows); err != nil {
				return err
			}
			ledger.NewDraft(rows).Run(tenant{"t"}, tx.Now())
		}
		if err := tx.Save(&first); err != nil {
			t.Errorf("the first save: %v", err)
		}
		return tx.Save(&second)
	})
	if all, listErr := s.Tenants(t.Context()); err == nil || listErr != nil || len(all) != 0 {
		t.Errorf("error %v, tenants %v, %v; want a refusal that leaves nothing", err, all, listErr)
	}
}
