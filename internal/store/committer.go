package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// Committer gathers commands into batches, one transaction each: while one
// commit is in flight the next batch fills. There is no timer, so an idle
// committer answers after one commit. Its methods are safe for concurrent use.
type Committer struct {
	batcher *Batcher
	// wake holds at most one token: something is waiting, or no more will come.
	wake chan struct{}
	// ended is closed when the last request is answered after Drain.
	ended chan struct{}
	// began is when the batch under way was begun; nil where there is none.
	began atomic.Pointer[time.Time]

	mu      sync.Mutex
	waiting []*request
	bytes   int
	closed  bool
}

// NewCommitter starts a committer over a driver. [Committer.Drain] or
// [Committer.Close] ends it; the driver is closed by its owner after that.
func NewCommitter(d Driver, opts Options) *Committer {
	c := &Committer{
		batcher: NewBatcher(d, opts),
		wake:    make(chan struct{}, 1),
		ended:   make(chan struct{}),
	}
	go c.loop()
	return c
}

// Do has a command decided and returns its outcome once the transaction that
// holds it is committed. It returns [ErrBusy] where the queue is full,
// [ErrClosed] after Drain, [ErrUnavailable] with its cause where the database
// could not take the command, and the context's error where that ends first:
// the command may take effect nevertheless.
func (c *Committer) Do(ctx context.Context, command ledger.Command) (ledger.Outcome, error) {
	return do(ctx, command, c.only)
}

// DoAll is [Committer.Do] for several commands that wait together, so that
// they share a commit as far as there is room. Their results are in the order
// of the commands; one that was refused does not hold up the others.
func (c *Committer) DoAll(ctx context.Context, commands ...ledger.Command) []Result {
	return doAll(ctx, commands, c.only)
}

// only is the committer of every request where there is but one.
func (c *Committer) only(*request) *Committer { return c }

// do has a command decided by the committer that is chosen for it.
func do(ctx context.Context, command ledger.Command, choose func(*request) *Committer) (ledger.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return ledger.Outcome{}, err
	}
	r := newRequest(command)
	if err := choose(r).enqueue(r); err != nil {
		return ledger.Outcome{}, err
	}
	return r.await(ctx)
}

func doAll(ctx context.Context, commands []ledger.Command, choose func(*request) *Committer) []Result {
	results := make([]Result, len(commands))
	waiting := make([]*request, len(commands))
	for i, command := range commands {
		r := newRequest(command)
		if results[i].Err = ctx.Err(); results[i].Err == nil {
			results[i].Err = choose(r).enqueue(r)
		}
		if results[i].Err == nil {
			waiting[i] = r
		}
	}
	for i, r := range waiting {
		if r != nil {
			results[i].Outcome, results[i].Err = r.await(ctx)
		}
	}
	return results
}

// Waiting is how many commands are in the queue now, for metrics.
func (c *Committer) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// Turned is when the loop was last seen to work: now, unless a batch is under way.
func (c *Committer) Turned() time.Time {
	if began := c.began.Load(); began != nil {
		return *began
	}
	return time.Now()
}

// Drain refuses further commands and returns when all that were accepted are
// answered, or with the context's error before that.
func (c *Committer) Drain(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close is [Committer.Drain] without a limit.
func (c *Committer) Close() error { return c.Drain(context.Background()) }

func (c *Committer) enqueue(r *request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &c.batcher.opts
	switch {
	case c.closed:
		return ErrClosed
	case len(c.waiting) >= o.Waiting || len(c.waiting) > 0 && c.bytes+r.size > o.WaitingBytes:
		return ErrBusy
	}
	c.waiting = append(c.waiting, r)
	c.bytes += r.size
	c.signal()
	return nil
}

func (c *Committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Committer) loop() {
	defer close(c.ended)
	var rest []*request
	for {
		batch, closed := c.take(rest)
		if len(batch) == 0 {
			if closed {
				return
			}
			<-c.wake
			continue
		}
		now := time.Now()
		c.began.Store(&now)
		rest = c.batcher.step(context.Background(), batch, now.Add(c.batcher.opts.Patience))
		c.began.Store(nil)
	}
}

// take fills the next batch: what a miss has put off, then what waits, within
// the bounds of a batch.
func (c *Committer) take(rest []*request) (batch []*request, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &c.batcher.opts
	batch, bytes := append(make([]*request, 0, o.Batch), rest...), 0
	for _, r := range rest {
		bytes += r.size
	}
	n := 0
	for _, r := range c.waiting {
		if len(batch) > 0 && (len(batch) >= o.Batch || bytes+r.size > o.BatchBytes) {
			break
		}
		batch, bytes, n = append(batch, r), bytes+r.size, n+1
		c.bytes -= r.size
	}
	left := copy(c.waiting, c.waiting[n:])
	clear(c.waiting[left:])
	c.waiting = c.waiting[:left]
	return batch, c.closed
}
