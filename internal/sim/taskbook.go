package sim

import (
	"fmt"
	"sync"
	"time"
)

// idempotencyWindow is how long a key of the media-v2 dialect names its task
// (2-contracts §2).
const idempotencyWindow = 24 * time.Hour

// taskBook finds tasks by what clients know. Tasks are never removed.
type taskBook struct {
	tag string // of the plan, so that ids of several runs never meet

	mu        sync.Mutex
	byID      map[string]*task
	order     []*task
	byRef     map[string]*task // native: the first task of a client reference
	keys      map[string]idempotencyKey
	creates   map[int]int    // how many creates came, by operation number
	unplanned map[string]int // client reference → negative operation number
	strangers int            // how many negative numbers were given
}

type idempotencyKey struct {
	apiKey, fingerprint string
	at                  time.Time
	task                *task
}

func newTaskBook(tag string) *taskBook {
	return &taskBook{
		tag: tag, byID: map[string]*task{}, byRef: map[string]*task{},
		keys: map[string]idempotencyKey{}, creates: map[int]int{}, unplanned: map[string]int{},
	}
}

// stranger gives a number to an operation that named none.
func (b *taskBook) stranger(ref string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, ok := b.unplanned[ref]; ok && ref != "" {
		return n
	}
	b.strangers++
	b.unplanned[ref] = -b.strangers
	return -b.strangers
}

// countCreate returns how many creates of operation n came before this one.
func (b *taskBook) countCreate(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.creates[n]++
	return b.creates[n] - 1
}

// keyState says what an idempotency key means for a create.
type keyState int

const (
	keyNew keyState = iota
	keyReplay
	keySibling  // another API key holds it
	keyMismatch // it was used for another request
)

// lookupKey judges a key; the lock must be held.
func (b *taskBook) lookupKey(c createCall, now time.Time) (*task, keyState) {
	k, ok := b.keys[c.idempotencyKey]
	switch {
	case !ok || now.Sub(k.at) >= idempotencyWindow:
		return nil, keyNew
	case k.apiKey != c.apiKey:
		return nil, keySibling
	case k.fingerprint != c.fingerprint():
		return nil, keyMismatch
	}
	return k.task, keyReplay
}

// add makes the task of a create, or finds the one that its key names.
func (b *taskBook) add(c createCall, t *task, now time.Time) (*task, keyState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.dialect.Idempotent() {
		if old, state := b.lookupKey(c, now); state != keyNew {
			return old, state
		}
	}
	prefix := map[Dialect]string{Native: "sim-", MediaV2: "job_", BodyTimestamp: "task_"}[c.dialect]
	name := fmt.Sprintf("%s-%d-%d", b.tag, t.script.N, len(b.order)+1)
	t.id, t.eventPrefix, t.made = prefix+name, name, now
	b.byID[t.id] = t
	b.order = append(b.order, t)
	if c.dialect.Idempotent() {
		b.keys[c.idempotencyKey] = idempotencyKey{c.apiKey, c.fingerprint(), now, t}
	} else if c.clientRef != "" && b.byRef[c.clientRef] == nil {
		b.byRef[c.clientRef] = t
	}
	return t, keyNew
}

func (b *taskBook) find(d Dialect, id string) (*task, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.byID[id]
	return t, ok && t.script.Dialect == d
}

func (b *taskBook) findRef(ref string) (*task, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.byRef[ref]
	return t, ok
}

// neighbor is a task of another operation in the same dialect, "" for none.
func (b *taskBook) neighbor(of *task) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.order) - 1; i >= 0; i-- {
		if t := b.order[i]; t.script.Dialect == of.script.Dialect && t.script.N != of.script.N {
			return t.id
		}
	}
	return ""
}
