package outbox_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
)

// What panics while it is sent is an attempt that failed (O-107): the process
// goes on, the attempts are counted, and the last one makes a dead letter. Other
// deliveries are made meanwhile.
func TestO107PanicIsAFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) {
			ep.Policy = `{"attempts":3,"schedule":["0s","10s","20s"]}`
		})
		b.accept(b.submit())
		broken := b.opts
		broken.Client = nil // Whatever is sent panics.
		first := *b
		first.box = outbox.New(broken)
		stop := first.run()
		time.Sleep(5 * time.Second)
		if row := b.only(ep.ID); row.State != pawl.DeliveryPending || row.Attempts != 1 || row.Leased {
			t.Errorf("after the first panic: %+v", row)
		}
		time.Sleep(time.Minute)
		stop()
		row := b.only(ep.ID)
		if row.State != pawl.DeliveryDead || row.Reason != "attempts_exhausted" || row.Attempts != 3 {
			t.Errorf("after three panics: %+v", row)
		}
		for _, a := range b.attempts(row.ID) {
			if a.Error != "the attempt failed by a fault of ours" {
				t.Errorf("%+v", a)
			}
		}
		if n := strings.Count(b.log.String(), "background work panicked"); n != 3 {
			t.Errorf("the log tells of %d panics, want 3", n)
		}
		other := b.endpoint("http://b.example/hook")
		b.accept(b.submit())
		stop = b.run()
		time.Sleep(time.Minute)
		stop()
		if row := b.only(other.ID); row.State != pawl.DeliveryDelivered {
			t.Errorf("the other delivery: %+v", row)
		}
	})
}
