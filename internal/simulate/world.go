package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/internal/vault"
)

// epoch is when runs begin.
const epoch pawl.Time = 1_767_225_600_000_000

// world is one run.
type world struct {
	dice
	seedNumber uint64
	options    Options
	mood       mood
	struck     map[Fault]int
	// calm says that no further fault may strike: the run comes to its end.
	calm bool

	// now is true time; the database's clock and those of nodes may differ.
	now     pawl.Time
	agenda  agenda
	running *fiber

	driver *memory.Store
	// skew is how far the database's clock is ahead of true time.
	skew time.Duration
	// fault is what the next transaction meets, once; down is until when the
	// database takes nothing.
	fault memory.Step
	down  pawl.Time
	// pace is how long a commit may take: the longer, the larger the batches.
	pace time.Duration
	// dying counts down the steps of transactions until a node dies in one; quiet
	// says that the world itself is looking.
	dying int
	quiet bool
	// latest is the latest moment that the database's clock has shown; ranBack
	// says that it has shown an earlier one after that.
	latest  pawl.Time
	ranBack bool

	set       upstream.Set
	callbacks upstream.Callbacks
	vault     *vault.Vault
	nodes     []*node
	providers []*provider
	receivers map[string]*receiver
	tenants   []*tenant
	jobs      []*job
	books     books
	log       *eventLog

	violations []Violation
	commands   int
	commits    int
	steps      int
}

// errPlayed is what a played fault of the database says.
var errPlayed = errors.New("simulate: the database fails")

// after has something happen in a while.
func (w *world) after(d time.Duration, do func()) { w.agenda.add(w.now.Add(max(d, 0)), w.Uint32(), do) }

// databaseNow is the database's clock.
func (w *world) databaseNow() pawl.Time { return w.now.Add(w.skew) }

// violate notes that a rule does not hold, the first time for each rule.
func (w *world) violate(rule, format string, args ...any) {
	for _, v := range w.violations {
		if v.Rule == rule {
			return
		}
	}
	v := Violation{rule, fmt.Sprintf(format, args...)}
	w.violations = append(w.violations, v)
	w.trace("VIOLATION %s", v)
}

// trace tells of something that happened.
func (w *world) trace(format string, args ...any) {
	if w.options.Trace != nil {
		w.options.Trace(w.now.Std().Format("02 15:04:05.000000 ") + fmt.Sprintf(format, args...))
	}
}

// committed is told of every commit of every node.
func (w *world) committed(n *node, rows *ledger.Rows) {
	w.commits++
	w.log.add(rows)
	w.emitted(rows)
	w.books.write(rows, w.now)
	for id, change := range rows.Queues.Changes() {
		if change.Existed && change.Now.Ready() >= change.Was.Ready() && change.Now.PausedUntil >= change.Was.PausedUntil {
			continue
		}
		for _, other := range w.nodes {
			// A node knows of its own commits; the others look now and then.
			lag := w.lag()
			if other != n {
				lag += w.between(0, time.Second)
			}
			at := other.due(change.Now)
			if at == pawl.Never { // The gate of an upstream: what is behind it may be due.
				at = w.now
			}
			other.wake(other.loopOf(id.Kind), at.Add(lag))
		}
	}
	for id, change := range rows.Operations.Changes() {
		if change.Now.State == pawl.Unconfirmed && change.Was.State != pawl.Unconfirmed && w.percent(60) {
			w.after(w.between(time.Minute, 10*time.Minute), func() { w.decide(id) })
		}
	}
	for _, change := range rows.Events.Changes() {
		if change.Now.Parked && !(change.Existed && change.Was.Parked) {
			w.sweepAfter(change.Now.Source)
		}
	}
}

// sweepAfter has some node sweep when an orphan's time of grace is over.
func (w *world) sweepAfter(source string) {
	grace := w.set[source].Policy().OrphanGrace
	w.after(grace+w.between(time.Second, 20*time.Second), w.sweep)
}

// sweep has a node look for what no queue finds.
func (w *world) sweep() {
	n := pick(w.dice, w.nodes...)
	if !n.up || n.draining {
		w.after(w.between(time.Second, 15*time.Second), w.sweep)
		return
	}
	n.sweep()
}

// rows loads single rows as they are now.
func (w *world) rows(keys ledger.Keys) *ledger.Rows {
	rows := new(ledger.Rows)
	if err := w.driver.Load(noLimit, &keys, rows); err != nil {
		panic(err)
	}
	return rows
}

// operation is an operation as it is now.
func (w *world) operation(id pawl.ID) (ledger.Operation, bool) {
	return w.rows(ledger.Keys{Operations: []pawl.ID{id}}).Operations.Get(id)
}
