package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

func source(name string, parked int64) rows {
	return rows{keys: ledger.Keys{Sources: []string{name}}, put: func(d *ledger.Draft) {
		d.Sources.Put(name, ledger.Source{Name: name, Parked: parked})
	}}
}

func parkedOf(t *testing.T, d store.Reader, name string) int64 {
	t.Helper()
	loaded := load(t, d, ledger.Keys{Sources: []string{name}})
	s, _ := loaded.Sources.Get(name)
	return s.Parked
}

func testOwnWrites(t *testing.T, open Open) {
	p := newPair(t, open)
	err := p.Update(t.Context(), id(1), func(tx store.Tx) error {
		if tx.Now() <= 0 {
			t.Errorf("now is %d", tx.Now())
		}
		for n := range int64(3) {
			if err := saveIn(tx, source("a", n+1)); err != nil {
				return err
			}
			var again ledger.Rows
			if err := tx.Load(&ledger.Keys{Sources: []string{"a"}}, &again); err != nil {
				return err
			}
			if s, _ := again.Sources.Get("a"); s.Parked != n+1 {
				t.Errorf("the transaction reads %d after it saved %d", s.Parked, n+1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := parkedOf(t, p, "a"); n != 3 {
		t.Errorf("after the commit it reads %d, want 3", n)
	}
}

func testChangesOnly(t *testing.T, open Open) {
	p := newPair(t, open)
	p.save(t, source("a", 1))
	p.save(t, source("b", 1))
	err := p.Update(t.Context(), id(9), func(tx store.Tx) error {
		var both ledger.Rows
		if err := tx.Load(&ledger.Keys{Sources: []string{"a", "b", "c"}}, &both); err != nil {
			return err
		}
		if err := saveIn(tx, source("b", 2)); err != nil {
			return err
		}
		ledger.NewDraft(&both).Run(step(func(d *ledger.Draft) {
			d.Sources.Put("a", ledger.Source{Name: "a", Parked: 5})
			d.Sources.Put("c", ledger.Source{Name: "c", Parked: 7})
		}), epoch)
		return tx.Save(&both)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"a": 5, "b": 2, "c": 7} {
		if n := parkedOf(t, p, name); n != want {
			t.Errorf("%s is %d, want %d: only what was changed is saved", name, n, want)
		}
	}
}

func testRollback(t *testing.T, open Open) {
	p := newPair(t, open)
	p.save(t, source("a", 1))
	broken := errors.New("broken")
	change := func(tx store.Tx) {
		r := source("a", 2)
		r.logs.Payloads = []ledger.Payload{{ID: ledger.PayloadID{Owner: id(1), Kind: ledger.InputPayload}, Body: "x"}}
		r.logs.Audits = []ledger.Audit{sample[ledger.Audit](1)}
		if err := saveIn(tx, r); err != nil {
			t.Errorf("save: %v", err)
		}
		if err := saveIn(tx, source("b", 1)); err != nil {
			t.Errorf("save: %v", err)
		}
	}
	for name, run := range map[string]func() error{
		"error": func() error {
			return p.Update(t.Context(), id(11), func(tx store.Tx) error { change(tx); return broken })
		},
		"panic": func() (err error) {
			defer func() { err, _ = recover().(error) }()
			return p.Update(t.Context(), id(12), func(tx store.Tx) error { change(tx); panic(broken) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := run()
			var commit *store.CommitError
			if !errors.Is(err, broken) || errors.As(err, &commit) {
				t.Errorf("what came back is %v", err)
			}
			if a, b := parkedOf(t, p, "a"), parkedOf(t, p, "b"); a != 1 || b != 0 {
				t.Errorf("a is %d and b is %d after the rollback, want 1 and 0", a, b)
			}
			payloads, err := p.Payloads(t.Context(), ledger.PayloadID{Owner: id(1), Kind: ledger.InputPayload})
			if err != nil || len(payloads) != 0 {
				t.Errorf("payloads after the rollback: %v, %v", payloads, err)
			}
			audits, err := p.Audits(t.Context(), store.AuditFilter{}, store.Page{Limit: 9})
			if err != nil || len(audits) != 0 {
				t.Errorf("audits after the rollback: %v, %v", audits, err)
			}
			p.save(t, source("after", 1))
		})
	}
	t.Run("ended context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := p.Update(ctx, id(13), func(tx store.Tx) error { return saveIn(tx, source("a", 3)) })
		if err == nil || parkedOf(t, p, "a") != 1 {
			t.Errorf("a transaction ran under an ended context: %v", err)
		}
	})
}

func testCommitted(t *testing.T, open Open) {
	p := newPair(t, open)
	broken := errors.New("broken")
	if err := p.Update(t.Context(), id(1), func(store.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := p.Update(t.Context(), id(2), func(store.Tx) error { return broken }); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{1: true, 2: false, 3: false} {
		if got, err := p.Committed(t.Context(), id(n)); err != nil || got != want {
			t.Errorf("batch %d: committed %v, %v; want %v", n, got, err, want)
		}
	}
}

func testClosed(t *testing.T, open Open) {
	d := open(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Update(t.Context(), id(1), func(store.Tx) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update after Close gave %v, want ErrClosed", err)
	}
	if _, err := d.Tenants(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a read after Close gave %v, want ErrClosed", err)
	}
}
