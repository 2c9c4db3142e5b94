package intake

import (
	"context"
	"sync"
	"time"
)

// The turns in which large bodies are read. Anybody may send to a source's
// address, but only who was given it to an operation's own one, which was found
// genuine before: these have turns of their own, so that no stranger takes them.
const (
	// turnsOfKind is how many there are at once for each of the two.
	turnsOfKind = 8
	// turnsOfSource is how many of these one source has at most.
	turnsOfSource = 4
)

// address is where a body came to: a source, and whether it was at the genuine
// address of an operation.
type address struct {
	source  string
	genuine bool
}

// turns gives them out. Safe for concurrent use.
type turns struct {
	genuine, others chan struct{}

	mu sync.Mutex
	// each holds those of an address; there are as many as sources are configured.
	each map[address]chan struct{}
}

func newTurns() *turns {
	return &turns{genuine: make(chan struct{}, turnsOfKind), others: make(chan struct{}, turnsOfKind), each: map[address]chan struct{}{}}
}

func (t *turns) of(at address) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	own, ok := t.each[at]
	if !ok {
		own = make(chan struct{}, turnsOfSource)
		t.each[at] = own
	}
	return own
}

// take waits for a turn, for largeWait at most; the error is errBusy or the
// context's. The caller gives it back.
func (t *turns) take(ctx context.Context, at address) (give func(), err error) {
	wait := time.NewTimer(largeWait)
	defer wait.Stop()
	own, all := t.of(at), t.others
	if at.genuine {
		all = t.genuine
	}
	if err := await(ctx, own, wait.C); err != nil {
		return nil, err
	}
	if err := await(ctx, all, wait.C); err != nil {
		<-own
		return nil, err
	}
	return func() { <-all; <-own }, nil
}

func await(ctx context.Context, turn chan<- struct{}, over <-chan time.Time) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-over:
		return errBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}
