package simulate

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// order is a command on its way to a commit.
type order struct {
	command ledger.Command
	answer  func(store.Result)
}

// stamped is a command whose header is drawn from the run's seed.
type stamped struct {
	ledger.Command
	head ledger.Header
}

// Head is the drawn header.
func (c stamped) Head() ledger.Header { return c.head }

func (w *world) stamp(c ledger.Command) ledger.Command {
	if a, ok := c.(ledger.RecordAttempt); ok {
		a.Duration = 0 // It is measured by the machine's clock.
		c = a
	}
	return stamped{c, ledger.Header{Seed: w.seed(), Actor: c.Head().Actor}}
}

// Do has a command decided, as a node's committer does. A failure is
// followed by as many tries of the same command as the running fiber makes.
func (n *node) Do(_ context.Context, c ledger.Command) (ledger.Outcome, error) {
	c = n.world.stamp(c)
	for tries := 1; ; tries++ {
		r := n.decide(c)[0]
		if r.Err == nil || tries >= n.world.running.tries {
			return r.Outcome, r.Err
		}
		n.sleep(n.world.between(50*time.Millisecond, 2*time.Second))
	}
}

// DoAll has several commands decided.
func (n *node) DoAll(_ context.Context, commands ...ledger.Command) []store.Result {
	all := make([]ledger.Command, len(commands))
	for i, c := range commands {
		all[i] = n.world.stamp(c)
	}
	return n.decide(all...)
}

// decide puts commands into the node's queue and waits for their answers.
func (n *node) decide(commands ...ledger.Command) []store.Result {
	results := make([]store.Result, len(commands))
	if len(commands) == 0 {
		return results
	}
	f, left := n.world.running, len(commands)
	for i, c := range commands {
		n.waiting = append(n.waiting, &order{c, func(r store.Result) {
			results[i] = r
			if left--; left == 0 {
				n.after(n.world.lag(), f.resume)
			}
		}})
	}
	n.commitSoon()
	n.world.wait()
	return results
}

func (n *node) commitSoon() {
	if n.committing || len(n.waiting) == 0 {
		return
	}
	n.committing = true
	n.after(n.world.lag()+n.world.between(0, n.world.pace), n.commit)
}

// commit decides some of what waits, in one batch.
func (n *node) commit() {
	w := n.world
	n.committing = false
	size := len(n.waiting)
	if w.percent(15) {
		w.Shuffle(size, func(i, k int) { n.waiting[i], n.waiting[k] = n.waiting[k], n.waiting[i] })
	}
	if w.percent(25) {
		size = 1 + w.IntN(size)
	}
	batch := append([]*order(nil), n.waiting[:size]...)
	n.waiting = append([]*order(nil), n.waiting[size:]...)
	n.commitSoon()
	results := n.run(batch)
	if results == nil {
		n.crash()
		return
	}
	for i, r := range results {
		if r.Err == nil && w.hit(CommitUnknown, 15) {
			r = store.Result{Err: store.ErrUnavailable}
		}
		batch[i].answer(r)
	}
}

// run decides a batch and writes into the books what took effect. It gives nil
// where the node died meanwhile.
func (n *node) run(batch []*order) (results []store.Result) {
	w := n.world
	results = make([]store.Result, len(batch))
	if w.down > w.now {
		for i := range results {
			results[i].Err = store.ErrUnavailable
		}
		return results
	}
	commands := make([]ledger.Command, len(batch))
	for i, o := range batch {
		commands[i] = o.command
	}
	w.fault, w.dying = 0, 0
	for _, f := range [...]struct {
		fault Fault
		step  memory.Step
	}{{CommitLost, memory.BeforeCommit}, {CommitHidden, memory.AfterCommit}, {StoreError, memory.OnLoad}, {StoreError, memory.OnSave}} {
		if w.hit(f.fault, 12) {
			w.fault = f.step
		}
	}
	dies := w.hit(NodeCrashCommit, 6)
	if dies {
		w.dying = 1 + w.IntN(6)
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case killed:
			dies = true
		default:
			panic(p)
		}
		if w.dying = 0; dies {
			results = nil
		}
	}()
	results = n.batcher.Run(noLimit, commands...)
	for i, r := range results {
		w.decided(n, commands[i].(stamped).Command, r)
	}
	return results
}
