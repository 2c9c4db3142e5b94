package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl"
)

// Options narrow what a plan may contain. The zero value is everything.
type Options struct {
	// Dialects to use; none stands for all.
	Dialects []Dialect
	// Without lists faults that must not occur.
	Without []Fault
	// Price is what every operation reserves, 0.15 if not above zero.
	Price pawl.Amount
	// Currency of all prices, USD if empty.
	Currency string
	// NoLookup closes the native dialect's lookup by client reference, as for
	// an upstream that has none.
	NoLookup bool
}

// Plan holds the scripts of n operations, numbered from 0. It is immutable and
// safe for concurrent use.
type Plan struct {
	seed    uint64
	options Options
	scripts []Script
}

// NewPlan draws a plan. It is a pure function of its arguments, and the script
// of one operation depends on the seed and its number only, not on n.
func NewPlan(seed uint64, n int, options Options) Plan {
	if len(options.Dialects) == 0 {
		options.Dialects = Dialects()
	}
	if options.Price <= 0 {
		options.Price = 15 * pawl.AmountScale / 100
	}
	if options.Currency == "" {
		options.Currency = "USD"
	}
	p := Plan{seed: seed, options: options, scripts: make([]Script, n)}
	for i := range p.scripts {
		p.scripts[i] = draw(seed, i, options)
	}
	return p
}

// Len is the number of scripts.
func (p Plan) Len() int { return len(p.scripts) }

// Currency is the currency of all prices.
func (p Plan) Currency() string { return p.options.Currency }

// Script is the script of operation n, and whether there is one.
func (p Plan) Script(n int) (Script, bool) {
	if n < 0 || n >= len(p.scripts) {
		return Script{}, false
	}
	s := p.scripts[n]
	s.Callbacks = slices.Clone(s.Callbacks)
	return s, true
}

// Hash is the hexadecimal SHA-256 of a canonical text of all scripts.
func (p Plan) Hash() string {
	h := sha256.New()
	fmt.Fprintln(h, p.options.Currency)
	for _, s := range p.scripts {
		s.write(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// FaultCount says how often a fault is injected.
type FaultCount struct {
	Fault Fault `json:"fault"`
	Count int   `json:"count"`
}

// Summary counts the faults of all scripts, each kind once in the order of
// [Faults], zeros included. Callbacks count one by one, creates and reads once
// a script.
func (p Plan) Summary() []FaultCount {
	counts := map[Fault]int{}
	for _, s := range p.scripts {
		s.faults(func(f Fault) { counts[f]++ })
	}
	var out []FaultCount
	for _, f := range Faults() {
		out = append(out, FaultCount{f, counts[f]})
	}
	return out
}
