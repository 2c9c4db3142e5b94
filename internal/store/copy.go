package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// TableCount is how many rows a table has.
type TableCount struct {
	Table string
	Rows  int64
}

// Whole reads a ledger as a whole, table by table.
type Whole interface {
	Facts
	Seals
	// Counts are the rows of every table, in the order in which they are copied.
	Counts(ctx context.Context) ([]TableCount, error)
	// Export hands over the rows of a table in the order of their keys, except
	// the first ones, until a call of row fails.
	Export(ctx context.Context, table string, skip int64, row func(any) error) error
	// LastBatch is the id of the latest batch, zero where none is remembered.
	LastBatch(ctx context.Context) (pawl.ID, error)
}

// CopyState is how far the copy of another ledger is.
type CopyState struct {
	// Source is the other ledger as it was; see [Identity].
	Source pawl.ID
	// Table is the table under way, and Done how many of its rows are here; those
	// before it are whole.
	Table                 string
	Done                  int64
	StartedAt, FinishedAt pawl.Time
}

// CopyTarget takes the copy of another ledger.
type CopyTarget interface {
	Whole
	// CopyState is that of the copy which this ledger is; ok is false where it is
	// none.
	CopyState(ctx context.Context) (state CopyState, ok bool, err error)
	// Import adds rows and records the state, in one transaction. Rows may be nil.
	Import(ctx context.Context, state CopyState, rows *ledger.Rows) error
}

// The reasons why a copy is refused.
var (
	// ErrNotEmpty: the target holds a ledger.
	ErrNotEmpty = errors.New("the target holds a ledger already: name an empty database, or an empty folder")
	// ErrOtherCopy: the target holds an unfinished copy of something else.
	ErrOtherCopy = errors.New("the target holds an unfinished copy of another ledger, or of this one before it was served again: empty the target and begin anew")
	// ErrCopied: the copy was finished before.
	ErrCopied = errors.New("this ledger was copied there already: there is nothing left to do")
	// ErrServedSource: the source changed while it was copied.
	ErrServedSource = errors.New("the source was served while it was copied: stop its servers, empty the target and begin anew")
	// ErrUnfinishedCopy: a node was to be started on half a ledger.
	ErrUnfinishedCopy = errors.New("this ledger is the unfinished copy of another one: run the same \"pawl copy\" again, it goes on from there")
)

// Identity tells a ledger as it is now from any other, and from itself after
// another commit.
func Identity(ctx context.Context, w Whole) (pawl.ID, error) {
	last, err := w.LastBatch(ctx)
	if err != nil {
		return pawl.ID{}, err
	}
	keys, err := w.WrappingKeys(ctx)
	sum := sha256.New()
	sum.Write(last[:])
	for _, k := range keys {
		fmt.Fprintf(sum, "%q %q %d", k.Name, k.Root, k.CreatedAt)
	}
	return pawl.ID(sum.Sum(nil)[:len(pawl.ID{})]), err
}

// The bounds of one transaction of a copy.
const (
	copyRows  = 2000
	copyBytes = 4 << 20
)

// CopyProgress is how far a copy is.
type CopyProgress struct {
	Table       string
	Done, Total int64
}

// Copy copies a ledger that nobody changes meanwhile into an empty one, or goes
// on with such a copy where it was interrupted, and compares the number of rows
// of every table at the end. It returns what was counted. Whoever copies must
// check both ledgers by [Check].
func Copy(ctx context.Context, from Whole, to CopyTarget, progress func(CopyProgress)) ([]TableCount, error) {
	c := copying{from: from, to: to, progress: progress}
	var err error
	if c.counts, err = from.Counts(ctx); err != nil {
		return nil, err
	}
	for _, t := range c.counts {
		c.now.Total += t.Rows
	}
	if err := c.begin(ctx); err != nil {
		return c.counts, err
	}
	for i, t := range c.counts {
		if i < c.first {
			c.now.Done += t.Rows
			continue
		}
		if err := c.table(ctx, t); err != nil {
			return nil, fmt.Errorf("copy %s: %w", t.Table, err)
		}
	}
	return c.counts, c.end(ctx)
}

type copying struct {
	from     Whole
	to       CopyTarget
	progress func(CopyProgress)

	counts []TableCount
	state  CopyState
	// first is the place of the table where it goes on.
	first int
	now   CopyProgress
}

// begin claims the target, or finds the place in it.
func (c *copying) begin(ctx context.Context) error {
	source, err := Identity(ctx, c.from)
	if err != nil {
		return err
	}
	state, ok, err := c.to.CopyState(ctx)
	switch {
	case err != nil:
		return err
	case ok && state.FinishedAt != 0 && state.Source == source:
		return ErrCopied
	case ok && state.FinishedAt == 0 && state.Source == source:
		c.state = state
		for i, t := range c.counts {
			if t.Table == state.Table {
				c.first = i
				return nil
			}
		}
		return ErrOtherCopy
	case ok && state.FinishedAt == 0:
		return ErrOtherCopy
	}
	counts, err := c.to.Counts(ctx)
	if err != nil {
		return err
	}
	for _, t := range counts {
		if t.Rows > 0 {
			return ErrNotEmpty
		}
	}
	c.state = CopyState{Source: source, Table: c.counts[0].Table, StartedAt: pawl.TimeOf(time.Now())}
	return c.to.Import(ctx, c.state, nil)
}

// table copies a table, or what is missing of it.
func (c *copying) table(ctx context.Context, t TableCount) error {
	if c.state.Table != t.Table {
		c.state.Table, c.state.Done = t.Table, 0
	}
	c.now.Table = t.Table
	c.now.Done += c.state.Done
	rows, n, bytes := &ledger.Rows{}, 0, 0
	flush := func() error {
		if n == 0 {
			return nil
		}
		c.state.Done += int64(n)
		if err := c.to.Import(ctx, c.state, rows); err != nil {
			return err
		}
		c.now.Done += int64(n)
		rows, n, bytes = &ledger.Rows{}, 0, 0
		if c.progress != nil {
			c.progress(c.now)
		}
		return nil
	}
	err := c.from.Export(ctx, t.Table, c.state.Done, func(row any) error {
		rows.Add(row)
		n++
		if p, ok := row.(ledger.Payload); ok {
			bytes += len(p.Body)
		}
		if n < copyRows && bytes < copyBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// end compares what is there with what should be.
func (c *copying) end(ctx context.Context) error {
	there, err := c.to.Counts(ctx)
	if err != nil {
		return err
	}
	for i, t := range c.counts {
		if there[i] != t {
			return fmt.Errorf("%s has %d rows in the copy and %d in the source: empty the target and begin anew, with no server on either", t.Table, there[i].Rows, t.Rows)
		}
	}
	switch source, err := Identity(ctx, c.from); {
	case err != nil:
		return err
	case source != c.state.Source:
		return ErrServedSource
	}
	c.state.FinishedAt = pawl.TimeOf(time.Now())
	return c.to.Import(ctx, c.state, nil)
}
