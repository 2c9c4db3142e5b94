package outbox_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"github.com/pawlhq/pawl/internal/store"
)

// failing fails the first n records.
func failing(o *outbox.Options, n int64) *atomic.Int64 {
	var left, tried atomic.Int64
	left.Store(n)
	o.Store = commands{next: o.Store, before: func(c ledger.Command) error {
		if _, ok := c.(ledger.RecordAttempt); !ok {
			return nil
		}
		tried.Add(1)
		if left.Add(-1) >= 0 {
			return store.ErrUnavailable
		}
		return nil
	}}
	return &tried
}

// A node that dies between sending and recording has sent; the next one sends
// the same bytes under the same id again.
func TestKilledBetweenSendAndRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook")
		op := b.accept(b.submit())
		b.observe(op, ledger.Observation{State: pawl.Succeeded, Result: `{"url":"x"}`})
		dying := b.opts
		failing(&dying, 1<<40)
		first := *b
		first.box = outbox.New(dying)
		stop := first.run()
		time.Sleep(10 * time.Second)
		stop()
		if n := len(x.requests()); n != 2 {
			t.Fatalf("%d requests before the crash, want 2", n)
		}
		for _, row := range b.deliveries(ep.ID) {
			if !row.Leased || row.Attempts != 0 {
				t.Fatalf("not as a crash leaves it: %+v", row)
			}
		}
		if err := b.box.FreeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop = b.run()
		time.Sleep(time.Millisecond)
		stop()
		all := x.requests()
		if len(all) != 4 {
			t.Fatalf("%d requests, want 4", len(all))
		}
		for _, again := range all[2:] {
			same := 0
			for _, before := range all[:2] {
				if before.header.Get("Webhook-Id") == again.header.Get("Webhook-Id") && before.body == again.body {
					same++
				}
			}
			if same != 1 || again.header.Get("Pawl-Attempt") != "1" {
				t.Errorf("the repeat of %s is not the same", again.header.Get("Webhook-Id"))
			}
		}
		for _, row := range b.deliveries(ep.ID) {
			if row.State != pawl.DeliveryDelivered || row.Attempts != 1 {
				t.Errorf("%+v", row)
			}
		}
	})
}

// Without FreeLeases, the lease runs out 15 s after the timeout.
func TestLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook")
		b.accept(b.submit())
		time.Sleep(time.Millisecond)
		jobs, err := b.box.Claim(t.Context(), time.Now())
		if err != nil || len(jobs) != 1 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		claimed, old := time.Now(), b.box
		late := old.Act(t.Context(), jobs[0], claimed)
		b.box = newBox(b)
		stop := b.run()
		time.Sleep(time.Minute)
		stop()
		all := x.requests()
		if len(all) != 2 || all[1].at.Sub(claimed).Round(time.Millisecond) != 30*time.Second {
			t.Fatalf("%d requests, the last after %v", len(all), all[len(all)-1].at.Sub(claimed))
		}
		if row := b.only(ep.ID); row.State != pawl.DeliveryDelivered || row.Lease != 2 {
			t.Errorf("%+v", row)
		}
		// The late answer of the old lease is learned, and changes nothing.
		old.Record(t.Context(), late)
		if row := b.only(ep.ID); row.State != pawl.DeliveryDelivered || row.Attempts != 1 {
			t.Errorf("%+v", row)
		}
	})
}

// A job that waited on a node that stood still is not begun under a lease that
// may be another's by the time it ends.
func TestOverdueJobIsHandedBack(t *testing.T) {
	for _, c := range []struct {
		late time.Duration
		sent int
		want pawl.DeliveryState
	}{
		{ledger.LeaseMargin - time.Millisecond, 1, pawl.DeliveryDelivered},
		{ledger.LeaseMargin, 0, pawl.DeliveryPending},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook")
			b.accept(b.submit())
			time.Sleep(time.Millisecond)
			jobs, err := b.box.Claim(t.Context(), time.Now())
			if err != nil || len(jobs) != 1 {
				t.Fatalf("%d jobs, %v", len(jobs), err)
			}
			time.Sleep(c.late)
			b.box.Record(t.Context(), b.box.Act(t.Context(), jobs[0], time.Now()))
			row := b.only(ep.ID)
			if len(x.requests()) != c.sent || row.State != c.want || row.Leased || int(row.Attempts) != c.sent {
				t.Errorf("%v late: %d requests, %+v", c.late, len(x.requests()), row)
			}
		})
	}
}

// A store in trouble delays a record and repeats no send.
func TestRecordIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		var tried *atomic.Int64
		b := newBench(t, x, func(o *outbox.Options) { tried = failing(o, 4) })
		ep := b.endpoint("http://a.example/hook")
		b.accept(b.submit())
		stop := b.run()
		time.Sleep(5 * time.Second)
		stop()
		if row := b.only(ep.ID); row.State != pawl.DeliveryDelivered || row.Attempts != 1 || len(x.requests()) != 1 {
			t.Errorf("%d sends: %+v", len(x.requests()), row)
		}
		if tried.Load() != 5 {
			t.Errorf("%d records, want 5", tried.Load())
		}
	})
}

// Claiming goes on after the store was in trouble, without hurry.
func TestClaimAfterTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		var leases atomic.Int64
		b := newBench(t, x, func(o *outbox.Options) {
			o.Poll = time.Second
			o.Store = commands{next: o.Store, before: func(c ledger.Command) error {
				if _, ok := c.(ledger.LeaseDeliveries); ok && leases.Add(1) <= 3 {
					return store.ErrBusy
				}
				return nil
			}}
		})
		b.endpoint("http://a.example/hook")
		b.accept(b.submit())
		time.Sleep(time.Millisecond)
		began := time.Now()
		stop := b.run()
		time.Sleep(10 * time.Second)
		stop()
		all := x.requests()
		if len(all) != 1 || all[0].at.Sub(began) != 3*time.Second {
			t.Errorf("%d requests, the first after %v", len(all), all[0].at.Sub(began))
		}
	})
}

func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer time.Duration
		want   pawl.DeliveryState
		err    error
	}{
		{"in time", 5 * time.Second, pawl.DeliveryDelivered, nil},
		{"too slow", 12 * time.Second, pawl.DeliveryPending, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(c.answer):
				case <-r.Context().Done():
				}
			}}
			b := newBench(t, x)
			b.opts.PerEndpoint = 2
			b.box = newBox(b)
			ep := b.endpoint("http://a.example/hook")
			for range 3 {
				b.accept(b.submit())
			}
			ended := make(chan error, 1)
			go func() { ended <- b.box.Run(context.Background()) }()
			time.Sleep(time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := b.box.Drain(ctx); !errors.Is(err, c.err) {
				t.Errorf("%s: %v, want %v", c.name, err, c.err)
			}
			if err := <-ended; err != nil {
				t.Errorf("%s: Run: %v", c.name, err)
			}
			if n := len(x.requests()); n != 2 {
				t.Errorf("%s: %d requests, want 2", c.name, n)
			}
			reached := 0
			for _, row := range b.deliveries(ep.ID) {
				if row.Leased {
					t.Errorf("%s: still leased: %+v", c.name, row)
				}
				if row.Lease == 1 {
					reached++
					if row.State != c.want {
						t.Errorf("%s: %s, want %s", c.name, row.State, c.want)
					}
					if c.err != nil && row.Attempts != 0 {
						t.Errorf("%s: our own giving up counts as an attempt", c.name)
					}
				}
			}
			if reached != 2 {
				t.Errorf("%s: %d leased, want 2", c.name, reached)
			}
		})
	}
}

// What is claimed and not started is handed back.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook")
		b.accept(b.submit())
		time.Sleep(time.Millisecond)
		jobs, err := b.box.Claim(t.Context(), time.Now())
		if err != nil || len(jobs) != 1 || jobs[0].Delivery() != b.only(ep.ID).ID {
			t.Fatalf("%v %v", jobs, err)
		}
		b.box.Release(t.Context(), jobs[0])
		if row := b.only(ep.ID); row.Leased || row.State != pawl.DeliveryPending || row.DueAt > pawl.TimeOf(time.Now().Add(time.Millisecond)) || row.Attempts != 0 {
			t.Errorf("%+v", row)
		}
		if len(x.requests()) != 0 {
			t.Error("sent")
		}
	})
}
