package simulate

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/internal/vault"
	"github.com/pawlhq/pawl/webhook"
)

// The bounds of a run: one that has not come to rest by then never will.
const (
	mostSteps   = 400_000
	mostVirtual = 120 * 24 * time.Hour
)

var silent = slog.New(slog.DiscardHandler)

// Run runs one seed. It does not return before the run has come to its end,
// good or bad; it is safe to call from several goroutines, each run by itself.
func Run(seed uint64, o Options) Result {
	began := time.Now()
	w := newWorld(seed, o)
	w.settle()
	for n := range w.operations() {
		j := w.newJob(n)
		if n > 0 && newDice(seed, fmt.Sprint("twin ", n)).percent(15) && w.jobs[n-1].command.CorrelationID != "" {
			j = w.jobs[n-1].twin(n)
		}
		w.jobs = append(w.jobs, j)
	}
	length := w.between(2*time.Minute, pick(w.dice, 10*time.Minute, 90*time.Minute))
	for _, j := range w.jobs {
		at := w.between(0, length)
		if w.percent(40) {
			at = w.between(0, 2*time.Second) // Many at once.
		}
		for range 1 + w.IntN(3)/2 {
			w.after(at+w.lag(), func() { w.submit(j, 1) })
		}
	}
	w.live(length)
	w.misfortune(length)
	for range 3 {
		w.after(w.between(0, length), w.check)
	}
	w.after(length, w.heal)
	w.rest()
	w.tidy()
	w.rest()
	w.verify()
	for _, n := range w.nodes {
		n.die()
	}
	return Result{
		Seed: seed, Operations: len(w.jobs), Faults: w.mood.faults(), Violations: w.violations, Struck: w.struck,
		Commands: w.commands, Commits: w.commits, Steps: w.steps, Virtual: w.now.Sub(epoch), Took: time.Since(began), Hash: w.log.hash(),
	}
}

func newWorld(seed uint64, o Options) *world {
	w := &world{
		dice: newDice(seed, "world"), seedNumber: seed, options: o, mood: newMood(seed, o.Faults), struck: map[Fault]int{},
		now: epoch, receivers: map[string]*receiver{}, set: upstream.Set{}, books: newBooks(), log: newEventLog(o.Hash),
	}
	w.driver = memory.New(memory.Options{Now: w.tick, Fault: w.strike})
	key, err := config.NewSecret("base64key://" + base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		panic(err)
	}
	if w.vault, err = vault.New(noLimit, key); err != nil {
		panic(err)
	}
	w.pace = pick(w.dice, time.Millisecond, 100*time.Millisecond, time.Second, 4*time.Second)
	w.callbacks = upstream.NewCallbacks("https://pawl.example", []byte("ledger"))
	for _, k := range kinds() {
		p := w.newProvider(k)
		w.providers = append(w.providers, p)
		w.set[p.name] = p.up
	}
	for i := range 1 + w.IntN(3) {
		w.nodes = append(w.nodes, &node{world: w, name: fmt.Sprint("node", i+1)})
	}
	for _, n := range w.nodes {
		n.start()
	}
	return w
}

// operations is how many jobs there are.
func (w *world) operations() int {
	drawn := 4 + newDice(w.seedNumber, "operations").IntN(28)
	if w.options.Operations > 0 {
		return w.options.Operations
	}
	return drawn
}

// tick is the database's clock as a transaction reads it.
func (w *world) tick() pawl.Time {
	now := w.databaseNow()
	w.ranBack = w.ranBack || now < w.latest
	w.latest = max(w.latest, now)
	return now
}

func (w *world) upstreamNames() []string {
	names := make([]string, len(w.providers))
	for i, p := range w.providers {
		names[i] = p.name
	}
	return names
}

// newSecret draws a secret of a scheme with shared secrets.
func (w *world) newSecret() string {
	s, err := webhook.NewSecret(source{w.dice})
	if err != nil {
		panic(err)
	}
	return s
}

func (w *world) standardSecret() string { return w.newSecret() }

// source reads from dice.
type source struct{ dice }

// Read is io.Reader's.
func (s source) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	return len(b), nil
}

// rest lets time run until nothing is due any more.
func (w *world) rest() {
	for {
		e, ok := w.agenda.next()
		if !ok {
			return
		}
		if w.steps++; w.steps > mostSteps || e.at.Sub(epoch) > mostVirtual {
			w.violate("a run comes to rest", "after %d steps and %v something is still due", w.steps, e.at.Sub(epoch))
			return
		}
		w.now = max(w.now, e.at)
		e.do()
	}
}

// tidy has people do what is left to them: decide what is open, and turn on
// again what is off.
func (w *world) tidy() {
	w.enableEndpoints()
	for _, p := range w.providers {
		w.person("resume", func(n *node) { _, _ = n.Do(noLimit, w.resumption(p)) })
	}
	open, err := w.driver.Reviews(noLimit, store.ReviewFilter{Open: true}, wide)
	if err != nil {
		panic(err)
	}
	for _, r := range open {
		if w.percent(70) {
			w.after(w.between(time.Minute, 2*time.Hour), func() { w.resolve(r) })
		}
	}
}

// check holds the ledger against its invariants, which hold at every moment.
func (w *world) check() {
	_, err := store.Check(noLimit, w.driver, func(v ledger.Violation) error {
		// What was first is told by times, which tells nothing once a clock has run
		// back; the world has looked itself.
		if !w.ranBack || !strings.HasSuffix(v.Detail, "wanted it and has no delivery") {
			w.violate(v.Rule, "%s: %s", v.Row, v.Detail)
		}
		return nil
	}, nil)
	if err != nil {
		panic(err)
	}
}
