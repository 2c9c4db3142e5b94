package listing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Pages of one source are spaced out, those of another do not wait for them.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		began := time.Now()
		for i := range 3 {
			for _, source := range []string{"a", "b"} {
				if err := p.Turn(t.Context(), source, time.Second); err != nil {
					t.Fatal(err)
				}
				if at := time.Since(began); at != time.Duration(i)*time.Second {
					t.Errorf("page %d of %s comes after %s", i, source, at)
				}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := p.Turn(ctx, "a", time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if err := p.Turn(t.Context(), "b", time.Second); err != nil || len(p.next) != 1 {
			t.Errorf("%d sources are kept, %v", len(p.next), err)
		}
	})
}
