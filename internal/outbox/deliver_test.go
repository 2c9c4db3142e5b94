package outbox_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/webhook"
)

// verify checks a request with one secret and gives the event id it proves.
func verify(t *testing.T, scheme, secret string, g got) (webhook.Verified, error) {
	t.Helper()
	s, ok := webhook.Lookup(scheme)
	if !ok {
		t.Fatal(scheme)
	}
	key, err := s.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s.Verify(webhook.Request{Header: g.header, Body: []byte(g.body), URL: "http://" + g.host + g.path}, g.at, key)
}

func TestDeliveryOverRealSockets(t *testing.T) {
	came := make(chan struct{})
	x := &receiver{answer: func(int, http.ResponseWriter, *http.Request) { close(came) }}
	server := httptest.NewServer(x)
	defer server.Close()
	b := newBench(t, nil)
	ep := b.endpoint(server.URL + "/hook?secret=canary")
	op := b.accept(b.submit())
	stop := b.run()
	defer stop()
	<-came
	if err := b.box.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := x.requests()
	if len(all) != 1 {
		t.Fatalf("%d requests, want 1", len(all))
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "pawl/1.2.3", "Pawl-Attempt": "1", "Pawl-Endpoint-Sequence": "1",
		"Content-Length": strconv.Itoa(len(all[0].body)), "Content-Encoding": "", "Accept-Encoding": "",
	} {
		if have := all[0].header.Get(name); have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
	row := b.only(ep.ID)
	v, err := verify(t, "standard-webhooks", secretOf(1), all[0])
	if err != nil || v.ID != row.Event.Text("evt") {
		t.Errorf("verified %+v, %v; want %s", v, err, row.Event.Text("evt"))
	}
	for _, part := range []string{
		`"id":"` + row.Event.Text("evt") + `"`, `"type":"operation.running"`, `"sequence":1`, `"id":"` + op.ID.Text("op") + `"`,
		`"metadata":{"order":"A-1"}`, `"state":"running"`, `"version":2`,
	} {
		if !strings.Contains(all[0].body, part) {
			t.Errorf("the body lacks %s: %s", part, all[0].body)
		}
	}
	if tries := b.attempts(row.ID); len(tries) != 1 || tries[0].Target != server.URL || len(tries[0].TargetDigest) != 16 {
		t.Errorf("attempts: %+v, want one to %s", tries, server.URL)
	}
	if row.State != pawl.DeliveryDelivered || row.Attempts != 1 || row.LastStatus != 200 || row.Sequence != 1 {
		t.Errorf("%+v", row)
	}
}

// The event id and the bytes are those of the first attempt, the timestamp is
// each attempt's own (SW-02, SW-03), and pawl-attempt counts.
func TestRetryRepeatsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{answer: statuses(500, 503, 200)}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook")
		op := b.accept(b.submit())
		b.observe(op, ledger.Observation{State: pawl.Succeeded, Result: `{"n":12345678901234567890}`})
		first := b.deliveries(ep.ID)[0]
		stop := b.run()
		time.Sleep(time.Hour)
		stop()
		var mine []got
		for _, g := range x.requests() {
			if g.header.Get("Webhook-Id") == first.Event.Text("evt") {
				mine = append(mine, g)
			}
		}
		rows := b.deliveries(ep.ID)
		if rows[0].State != pawl.DeliveryDelivered || rows[1].State != pawl.DeliveryDelivered {
			t.Fatalf("%+v", rows)
		}
		if len(mine) != len(b.attempts(first.ID)) || len(mine) < 2 {
			t.Fatalf("%d requests, %d attempts", len(mine), len(b.attempts(first.ID)))
		}
		spans := make(map[string]bool)
		for i, g := range mine {
			// W3C Trace Context: version, trace of the operation, a span of its own.
			parent := g.header.Get("Traceparent")
			if !regexp.MustCompile(`^00-`+op.ID.String()+`-[0-9a-f]{16}-00$`).MatchString(parent) || spans[parent] {
				t.Errorf("attempt %d: traceparent %q", i+1, parent)
			}
			spans[parent] = true
			if g.body != mine[0].body {
				t.Errorf("attempt %d has other bytes", i+1)
			}
			if g.header.Get("Pawl-Attempt") != strconv.Itoa(i+1) {
				t.Errorf("pawl-attempt %s, want %d", g.header.Get("Pawl-Attempt"), i+1)
			}
			if want := strconv.FormatInt(g.at.Unix(), 10); g.header.Get("Webhook-Timestamp") != want {
				t.Errorf("timestamp %s, want %s", g.header.Get("Webhook-Timestamp"), want)
			}
			if _, err := verify(t, "standard-webhooks", secretOf(1), g); err != nil {
				t.Errorf("attempt %d: %v", i+1, err)
			}
		}
		kept := ledger.PayloadID{Owner: first.ID, Kind: ledger.SentPayload}
		if stored, err := b.driver.Payloads(t.Context(), kept); err != nil || stored[kept] != mine[0].body {
			t.Errorf("what was sent is not kept: %q, %v", stored[kept], err)
		}
		if a, z := mine[0].header.Get("Webhook-Timestamp"), mine[1].header.Get("Webhook-Timestamp"); a == z {
			t.Error("a retry has the timestamp of the first attempt")
		}
	})
}

// Both secrets sign while they overlap, the new one alone afterwards (SW-11).
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		ep := b.endpoint("http://a.example/hook")
		b.do(ledger.ChangeEndpoint{Header: b.header(), Tenant: "acme", ID: ep.ID, Action: "rotate", Change: ledger.EndpointChange{
			Secret: b.seal(ep.ID, secretOf(2)), FormerUntil: pawl.TimeOf(time.Now().Add(time.Hour)),
		}})
		stop := b.run()
		defer stop()
		op := b.accept(b.submit())
		b.box.Wake()
		time.Sleep(time.Millisecond)
		time.Sleep(time.Hour)
		b.observe(op, ledger.Observation{State: pawl.Succeeded, Result: `{}`})
		b.box.Wake()
		time.Sleep(time.Millisecond)
		all := x.requests()
		if len(all) != 2 {
			t.Fatalf("%d requests, want 2", len(all))
		}
		for i, want := range [][2]bool{{true, true}, {false, true}} {
			for k, secret := range []string{secretOf(1), secretOf(2)} {
				if _, err := verify(t, "standard-webhooks", secret, all[i]); (err == nil) != want[k] {
					t.Errorf("request %d, secret %d: %v", i+1, k+1, err)
				}
			}
		}
		if tokens := strings.Fields(all[0].header.Get("Webhook-Signature")); len(tokens) != 2 {
			t.Errorf("%d signatures, want 2", len(tokens))
		}
	})
}

// A callback address is signed with its API key's secrets, even after the key
// was revoked (7-rules R50), and gets its operation's events alone.
func TestCallbackEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{}
		b := newBench(t, x)
		id := pawl.NewID(1, 77)
		key := ledger.APIKey{ID: id, Tenant: "acme", WebhookSecret: b.seal(id, secretOf(7)), FormerSecret: b.seal(id, secretOf(8)),
			FormerUntil: pawl.TimeOf(time.Now().Add(time.Hour))}
		b.do(ledger.CreateKey{Header: b.header(), Key: key})
		b.accept(b.submit(func(c *ledger.Submit) {
			c.APIKey, c.CallbackURL, c.CallbackScheme = key.ID, "http://caller.example/cb", "standard-webhooks"
		}))
		b.accept(b.submit(func(c *ledger.Submit) { c.APIKey = key.ID }))
		b.do(ledger.RevokeKey{Header: b.header(), Tenant: "acme", ID: key.ID})
		stop := b.run()
		defer stop()
		time.Sleep(time.Millisecond)
		all := x.requests()
		if len(all) != 1 || all[0].host != "caller.example" {
			t.Fatalf("%d requests", len(all))
		}
		for _, secret := range []string{secretOf(7), secretOf(8)} {
			if _, err := verify(t, "standard-webhooks", secret, all[0]); err != nil {
				t.Error(err)
			}
		}
	})
}

// 7-rules §5, over the statuses of field case O-095.
func TestAnswers(t *testing.T) {
	retried := []int{408, 425, 429, 404, 409, 500, 501, 502, 503, 504, 505, 507, 599, 300, 301, 302, 303, 304, 307, 308, 600, 799}
	final := []int{400, 401, 403, 405, 413, 415, 422, 451, 402, 406, 418, 499}
	try := func(status int, want pawl.DeliveryState, reason string) {
		synctest.Test(t, func(t *testing.T) {
			x := &receiver{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://elsewhere.example/")
				w.WriteHeader(status)
			}}
			b := newBench(t, x)
			ep := b.endpoint("http://a.example/hook")
			b.accept(b.submit())
			stop := b.run()
			defer stop()
			time.Sleep(time.Millisecond)
			row := b.only(ep.ID)
			if row.State != want || row.Reason != reason || row.Attempts != 1 || row.LastStatus != int32(status) {
				t.Errorf("%d: %s %q after %d attempts", status, row.State, row.Reason, row.Attempts)
			}
			if x.to("elsewhere.example") != 0 {
				t.Errorf("%d: the redirect was followed", status)
			}
			if want == pawl.DeliveryPending && row.DueAt.Sub(pawl.TimeOf(time.Now())) < 4499*time.Millisecond {
				t.Errorf("%d: retried after %v", status, row.DueAt.Sub(pawl.TimeOf(time.Now())))
			}
		})
	}
	for _, status := range []int{200, 201, 202, 204, 299} {
		try(status, pawl.DeliveryDelivered, "")
	}
	for _, status := range retried {
		try(status, pawl.DeliveryPending, "")
	}
	for _, status := range final {
		try(status, pawl.DeliveryDead, "refused_by_endpoint")
	}
	try(410, pawl.DeliveryDead, "gone")
}

// 410 disables the endpoint; what waits stays pending, unsent (O-088).
func TestGoneDisables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &receiver{answer: statuses(410)}
		b := newBench(t, x)
		b.opts.PerEndpoint = 1
		b.box = newBox(b)
		ep := b.endpoint("http://a.example/hook")
		for range 5 {
			b.accept(b.submit())
		}
		stop := b.run()
		time.Sleep(24 * time.Hour)
		stop()
		if n := len(x.requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		eps, _ := b.driver.Endpoints(t.Context(), store.EndpointFilter{Tenant: "acme"}, store.Page{Limit: 10})
		if !eps[0].Disabled || eps[0].DisabledReason != "answered_410" {
			t.Errorf("%+v", eps[0].DisabledReason)
		}
		waiting := 0
		for _, row := range b.deliveries(ep.ID) {
			if row.State == pawl.DeliveryPending && !row.Leased {
				waiting++
			}
		}
		if waiting != 4 {
			t.Errorf("%d pending, want 4", waiting)
		}
	})
}
