package sim

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Books is what a [Server] knows of its own work, sorted by operation number.
type Books struct {
	// Hash is that of the plan being played.
	Hash string `json:"hash"`
	// Unauthorized counts requests without an accepted API key.
	Unauthorized int         `json:"unauthorized"`
	Operations   []Operation `json:"operations"`
}

// Operation is the page of one operation. Those without a number in their
// input have negative numbers, in the order in which they came.
type Operation struct {
	N       int      `json:"n"`
	Creates []Create `json:"creates"`
	Tasks   []Task   `json:"tasks"`
	Lookups int      `json:"lookups"`
	// Cancels counts cancel calls, whatever came of them.
	Cancels int `json:"cancels"`
	// Callbacks has one entry for each attempt, in the order of their ends.
	Callbacks []Attempt `json:"callbacks"`
}

// Create is one create call that passed authentication.
type Create struct {
	// ClientRef is the client reference or idempotency key that it carried.
	ClientRef string `json:"client_ref"`
	// Status is the answer, 0 where the connection was closed without one.
	Status int `json:"status"`
	// Task is the task that it made or found, even if the client was not told.
	Task string `json:"task"`
	// Replayed marks the repeat of an idempotent create.
	Replayed bool  `json:"replayed"`
	Fault    Fault `json:"fault"`
}

// Task is one task as it stands: State is the word of an operation's state, pending
// for a task that waits; Cost is a decimal, the estimate until it is settled.
type Task struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Cost    string `json:"cost"`
	Settled bool   `json:"settled"`
	Reads   int    `json:"reads"`
	// Known says that the client has shown that it knows the task: it
	// acknowledged a callback, or asked for the task by its id.
	Known bool `json:"known"`
}

// Attempt is one attempt to send a callback, or the decision not to.
type Attempt struct {
	Task  string       `json:"task"`
	Event string       `json:"event"`
	Kind  CallbackKind `json:"kind"`
	Fault Fault        `json:"fault"`
	// Number counts from 1. It is 0 for what was not sent: dropped on purpose,
	// or withheld because the client never showed what it depends on.
	Number int `json:"number"`
	// Status is the receiver's answer, 0 for none.
	Status int `json:"status"`
}

// page is an operation's page while it is being written.
type page struct {
	creates   []Create
	tasks     []*task
	lookups   int
	cancels   int
	callbacks []Attempt
}

type books struct {
	mu           sync.Mutex
	unauthorized int
	pages        map[int]*page
}

// edit runs change on the page of operation n.
func (b *books) edit(n int, change func(*page)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pages[n]
	if p == nil {
		p = &page{}
		b.pages[n] = p
	}
	change(p)
}

func (b *books) refuseKey() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unauthorized++
}

func (b *books) snapshot(now time.Time) Books {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := Books{Unauthorized: b.unauthorized, Operations: []Operation{}}
	for _, n := range slices.SortedFunc(maps.Keys(b.pages), cmp.Compare[int]) {
		p := b.pages[n]
		o := Operation{
			N: n, Lookups: p.lookups, Cancels: p.cancels,
			Creates: slices.Clone(p.creates), Callbacks: slices.Clone(p.callbacks),
		}
		for _, t := range p.tasks {
			o.Tasks = append(o.Tasks, t.entry(now))
		}
		out.Operations = append(out.Operations, o)
	}
	return out
}

// entry is the task's line in the books.
func (t *task) entry(now time.Time) Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.at(t.elapsed(now))
	return Task{
		ID: t.id, State: r.state.String(), Cost: r.cost.String(),
		Settled: r.settled, Reads: t.reads, Known: t.known,
	}
}
