package sim

import (
	"container/heap"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// How long an event waits for what it depends on (see [Fault.needs]) before
// it is withheld for good: gateTries times gateWait.
const (
	gateWait  = 100 * time.Millisecond
	gateTries = 150
)

// job is one callback on its way.
type job struct {
	due     time.Time
	serial  int // keeps jobs of one moment in order
	task    *task
	call    Callback
	attempt int           // attempts made
	gate    int           // how often it waited for what it depends on
	tried   chan struct{} // closed after the first attempt, if anyone waits
}

// courier sends callbacks when they are due, with a bounded number of workers.
type courier struct {
	config  Config
	signers map[Dialect]signer
	book    *taskBook
	books   *books
	client  *http.Client
	ctx     context.Context
	stopped sync.WaitGroup
	wake    chan struct{}
	work    chan *job
	outage  *outage // what falls due during it is lost

	mu      sync.Mutex
	queue   jobQueue
	serial  int
	pending int           // jobs queued or being sent
	idle    chan struct{} // closed when pending falls to 0; nil if it is 0
}

func newCourier(ctx context.Context, config Config, signers map[Dialect]signer, book *taskBook, b *books, o *outage) *courier {
	c := &courier{
		config: config, signers: signers, book: book, books: b, outage: o, ctx: ctx,
		wake: make(chan struct{}, 1), work: make(chan *job),
		client: &http.Client{
			Timeout:   config.Timeout,
			Transport: &http.Transport{DialContext: config.Dial, MaxIdleConnsPerHost: config.Workers, IdleConnTimeout: 10 * time.Second},
			// Callbacks go to the address that was given and nowhere else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	c.stopped.Go(c.run)
	for range config.Workers {
		c.stopped.Go(c.serve)
	}
	return c
}

// close waits for all goroutines; the context must have been canceled.
func (c *courier) close() {
	c.stopped.Wait()
	c.client.CloseIdleConnections()
}

// schedule queues all callbacks of a task, and returns once those that come
// before the create's answer have been tried.
func (c *courier) schedule(ctx context.Context, t *task) {
	if t.callbackURL == "" {
		return
	}
	for _, call := range t.script.Callbacks {
		j := &job{due: t.real(call.At), task: t, call: call}
		if call.Fault != CallbackEarly {
			c.add(j)
			continue
		}
		j.tried = make(chan struct{})
		c.add(j)
		select {
		case <-j.tried:
		case <-ctx.Done():
		case <-c.ctx.Done():
		}
	}
}

func (c *courier) add(j *job) {
	c.mu.Lock()
	if c.pending++; c.pending == 1 {
		c.idle = make(chan struct{})
	}
	c.mu.Unlock()
	c.push(j)
}

func (c *courier) push(j *job) {
	c.mu.Lock()
	c.serial++
	j.serial = c.serial
	heap.Push(&c.queue, j)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *courier) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending--; c.pending == 0 {
		close(c.idle)
		c.idle = nil
	}
}

func (c *courier) wait(ctx context.Context) error {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return errors.New("sim server: wait: closed with callbacks unsent")
	}
}

// run hands due jobs to the workers.
func (c *courier) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		j, wait := c.next(time.Now())
		if j != nil {
			select {
			case c.work <- j:
				continue
			case <-c.ctx.Done():
				return
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.wake:
		case <-c.ctx.Done():
			return
		}
	}
}

// next takes the first due job, or says how long there is none.
func (c *courier) next(now time.Time) (*job, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil, time.Hour
	}
	if wait := c.queue[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&c.queue).(*job), 0
}

func (c *courier) serve() {
	for {
		select {
		case j := <-c.work:
			if again := c.handle(j); again > 0 {
				j.due = time.Now().Add(again)
				c.push(j)
			} else {
				c.finish()
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// jobQueue is a heap by due time.
type jobQueue []*job

// Len is for package heap.
func (q jobQueue) Len() int { return len(q) }

// Less is for package heap.
func (q jobQueue) Less(i, k int) bool {
	if q[i].due.Equal(q[k].due) {
		return q[i].serial < q[k].serial
	}
	return q[i].due.Before(q[k].due)
}

// Swap is for package heap.
func (q jobQueue) Swap(i, k int) { q[i], q[k] = q[k], q[i] }

// Push is for package heap.
func (q *jobQueue) Push(x any) { *q = append(*q, x.(*job)) }

// Pop is for package heap.
func (q *jobQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
