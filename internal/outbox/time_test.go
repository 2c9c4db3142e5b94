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

// The whole schedule of 7-rules §5 and of 2-contracts §3, each wait within
// ±10 % of the table.
func TestSchedules(t *testing.T) {
	for scheme, waits := range map[string][]time.Duration{
		"standard-webhooks": {5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
			10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour},
		"body-timestamp": {500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{answer: statuses(500)}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) { ep.Scheme = scheme })
			b.accept(b.submit())
			stop := b.run()
			time.Sleep(5 * 24 * time.Hour)
			stop()
			all := x.requests()
			if len(all) != len(waits)+1 {
				t.Fatalf("%s: %d attempts, want %d", scheme, len(all), len(waits)+1)
			}
			for i, want := range waits {
				wait := all[i+1].at.Sub(all[i].at)
				if wait < want*9/10 || wait > want*11/10+time.Millisecond {
					t.Errorf("%s: wait %d is %v, want %v ± 10 %%", scheme, i+1, wait, want)
				}
			}
			if row := b.only(ep.ID); row.State != pawl.DeliveryDead || row.Reason != "attempts_exhausted" {
				t.Errorf("%s: %s %s", scheme, row.State, row.Reason)
			}
		})
	}
}

func TestOwnPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{answer: func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) {
			ep.Policy = `{"attempts":2,"timeout":"2s","schedule":["0s","60s"]}`
		})
		b.accept(b.submit())
		stop := b.run()
		time.Sleep(time.Hour)
		stop()
		row := b.only(ep.ID)
		if row.State != pawl.DeliveryDead || row.Attempts != 2 {
			t.Fatalf("%+v", row)
		}
		for _, a := range b.attempts(row.ID) {
			if a.Duration != 2*time.Second || a.Status != 0 || !strings.Contains(a.Error, "in time") {
				t.Errorf("%+v", a)
			}
		}
	})
}

// An endpoint that does not answer holds its slot for the policy's timeout.
func TestTimeout(t *testing.T) {
	for scheme, timeout := range map[string]time.Duration{"standard-webhooks": 15 * time.Second, "body-timestamp": 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{answer: func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) { ep.Scheme = scheme })
			b.accept(b.submit())
			stop := b.run()
			time.Sleep(timeout - time.Millisecond)
			row := b.only(ep.ID)
			if left := row.DueAt.Sub(pawl.TimeOf(time.Now())).Round(10 * time.Millisecond); row.Attempts != 0 || !row.Leased || left != 15*time.Second {
				t.Errorf("%s: the lease has %v left, want 15s: %+v", scheme, left, row)
			}
			time.Sleep(2 * time.Millisecond)
			if row := b.only(ep.ID); row.Attempts != 1 || row.State != pawl.DeliveryPending {
				t.Errorf("%s: %+v", scheme, row)
			}
			stop()
		})
	}
}

// Retry-After may only lengthen, in both forms (HT-01 to HT-03, O-090).
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name        string
		status      int
		value       func() string
		least, most time.Duration
	}{
		{"seconds", 429, func() string { return "120" }, 120 * time.Second, 120 * time.Second},
		{"date", 503, func() string { return time.Now().Add(2 * time.Minute).UTC().Format(http.TimeFormat) }, 119 * time.Second, 120 * time.Second},
		{"RFC 850", 503, func() string { return time.Now().Add(2 * time.Minute).UTC().Format("Monday, 02-Jan-06 15:04:05 GMT") }, 119 * time.Second, 120 * time.Second},
		{"asctime", 503, func() string { return time.Now().Add(2 * time.Minute).UTC().Format(time.ANSIC) }, 119 * time.Second, 120 * time.Second},
		{"redirect", 302, func() string { return "60" }, 60 * time.Second, 60 * time.Second},
		{"past", 503, func() string { return "Sun, 06 Nov 1994 08:49:37 GMT" }, 4500 * time.Millisecond, 5500 * time.Millisecond},
		{"shorter", 503, func() string { return "1" }, 4500 * time.Millisecond, 5500 * time.Millisecond},
		{"nonsense", 503, func() string { return "1.5" }, 4500 * time.Millisecond, 5500 * time.Millisecond},
		{"huge", 503, func() string { return "99999999999999999999" }, 24 * time.Hour, 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{answer: func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					w.Header().Set("Retry-After", c.value())
					w.WriteHeader(c.status)
				}
			}}
			b := newBench(t, x)
			b.endpoint("http://a.example/hook")
			b.accept(b.submit())
			stop := b.run()
			time.Sleep(48 * time.Hour)
			stop()
			all := x.requests()
			if len(all) != 2 {
				t.Fatalf("%s: %d requests", c.name, len(all))
			}
			if wait := all[1].at.Sub(all[0].at); wait < c.least || wait > c.most+time.Millisecond {
				t.Errorf("%s: waited %v, want %v to %v", c.name, wait, c.least, c.most)
			}
		})
	}
}

// Wake makes the idle latency that of the commits; without it the poll finds
// the delivery.
func TestWake(t *testing.T) {
	for _, woken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{}
			b := newBench(t, x, func(o *outbox.Options) { o.Poll = 0 })
			b.endpoint("http://a.example/hook")
			stop := b.run()
			defer stop()
			time.Sleep(10*time.Second + 300*time.Millisecond)
			began := time.Now()
			b.accept(b.submit())
			if woken {
				b.box.Wake()
			}
			time.Sleep(2 * time.Second)
			all := x.requests()
			if len(all) != 1 {
				t.Fatalf("woken %v: %d requests", woken, len(all))
			}
			if took := all[0].at.Sub(began); woken && took > time.Millisecond || took > time.Second {
				t.Errorf("woken %v: took %v", woken, took)
			}
		})
	}
}
