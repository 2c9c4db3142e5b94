package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// maxRepeats bounds how often a batch is decided anew after a commit that
// turned out not to have taken effect, or after it was overtaken.
const maxRepeats = 3

// errMissed rolls a transaction back whose first command missed a row. It is
// begun anew, so that rows are locked in the order of the stages.
var errMissed = errors.New("store: the first command missed a row")

// Batcher decides commands in batches over a driver: the [Committer] without
// its queue, for callers that cut the batches themselves. It is used by one
// goroutine at a time.
type Batcher struct {
	driver Driver
	opts   Options
	now    pawl.Time
}

// NewBatcher is a batcher over a driver.
func NewBatcher(d Driver, opts Options) *Batcher {
	return &Batcher{driver: d, opts: opts.withDefaults()}
}

// Run decides the commands in their order, in one transaction unless a miss, a
// database error or an unknown commit makes it more, and returns their results
// in the same order. The context ends what has not been tried yet; what it
// interrupts is answered with [ErrUnavailable].
func (b *Batcher) Run(ctx context.Context, commands ...ledger.Command) []Result {
	batch := make([]*request, len(commands))
	for i, c := range commands {
		batch[i] = newRequest(c)
	}
	b.finish(ctx, batch, time.Now().Add(b.opts.Patience))
	results := make([]Result, len(batch))
	for i, r := range batch {
		results[i] = <-r.answer
	}
	return results
}

// finish steps until every request is answered.
func (b *Batcher) finish(ctx context.Context, batch []*request, until time.Time) {
	for len(batch) > 0 {
		batch = b.step(ctx, batch, until)
	}
}

// step answers at least the first request of the batch, and as many more as
// one transaction holds; it returns those that a miss has put off.
func (b *Batcher) step(ctx context.Context, batch []*request, until time.Time) (rest []*request) {
	for repeats := 0; ; {
		d, committed, err := b.attempt(ctx, batch)
		var commit *CommitError
		switch {
		case committed:
			b.answer(batch, d)
			return batch[len(d.outcomes):]
		case errors.Is(err, errMissed):
			if !batch[0].learn(*d.miss, true) {
				b.opts.Log.Error("command misses rows that it asked for", "command", fmt.Sprintf("%T", batch[0].command))
				batch[0].failMiss()
				return batch[1:]
			}
		case (errors.Is(err, errNotCommitted) || errors.Is(err, ErrOvertaken)) && repeats < maxRepeats && time.Now().Before(until):
			repeats++
		case errors.As(err, &commit) || len(batch) == 1 || !time.Now().Before(until) || ctx.Err() != nil:
			b.opts.Log.Error("batch failed", "commands", len(batch), "error", err)
			failAll(batch, fmt.Errorf("%w: %w", ErrUnavailable, err))
			return nil
		default:
			// One command may be what the database refuses: halves find it
			// without harm to the others.
			b.opts.Log.Warn("batch split", "commands", len(batch), "error", err)
			half := len(batch) / 2
			b.finish(ctx, batch[:half], until)
			b.finish(ctx, batch[half:], until)
			return nil
		}
	}
}

// decision is what one transaction has decided: outcomes of a prefix of its
// batch, and the miss that ended it.
type decision struct {
	rows     *ledger.Rows
	outcomes []ledger.Outcome
	miss     *ledger.Miss
	took     time.Duration
}

// attempt runs one transaction and says whether it is known to be committed.
func (b *Batcher) attempt(ctx context.Context, batch []*request) (d decision, committed bool, err error) {
	began := time.Now()
	id := pawl.NewID(pawl.TimeOf(began), rand.Uint64())
	limited, cancel := context.WithTimeout(ctx, b.opts.Patience)
	defer cancel()
	err = b.driver.Update(limited, id, func(tx Tx) (err error) {
		d, err = b.decide(tx, batch)
		return err
	})
	var commit *CommitError
	if errors.As(err, &commit) {
		err = b.settle(ctx, id, err)
	}
	d.took = time.Since(began)
	return d, err == nil, err
}

// decide loads what the batch needs, decides its commands in order up to a
// miss, and saves.
func (b *Batcher) decide(tx Tx, batch []*request) (decision, error) {
	d := decision{rows: new(ledger.Rows), outcomes: make([]ledger.Outcome, 0, len(batch))}
	keys := ledger.Keys{Alone: true}
	for _, r := range batch {
		keys.Merge(r.keys)
	}
	if err := tx.Load(&keys, d.rows); err != nil {
		return d, fmt.Errorf("load: %w", err)
	}
	// Asked for when the rows are locked: whoever waited for another node decides
	// later than it. The clock of the database may step back, the moments of
	// decisions do not: each command has its own, so that what it writes sorts by
	// time.
	now := b.next(tx.Now())
	draft := ledger.NewDraft(d.rows)
	for i, r := range batch {
		out, miss := draft.Run(r.command, now)
		if miss != nil {
			d.miss = miss
			if i == 0 {
				return d, errMissed
			}
			break
		}
		d.outcomes = append(d.outcomes, out)
		b.now = now
		now++
	}
	if err := tx.Save(d.rows); err != nil {
		return d, fmt.Errorf("save: %w", err)
	}
	return d, nil
}

// lastingStep is how far the database's clock must be behind to be believed.
const lastingStep = time.Minute

// next is the moment of the next decision. Moments rise even while the clock
// stands still or steps back a little; a clock that was far ahead and is right
// again is followed, since all work would wait until it had caught up (O-129).
func (b *Batcher) next(clock pawl.Time) pawl.Time {
	if clock <= b.now && b.now.Sub(clock) < lastingStep {
		return b.now + 1
	}
	return clock
}

// answer releases the outcomes of what is committed.
func (b *Batcher) answer(batch []*request, d decision) {
	if n := len(d.outcomes); n < len(batch) {
		batch[n].learn(*d.miss, false)
	}
	b.opts.OnCommit(Commit{Rows: d.rows, Commands: len(d.outcomes), Took: d.took})
	for i, out := range d.outcomes {
		if p, ok := out.Value.(ledger.Panic); ok {
			b.opts.Log.Error("command panicked", "command", fmt.Sprintf("%T", batch[i].command), "panic", p.Type, "stack", p.Stack)
		}
		batch[i].answer <- Result{Outcome: out}
	}
}

func failAll(batch []*request, err error) {
	for _, r := range batch {
		r.fail(err)
	}
}
