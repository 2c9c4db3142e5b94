package store

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// maxMisses bounds how many keys a command may learn with no other command
// before it in its batch.
const maxMisses = 8

// sized is what a command may tell about itself: the bytes it carries.
type sized interface{ Size() int }

// request is a command on its way, with what its misses have taught.
type request struct {
	command ledger.Command
	size    int
	keys    ledger.Keys
	misses  int
	answer  chan Result
}

// Result is what became of one command: an outcome, or the error that kept it
// from one.
type Result struct {
	Outcome ledger.Outcome
	// Err is [ErrUnavailable] wrapping the cause, or nil.
	Err error
}

// newRequest asks the command for its keys, in the goroutine of its caller: a
// panic in there is the caller's.
func newRequest(c ledger.Command) *request {
	r := &request{command: c, answer: make(chan Result, 1)}
	c.Keys(&r.keys)
	if a, ok := c.(ledger.Alone); ok {
		r.keys.Alone = a.Alone()
	}
	if s, ok := c.(sized); ok {
		r.size = s.Size()
	}
	return r
}

// learn adds the keys of a miss to the command's own, which then asks for all
// that follows from its operations. In first place it
// reports false where that cannot help: the keys were asked for already, or
// there were too many misses. Behind other commands a key that was asked for
// may be missed rightly, since those commands may have used up a window.
func (r *request) learn(m ledger.Miss, first bool) bool {
	before, alone := r.keys.Len(), r.keys.Alone
	r.keys.Merge(m.Keys)
	if !first {
		return true
	}
	r.misses++
	return r.misses <= maxMisses && (alone || r.keys.Len() > before)
}

// await is the answer, or the context's error where that comes first.
func (r *request) await(ctx context.Context) (ledger.Outcome, error) {
	select {
	case result := <-r.answer:
		return result.Outcome, result.Err
	case <-ctx.Done():
		return ledger.Outcome{}, ctx.Err()
	}
}

func (r *request) fail(err error) { r.answer <- Result{Err: err} }

// failMiss answers a command that keeps asking for rows it does not load.
func (r *request) failMiss() {
	r.answer <- Result{Outcome: ledger.Outcome{
		Fate: ledger.Dropped, Reason: "miss",
		Err: &pawl.Error{Kind: pawl.Internal, Reason: "miss", Message: "the command failed by a fault of ours"},
	}}
}
