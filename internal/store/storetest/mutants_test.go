package storetest

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// mutant is a batcher or driver with one fault; the property must find it.
type mutant struct {
	name   string
	decide Decider
	open   Open
}

func openMemory(*testing.T) store.Driver { return memory.New(memory.Options{}) }

var mutants = []mutant{
	{"swaps two commands", func(ctx context.Context, d store.Driver, batch []ledger.Command) []store.Result {
		if len(batch) < 2 {
			return decide(ctx, d, batch)
		}
		turned := slices.Clone(batch)
		turned[0], turned[1] = turned[1], turned[0]
		results := decide(ctx, d, turned)
		results[0], results[1] = results[1], results[0]
		return results
	}, openMemory},
	{"forgets the last of a full batch", func(ctx context.Context, d store.Driver, batch []ledger.Command) []store.Result {
		if len(batch) < 9 {
			return decide(ctx, d, batch)
		}
		return append(decide(ctx, d, batch[:8]), store.Result{})
	}, openMemory},
	{"answers one command with another's outcome", func(ctx context.Context, d store.Driver, batch []ledger.Command) []store.Result {
		results := decide(ctx, d, batch)
		results[0] = results[len(results)-1]
		return results
	}, openMemory},
	{"runs a hidden commit again", decide, func(*testing.T) store.Driver { return unasked{memory.New(memory.Options{})} }},
	{"believes a lost commit", decide, func(*testing.T) store.Driver { return trusting{memory.New(memory.Options{})} }},
	{"keeps what is rolled back", decide, func(*testing.T) store.Driver { return sloppy{memory.New(memory.Options{})} }},
	{"drops a table", decide, func(*testing.T) store.Driver { return forgetful{memory.New(memory.Options{})} }},
	{"loads by batch, not by key", decide, func(*testing.T) store.Driver { return blind{memory.New(memory.Options{})} }},
}

// unasked says that no commit took effect, trusting that each did.
type (
	unasked  struct{ *memory.Store }
	trusting struct{ *memory.Store }
)

func (unasked) Committed(context.Context, pawl.ID) (bool, error)  { return false, nil }
func (trusting) Committed(context.Context, pawl.ID) (bool, error) { return true, nil }

// sloppy commits although fn has failed.
type sloppy struct{ *memory.Store }

func (d sloppy) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) (failed error) {
	if err := d.Store.Update(ctx, batch, func(tx store.Tx) error { failed = fn(tx); return nil }); err != nil {
		return err
	}
	return failed
}

// forgetful loses the operations that a batch with a change of sources has.
type forgetful struct{ *memory.Store }

func (d forgetful) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	return d.Store.Update(ctx, batch, func(tx store.Tx) error { return fn(forgetfulTx{tx}) })
}

type forgetfulTx struct{ store.Tx }

func (t forgetfulTx) Save(r *ledger.Rows) error {
	if changed(&r.Sources) == "" {
		return t.Tx.Save(r)
	}
	kept := *r
	kept.Operations = ledger.Table[pawl.ID, ledger.Operation]{}
	return t.Tx.Save(&kept)
}

// blind records every source as absent where a batch asks for two.
type blind struct{ *memory.Store }

func (d blind) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	return d.Store.Update(ctx, batch, func(tx store.Tx) error { return fn(blindTx{tx}) })
}

type blindTx struct{ store.Tx }

func (t blindTx) Load(k *ledger.Keys, r *ledger.Rows) error {
	if len(k.Sources) > 1 {
		r.Sources.Loaded(k.Sources[1], ledger.Source{Name: k.Sources[1]}, true)
	}
	return t.Tx.Load(k, r)
}

// found reports whether one of a hundred sequences shows a difference.
func found(t *testing.T, open Open, decide Decider, generators []Generator) bool {
	one := rapid.Custom(func(rt *rapid.T) string { return cut(t, rt, open, decide, generators) })
	for seed := range 100 {
		if one.Example(seed) != "" {
			return true
		}
	}
	return false
}

func TestMutantsAreFound(t *testing.T) {
	if found(t, openMemory, decide, plays) {
		t.Fatal("the sound batcher shows a difference")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if !found(t, m.open, m.decide, plays) {
				t.Error("it was not found")
			}
		})
	}
}

func TestChangeBySecondRunIsFound(t *testing.T) {
	careless := []Generator{{Name: "count", Make: makeCount}}
	if !found(t, openMemory, decide, careless) {
		t.Error("a command that is not safe to run twice was not found")
	}
}
