package work

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// errNoUpstream: it is not configured, or not any more.
var errNoUpstream = errors.New("work: turn: no such upstream")

// turnEvery is how often somebody who waits for a turn looks for a free slot.
const turnEvery = 10 * time.Millisecond

// Turn waits for a turn among an upstream's reads, for a call that is no
// operation's, so that both together stay within its limits (7-rules R23). The
// call begins when Turn returns, and done, which must be called, ends it. The
// error is that of the context, or that there is no such upstream.
func (w *Worker) Turn(ctx context.Context, upstream string) (done func(), err error) {
	for {
		s := w.inForce()[slotKey{ledger.ReadQueue, upstream}]
		if s == nil {
			return nil, errNoUpstream
		}
		now, wait := time.Now(), turnEvery
		if s.take(1, now) == 1 {
			done, wait = func() { s.give(1) }, s.turn(now, true).Sub(now)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if done != nil {
				done()
			}
			return nil, ctx.Err()
		}
		if done != nil {
			return done, nil
		}
	}
}
