package work

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// turning is a worker whose one upstream has these slots for reads.
func turning(n int, spacing time.Duration) *Worker {
	var s *slots
	return &Worker{slots: map[slotKey]*slots{{ledger.ReadQueue, "up"}: s.resized(n, spacing, nil)}}
}

// Turns are spaced like reads, and with them.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := turning(8, 500*time.Millisecond)
		began := time.Now()
		for i := range 4 {
			if i == 2 { // A read takes its turn between.
				s := w.slots[slotKey{ledger.ReadQueue, "up"}]
				s.take(1, time.Now())
				s.turn(time.Now(), true)
			}
			done, err := w.Turn(t.Context(), "up")
			if err != nil {
				t.Fatal(err)
			}
			done()
			want := []time.Duration{0, 500, 1500, 2000}[i] * time.Millisecond
			if at := time.Since(began); at < want || at > want+2*turnEvery {
				t.Errorf("turn %d comes after %s, want %s", i, at, want)
			}
		}
	})
}

// Without a free slot nobody has a turn, and a context ends the wait.
func TestTurnWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := turning(1, 0)
		done, err := w.Turn(t.Context(), "up")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.Turn(ctx, "up"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		done()
		if done, err = w.Turn(t.Context(), "up"); err != nil {
			t.Fatal(err)
		}
		done()
		if _, err := w.Turn(t.Context(), "other"); !errors.Is(err, errNoUpstream) {
			t.Error(err)
		}
		// Whoever gives up between slot and turn gives both back.
		w = turning(1, time.Hour)
		if done, err = w.Turn(t.Context(), "up"); err != nil {
			t.Fatal(err)
		}
		done()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Turn(ctx, "up"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(3 * time.Hour)
		if n := w.slots[slotKey{ledger.ReadQueue, "up"}].free(time.Now()); n != 1 {
			t.Errorf("%d slots are free", n)
		}
	})
}
