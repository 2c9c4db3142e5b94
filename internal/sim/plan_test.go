package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
)

func TestPlanIsAFunctionOfItsSeed(t *testing.T) {
	a, b := NewPlan(7, 200, Options{}), NewPlan(7, 200, Options{})
	if a.Hash() != b.Hash() {
		t.Error("the same seed gave two hashes")
	}
	if len(a.Hash()) != 64 {
		t.Errorf("hash %q is not a hexadecimal SHA-256", a.Hash())
	}
	seen := map[string]uint64{}
	for seed := range uint64(50) {
		h := NewPlan(seed, 20, Options{}).Hash()
		if other, ok := seen[h]; ok {
			t.Errorf("seeds %d and %d have one hash", seed, other)
		}
		seen[h] = seed
	}
	if NewPlan(7, 20, Options{Currency: "EUR"}).Hash() == NewPlan(7, 20, Options{}).Hash() {
		t.Error("the currency is not part of the hash")
	}
}

func TestEveryFaultOccurs(t *testing.T) {
	p := NewPlan(1, 1000, Options{NoLookup: true})
	for _, c := range p.Summary() {
		if c.Count == 0 {
			t.Errorf("%s does not occur in 1,000 scripts", c.Fault)
		}
	}
	unlearnable, calm := 0, 0
	for i := range p.Len() {
		s, _ := p.Script(i)
		if !s.Learnable() {
			unlearnable++
		}
		faulty := false
		s.faults(func(Fault) { faulty = true })
		if !faulty {
			calm++
		}
	}
	if unlearnable == 0 || unlearnable > 200 {
		t.Errorf("%d of 1,000 scripts are not learnable, want some and less than a fifth", unlearnable)
	}
	if calm < 150 {
		t.Errorf("%d of 1,000 scripts are without fault, want at least 150", calm)
	}
}

func TestFaultsCanBeLeftOut(t *testing.T) {
	for _, f := range Faults() {
		for _, c := range NewPlan(1, 300, Options{Without: []Fault{f}}).Summary() {
			if c.Fault == f && c.Count != 0 {
				t.Errorf("%s occurs %d times although it is left out", f, c.Count)
			}
		}
	}
	for _, c := range NewPlan(1, 300, Options{Without: Faults()}).Summary() {
		if c.Count != 0 {
			t.Errorf("%s occurs although everything is left out", c.Fault)
		}
	}
}

func TestScriptsMakeSense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, n := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 1000).Draw(t, "n")
		price := pawl.Amount(rapid.Int64Range(1, 1e15).Draw(t, "price"))
		options := Options{Dialects: Dialects(), Price: price, Currency: "USD"}
		s := draw(seed, n, options)
		if whole, _ := NewPlan(seed, n+1, options).Script(n); whole.End != s.End || whole.Cost != s.Cost {
			t.Fatal("the script depends on more than seed and number")
		}
		if s.Cost < 0 || s.Cost > s.Price {
			t.Fatalf("cost %s of price %s", s.Cost, s.Price)
		}
		if (s.Final == pawl.Failed || s.Final == pawl.Expired) && s.Cost != 0 {
			t.Fatalf("%s costs %s, want nothing (1-product F2)", s.Final, s.Cost)
		}
		if s.Start > s.End || s.End > s.Settle || s.Start < 0 {
			t.Fatalf("times %s, %s, %s are not in order", s.Start, s.End, s.Settle)
		}
		checkWords(t, s)
		checkCallbacks(t, s)
	})
}

// checkWords holds the ends against the vocabularies of 2-contracts §2 and §3.
func checkWords(t *rapid.T, s Script) {
	words := map[Dialect][]string{
		Native:        {"succeeded", "failed", "canceled", "expired"},
		MediaV2:       {"succeeded", "failed", "expired"},
		BodyTimestamp: {"succeeded", "failed", "canceled"},
	}
	if !slices.Contains(words[s.Dialect], s.Dialect.word(s.Final)) {
		t.Fatalf("%s has no word for %s", s.Dialect, s.Final)
	}
}

func checkCallbacks(t *rapid.T, s Script) {
	if s.Create == CreateRefused && len(s.Callbacks) > 0 {
		t.Fatal("a refused create has callbacks")
	}
	if !slices.IsSortedFunc(s.Callbacks, func(a, b Callback) int { return int(a.At - b.At) }) {
		t.Fatal("callbacks are not in the order of their times")
	}
	ends, needsEnd := 0, false
	for _, c := range s.Callbacks {
		if c.Kind == TellsEnd && c.Fault.genuine() {
			ends++
			if c.At < s.End {
				t.Fatalf("the end at %s is told at %s", s.End, c.At)
			}
		}
		needsEnd = needsEnd || c.Fault == CallbackLate || c.Fault == CallbackConflict
	}
	if needsEnd && ends == 0 {
		t.Fatal("an event after the end, but the end is never told")
	}
	if ends == 0 && s.Create.unclear() && !s.Dialect.Idempotent() && !s.Lookup && s.Learnable() {
		t.Fatal("learnable by something else than the end: ambiguous")
	}
}

func TestLearnable(t *testing.T) {
	told := []Callback{{Event: "end", Kind: TellsEnd}}
	dropped := []Callback{
		{Event: "end", Kind: TellsEnd, Fault: CallbackDropped},
		{Event: "end", Kind: TellsEnd, Fault: CallbackBadSignature},
	}
	tests := []struct {
		name   string
		script Script
		want   bool
	}{
		{"answered", Script{Dialect: BodyTimestamp, Callbacks: dropped}, true},
		{"refused", Script{Dialect: BodyTimestamp, Create: CreateRefused}, true},
		{"limited", Script{Dialect: BodyTimestamp, Create: CreateLimited, Callbacks: dropped}, true},
		{"lost, told", Script{Dialect: BodyTimestamp, Create: CreateLost, Callbacks: told}, true},
		{"lost, silent", Script{Dialect: BodyTimestamp, Create: CreateLost, Callbacks: dropped}, false},
		{"slow, silent", Script{Dialect: Native, Create: CreateSlow, Callbacks: dropped}, false},
		{"503 after, silent", Script{Dialect: Native, Create: CreateFailedAfter, Callbacks: dropped}, false},
		{"lost, silent, lookup", Script{Dialect: Native, Lookup: true, Create: CreateLost, Callbacks: dropped}, true},
		{"503 before, lookup", Script{Dialect: Native, Lookup: true, Create: CreateFailedBefore}, false},
		{"503 before, idempotent", Script{Dialect: MediaV2, Create: CreateFailedBefore}, true},
		{"lost, silent, idempotent", Script{Dialect: MediaV2, Create: CreateLost, Callbacks: dropped}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.script.Final, test.script.Cost = pawl.Succeeded, 5
			state, charge := test.script.Expected()
			wantState, wantCharge := pawl.Succeeded, pawl.Amount(5)
			if !test.want {
				wantState, wantCharge = pawl.Unconfirmed, 0
			}
			if test.script.Learnable() != test.want || state != wantState || charge != wantCharge {
				t.Errorf("learnable %t, expected %s and %s; want %t, %s, %s",
					test.script.Learnable(), state, charge, test.want, wantState, wantCharge)
			}
		})
	}
}

func TestScriptIsACopy(t *testing.T) {
	p := planOf(Script{Callbacks: []Callback{{Event: "end", At: time.Second}}})
	s, _ := p.Script(0)
	s.Callbacks[0].Event = "changed"
	if again, _ := p.Script(0); again.Callbacks[0].Event != "end" {
		t.Error("a change of a returned script changed the plan")
	}
	if _, ok := p.Script(1); ok {
		t.Error("there is a script beyond the last")
	}
	if _, ok := p.Script(-1); ok {
		t.Error("there is a script -1")
	}
}

// planOf is a plan of handwritten scripts.
func planOf(scripts ...Script) Plan {
	p := NewPlan(1, 0, Options{Price: 150_000_000})
	for i := range scripts {
		scripts[i].N = i
		if scripts[i].Final == 0 {
			scripts[i].Final = pawl.Succeeded
		}
		scripts[i].Price = 150_000_000
	}
	p.scripts = scripts
	return p
}
