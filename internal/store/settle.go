package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
)

// errNotCommitted: a commit failed and is known to have left nothing.
var errNotCommitted = errors.New("store: the commit did not take effect")

// The pauses between two questions for a commit's outcome.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// settle finds out what became of a commit that failed with cause: nil means
// that it took effect, [errNotCommitted] that it did not, and the cause itself
// that the database did not tell in time. It goes on asking after the batch's
// own context has ended, since nothing may be run again before the answer.
func (b *Batcher) settle(ctx context.Context, batch pawl.ID, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.opts.Patience)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		switch committed, err := b.driver.Committed(ctx, batch); {
		case err == nil && committed:
			return nil
		case err == nil:
			return fmt.Errorf("%w: %w", errNotCommitted, cause)
		}
		select {
		case <-ctx.Done():
			return cause
		case <-time.After(pause):
		}
	}
}
