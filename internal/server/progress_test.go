package server

import (
	"net/http"
	"testing"
	"time"
)

// An idle node makes progress, and one whose ledger refuses everything; one whose
// batch hangs does not, and does again once that ends (OP-11).
func TestProgress(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		late := func() time.Duration { return time.Since(w.node.progressed()) }
		w.pass(time.Minute)
		if late() > time.Second {
			t.Errorf("idle: no progress for %s", late())
		}
		w.disk.state.Store(full)
		w.want(http.StatusServiceUnavailable, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "a"))
		w.pass(time.Minute)
		if late() > time.Second {
			t.Errorf("a ledger that refuses: no progress for %s", late())
		}
		w.disk.state.Store(works)
		w.disk.slow.Store(int64(20 * time.Second))
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "b") // Not known in time.
		}()
		w.pass(15 * time.Second)
		if late() < 15*time.Second {
			t.Errorf("a batch that hangs for 15 s: no progress for %s", late())
		}
		<-done
		w.disk.slow.Store(0)
		w.pass(time.Minute)
		if late() > time.Second {
			t.Errorf("after the batch: no progress for %s", late())
		}
	})
}
