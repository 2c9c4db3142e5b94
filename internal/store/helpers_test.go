package store_test

import (
	"context"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// command is a command in pieces.
type command struct {
	keys   ledger.Keys
	size   int
	decide func(*ledger.Draft) ledger.Outcome
}

func (c command) Head() ledger.Header                       { return ledger.Header{} }
func (c command) Keys(k *ledger.Keys)                       { k.Merge(c.keys) }
func (c command) Size() int                                 { return c.size }
func (c command) Decide(d *ledger.Draft) (o ledger.Outcome) { return c.decide(d) }

// count adds one to a source's counter and answers with the new count. Its
// keys are what it declares.
func count(source string, declared ...string) command {
	return command{keys: ledger.Keys{Sources: declared}, decide: func(d *ledger.Draft) ledger.Outcome {
		s, _ := d.Sources.Get(source)
		s.Name = source
		s.Parked++
		d.Sources.Put(source, s)
		return ledger.Outcome{Reason: "counted", Value: s.Parked}
	}}
}

// counter is [count] with its key declared.
func counter(source string) command { return count(source, source) }

// counted reads a source's counter.
func counted(t *testing.T, d store.Driver, source string) int64 {
	t.Helper()
	var rows ledger.Rows
	if err := d.Load(context.Background(), &ledger.Keys{Sources: []string{source}}, &rows); err != nil {
		t.Fatal(err)
	}
	s, _ := rows.Sources.Get(source)
	return s.Parked
}

// spied is a driver whose transactions pass through hooks.
type spied struct {
	*memory.Store
	load func(*ledger.Keys) bool
	save func(*ledger.Rows) error
}

func (s spied) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, batch, func(tx store.Tx) error { return fn(spiedTx{tx, s}) })
}

type spiedTx struct {
	store.Tx
	spied spied
}

func (t spiedTx) Load(k *ledger.Keys, r *ledger.Rows) error {
	if t.spied.load != nil && !t.spied.load(k) {
		return nil
	}
	return t.Tx.Load(k, r)
}

func (t spiedTx) Save(r *ledger.Rows) error {
	if t.spied.save != nil {
		if err := t.spied.save(r); err != nil {
			return err
		}
	}
	return t.Tx.Save(r)
}
