package outbox_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"encoding/base64"
	"encoding/hex"
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"net/url"
)

// A dead endpoint with 10,000 rows holds its own slots and no more: none of
// its other rows is leased or even asked for while another is served.
func TestDeadEndpointDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{answer: func(_ int, _ http.ResponseWriter, r *http.Request) {
			if r.Host == "dead.example" {
				<-r.Context().Done()
			}
		}}
		var mu sync.Mutex
		leases := make(map[pawl.ID]int)
		b := newBench(t, x, func(o *outbox.Options) {
			o.Store = commands{next: o.Store, before: func(c ledger.Command) error {
				if lease, ok := c.(ledger.LeaseDeliveries); ok {
					mu.Lock()
					leases[lease.Endpoint]++
					mu.Unlock()
				}
				return nil
			}}
		})
		fast := b.endpoint("http://fast.example/hook")
		b.accept(b.submit())
		event := b.only(fast.ID).Event
		dead := b.endpoint("http://dead.example/hook", func(ep *ledger.Endpoint) { ep.Types = "operation.succeeded" })
		b.backlog(dead, event, 10_000)
		stop := b.run()
		defer stop()
		time.Sleep(time.Millisecond)
		for i := range 20 {
			began := time.Now()
			b.accept(b.submit())
			b.box.Wake()
			time.Sleep(100 * time.Millisecond)
			if n := x.to("fast.example"); n != i+2 {
				t.Fatalf("after event %d the fast endpoint has %d requests", i+2, n)
			}
			all := x.requests()
			if took := all[len(all)-1].at.Sub(began); took > time.Millisecond {
				t.Errorf("event %d took %v", i+2, took)
			}
		}
		if n := x.to("dead.example"); n != 8 {
			t.Errorf("%d requests to the dead endpoint, want 8", n)
		}
		mu.Lock()
		if leases[dead.ID] != 1 {
			t.Errorf("%d lease commands for the dead endpoint, want 1", leases[dead.ID])
		}
		mu.Unlock()
		if v := b.metric("pawl_in_flight", "delivery"); v != 8 {
			t.Errorf("in flight: %v, want 8", v)
		}
		stop()
		if v := b.metric("pawl_in_flight", "delivery"); v != 0 {
			t.Errorf("in flight at the end: %v", v)
		}
		leased := 0
		for _, row := range b.deliveries(dead.ID) {
			if row.Leased || row.Lease > 0 {
				leased++
			}
		}
		if leased != 8 {
			t.Errorf("%d rows of the dead endpoint were leased, want 8", leased)
		}
	})
}

// A retry of one endpoint comes at its time although another one is full.
func TestFullEndpointDelaysNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
			if r.Host == "dead.example" {
				<-r.Context().Done()
			}
			w.WriteHeader(500)
		}}
		b := newBench(t, x)
		b.endpoint("http://b.example/hook", func(ep *ledger.Endpoint) { ep.Scheme = "body-timestamp" })
		b.accept(b.submit())
		dead := b.endpoint("http://dead.example/hook", func(ep *ledger.Endpoint) { ep.Types = "operation.succeeded" })
		b.backlog(dead, b.deliveries(pawl.ID{})[0].Event, 100)
		stop := b.run()
		time.Sleep(14 * time.Second)
		stop()
		var times []time.Time
		for _, g := range x.requests() {
			if g.host == "b.example" {
				times = append(times, g.at)
			}
		}
		if len(times) != 5 {
			t.Fatalf("%d attempts, want 5", len(times))
		}
		for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
			if late := times[i+1].Sub(times[i]) - want*11/10; late > time.Millisecond {
				t.Errorf("retry %d is %v late", i+1, late)
			}
		}
	})
}

func TestDeletedEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook")
		b.accept(b.submit())
		b.backlog(ep, b.only(ep.ID).Event, 500)
		b.do(ledger.ChangeEndpoint{Header: b.header(), Tenant: "acme", ID: ep.ID, Action: "delete", Change: ledger.EndpointChange{Delete: true}})
		stop := b.run()
		time.Sleep(time.Minute)
		stop()
		for _, row := range b.deliveries(ep.ID) {
			if row.State != pawl.DeliverySkipped || row.Reason != "endpoint_deleted" {
				t.Fatalf("%s %q", row.State, row.Reason)
			}
		}
		if n := len(x.requests()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// An endpoint that is switched off between the lease and the send gets
// nothing; its delivery waits.
func TestDisabledAfterLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		var disable func()
		b := newBench(t, x, func(o *outbox.Options) {
			o.Store = commands{next: o.Store, after: func(c ledger.Command) {
				if _, ok := c.(ledger.LeaseDeliveries); ok {
					disable()
				}
			}}
		})
		ep := b.endpoint("http://a.example/hook")
		off := true
		disable = func() {
			b.do(ledger.ChangeEndpoint{
				Header: b.header(), Tenant: "acme", ID: ep.ID, Action: "pause",
				Change: ledger.EndpointChange{Disabled: &off, DisabledReason: "by hand"},
			})
		}
		b.accept(b.submit())
		stop := b.run()
		time.Sleep(24 * time.Hour)
		stop()
		if row := b.only(ep.ID); row.State != pawl.DeliveryPending || row.Leased || row.Attempts != 0 || len(x.requests()) != 0 {
			t.Errorf("%d requests: %+v", len(x.requests()), row)
		}
	})
}

// Nothing is sent once an endpoint is deleted, not even what was leased before
// (7-rules R36).
func TestDeletedAfterLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		var remove func()
		b := newBench(t, x, func(o *outbox.Options) {
			o.Store = commands{next: o.Store, after: func(c ledger.Command) {
				if _, ok := c.(ledger.LeaseDeliveries); ok {
					remove()
				}
			}}
		})
		ep := b.endpoint("http://a.example/hook")
		remove = sync.OnceFunc(func() {
			b.do(ledger.ChangeEndpoint{Header: b.header(), Tenant: "acme", ID: ep.ID, Action: "delete", Change: ledger.EndpointChange{Delete: true}})
		})
		b.accept(b.submit())
		stop := b.run()
		time.Sleep(time.Hour)
		stop()
		if row := b.only(ep.ID); row.State != pawl.DeliverySkipped || row.Reason != "endpoint_deleted" || row.Attempts != 0 || len(x.requests()) != 0 {
			t.Errorf("%d requests: %+v", len(x.requests()), row)
		}
	})
}

// Nothing a receiver sends keeps its attempt from being recorded once (O-083).
func TestLargeAnswers(t *testing.T) {
	for status, want := range map[int]pawl.DeliveryState{200: pawl.DeliveryDelivered, 500: pawl.DeliveryPending, 400: pawl.DeliveryDead} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(status)
				for piece := bytes.Repeat([]byte("words "), 1000); ; {
					if _, err := w.Write(piece); err != nil {
						return
					}
				}
			}}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook")
			b.accept(b.submit())
			stop := b.run()
			time.Sleep(time.Second)
			stop()
			row := b.only(ep.ID)
			attempts := b.attempts(row.ID)
			if row.State != want || len(attempts) != 1 || len(x.requests()) != 1 {
				t.Fatalf("%d: %s, %d attempts, %d requests", status, row.State, len(attempts), len(x.requests()))
			}
			if e := attempts[0].Excerpt; len(e) > 512 || !strings.HasPrefix(e, "words words") || !strings.HasSuffix(e, "…") {
				t.Errorf("%d: excerpt of %d bytes", status, len(e))
			}
		})
	}
}

// What the guard refuses is dead at once, with its own reason, and dials
// nothing (1-product H7, 7-rules §5).
func TestEgressRefused(t *testing.T) {
	for _, url := range []string{
		"http://169.254.169.254/latest", "https://127.0.0.1.nip.example:99999/", "ftp://a.example/", "https://user:pw@a.example/", "http://192.168.1.1/", "::",
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{}
			b := newBench(t, x)
			ep := b.endpoint(url)
			b.accept(b.submit())
			stop := b.run()
			time.Sleep(time.Hour)
			stop()
			row := b.only(ep.ID)
			if row.State != pawl.DeliveryDead || row.Reason != "egress_refused" || row.Attempts != 1 || row.LastStatus != 0 {
				t.Errorf("%s: %s %q after %d attempts", url, row.State, row.Reason, row.Attempts)
			}
			if len(x.requests()) != 0 {
				t.Errorf("%s: a request was made", url)
			}
		})
	}
}

// Links and secrets stand in no log and no recorded attempt.
func TestCanary(t *testing.T) {
	const canary = "canary-9f3"
	urls := []string{
		"http://a.example/" + canary + "?token=" + canary, "http://10.0.0.2/" + canary, "http://192.168.0.1/" + canary,
		"https://u:" + canary + "@a.example/", "http://%zz/" + canary, "https://tls.example/" + canary + "#" + canary, "https://tls.example/" + canary,
	}
	for _, url := range urls {
		for i, answer := range []func(int, http.ResponseWriter, *http.Request){
			statuses(200), statuses(500), statuses(401),
			func(_ int, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(422)
				fmt.Fprintf(w, `{"token":%q,"url":"http://a.example/%s","signature":%q}`, canary, canary, r.Header.Get("Webhook-Signature"))
			},
			func(int, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		} {
			synctest.Test(t, func(t *testing.T) {
				x := &receiver{answer: answer}
				b := newBench(t, x)
				secret := secretOf(42)
				ep := b.endpoint(url, func(ep *ledger.Endpoint) { ep.Secret = ledger.Sealed(secret) })
				b.accept(b.submit())
				stop := b.run()
				time.Sleep(time.Minute)
				stop()
				row := b.only(ep.ID)
				text := b.log.String() + fmt.Sprintf("%+v %+v", row, b.attempts(row.ID))
				for _, g := range x.requests() {
					if strings.Contains(text, g.header.Get("Webhook-Signature")) {
						t.Errorf("%s, answer %d: a signature", url, i)
					}
				}
				if row.Attempts == 0 {
					t.Errorf("%s: no attempt", url)
				}
				for _, never := range []string{canary, secret, strings.TrimPrefix(secret, "whsec_"), "a cat"} {
					if strings.Contains(text, never) {
						t.Errorf("%s, answer %d: %q in %s", url, i, never, text)
					}
				}
			})
		}
	}
}

// A job prints its id alone.
func TestJobPrintsNoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &receiver{})
		b.endpoint("http://a.example/hidden")
		b.accept(b.submit())
		time.Sleep(time.Millisecond)
		jobs, err := b.box.Claim(t.Context(), time.Now())
		if err != nil || len(jobs) != 1 {
			t.Fatal(err)
		}
		want := jobs[0].Delivery().Text("dlv")
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if have := fmt.Sprintf(verb, jobs[0]); have != want {
				t.Errorf("%s: %s", verb, have)
			}
		}
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &receiver{answer: statuses(500, 200, 400)})
		b.endpoint("http://a.example/hook")
		op := b.accept(b.submit())
		stop := b.run()
		time.Sleep(time.Minute)
		b.observe(op, ledger.Observation{State: pawl.Succeeded, Result: `{}`})
		b.box.Wake()
		time.Sleep(time.Minute)
		stop()
		for outcome, want := range map[string]float64{"retried": 1, "delivered": 1, "dead": 1, "skipped": 0} {
			if have := b.metric("pawl_deliveries_total", outcome); have != want {
				t.Errorf("%s: %v, want %v", outcome, have, want)
			}
		}
		if have := b.metric("pawl_delivery_attempts_total", ""); have != 3 {
			t.Errorf("attempts: %v, want 3", have)
		}
	})
}

// A receiver that repeats what signed its request, in whatever encoding, is quoted
// without it.
func TestExcerptHoldsNoCredential(t *testing.T) {
	for _, scheme := range []string{"standard-webhooks", "media-v2", "body-timestamp"} {
		synctest.Test(t, func(t *testing.T) {
			secret := secretOf(42)
			var signature string
			x := &receiver{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
				signature = r.Header.Get("Webhook-Signature") + r.Header.Get("X-Webhook-Signature")
				bare := signature[strings.IndexAny(signature, ",=")+1:]
				if scheme == "media-v2" {
					bare = signature
				}
				w.WriteHeader(500)
				for _, text := range []string{secret, bare} {
					fmt.Fprintf(w, "%s %s %s ", text, url.QueryEscape(text), hex.EncodeToString([]byte(text)))
					fmt.Fprintf(w, "%s. ", base64.StdEncoding.EncodeToString([]byte("a:"+text)))
				}
				fmt.Fprint(w, "retry later //h.example/x?sig=1")
			}}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook", func(ep *ledger.Endpoint) {
				ep.Scheme, ep.Secret, ep.Types = scheme, ledger.Sealed(secret), "operation.running"
			})
			b.accept(b.submit())
			stop := b.run()
			time.Sleep(time.Millisecond)
			stop()
			all := b.attempts(b.only(ep.ID).ID)
			if len(all) == 0 || signature == "" {
				t.Fatalf("%s: %d attempts", scheme, len(all))
			}
			const r = "[redacted]"
			want := strings.Repeat(r+" "+r+" "+r+" "+r+". ", 2) + "retry later //" + r
			if all[0].Excerpt != want {
				t.Errorf("%s: excerpt %q, want %q", scheme, all[0].Excerpt, want)
			}
		})
	}
}
