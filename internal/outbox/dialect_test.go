package outbox_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// The dialects' endpoints get their body and headers, which their receivers
// verify with the secret's text.
func TestDialectEndpoints(t *testing.T) {
	for _, scheme := range []string{"media-v2", "body-timestamp"} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{answer: statuses(500, 200)}
			b := newBench(t, x)
			secret := secretOf(3)
			ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) {
				ep.Scheme, ep.Secret, ep.Types = scheme, ledger.Sealed(secret), pawl.TypeRunning
			})
			op := b.accept(b.submit())
			stop := b.run()
			time.Sleep(time.Minute)
			stop()
			all := x.requests()
			row := b.only(ep.ID)
			if len(all) != 2 || row.State != pawl.DeliveryDelivered {
				t.Fatalf("%s: %d requests, %s", scheme, len(all), row.State)
			}
			if all[0].body != all[1].body {
				t.Errorf("%s: the retry has other bytes", scheme)
			}
			for _, g := range all {
				v, err := verify(t, scheme, secret, g)
				if err != nil {
					t.Errorf("%s: %v", scheme, err)
				}
				if task := "job_" + op.ID.Suffix(); scheme == "media-v2" && (v.TaskID != task || g.header.Get("X-Webhook-Payload-Version") != "2") {
					t.Errorf("%+v", v)
				}
				if id := row.Event.Text("evt"); scheme == "body-timestamp" && g.header.Get("X-Webhook-Id") != id {
					t.Errorf("X-Webhook-Id %s, want %s", g.header.Get("X-Webhook-Id"), id)
				}
				if !strings.Contains(g.body, row.Event.Suffix()) {
					t.Errorf("%s: the body names no event: %s", scheme, g.body)
				}
			}
		})
	}
}

// What cannot be sent is dead at once with its own reason, and sends nothing.
func TestUnsendableIsDead(t *testing.T) {
	for name, change := range map[string]func(*ledger.Endpoint){
		"unknown scheme": func(ep *ledger.Endpoint) { ep.Scheme = "rot13" },
		"foreign secret": func(ep *ledger.Endpoint) { ep.Secret = "hunter2hunter2" },
		"no secret":      func(ep *ledger.Endpoint) { ep.Secret = "" },
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) {
				ep.Types = "operation.succeeded"
				change(ep)
			})
			b.observe(b.accept(b.submit()), ledger.Observation{State: pawl.Succeeded, Result: `{}`})
			stop := b.run()
			time.Sleep(time.Hour)
			stop()
			row := b.only(ep.ID)
			if row.State != pawl.DeliveryDead || row.Reason != "unsendable" || row.Attempts != 1 || row.LastError == "" {
				t.Errorf("%s: %+v", name, row)
			}
			if len(x.requests()) != 0 || strings.Contains(row.LastError, "hunter2") {
				t.Errorf("%s: %d requests, %q", name, len(x.requests()), row.LastError)
			}
		})
	}
}

// A delivered event that is replayed keeps its id and bytes and stays
// delivered whatever comes of it (7-rules R37).
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{answer: statuses(200, 500, 500)}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook")
		b.accept(b.submit())
		stop := b.run()
		defer stop()
		time.Sleep(time.Minute)
		row := b.only(ep.ID)
		b.do(ledger.RetryDelivery{Header: b.header(), Tenant: "acme", Delivery: row.ID, Endpoint: ep.ID})
		b.box.Wake()
		time.Sleep(time.Hour)
		all := x.requests()
		if len(all) != 2 {
			t.Fatalf("%d requests, want 2", len(all))
		}
		if all[0].body != all[1].body || all[0].header.Get("Webhook-Id") != all[1].header.Get("Webhook-Id") || all[1].header.Get("Pawl-Attempt") != "2" {
			t.Error("the replay is another event")
		}
		if a := b.attempts(row.ID); len(a) != 2 || a[0].Replay || !a[1].Replay || b.only(ep.ID).State != pawl.DeliveryDelivered {
			t.Errorf("%+v", a)
		}
	})
}
