package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// later calls in the background.
func (g *rig) later(key, method, path, body string, headers ...string) <-chan answer {
	answers := make(chan answer, 1)
	go func() { answers <- g.call(key, method, path, body, headers...) }()
	return answers
}

// waiting lets a request begin to wait.
func (g *rig) waiting(n int) {
	g.t.Helper()
	for began := time.Now(); g.watch.Waiters() != n; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			g.t.Fatalf("%d wait, want %d", g.watch.Waiters(), n)
		}
	}
}

// An answer waits for the operation's end and comes with it (7-rules R7).
func TestPreferWait(t *testing.T) {
	g := newRig(t)
	pending := g.later("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "k", "Prefer", "respond-async, wait=30")
	g.waiting(1)
	began := time.Now()
	g.created("open", ledger.CreateRefused, "")
	a := (<-pending).want(200, "")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the end was told after %s", took)
	}
	if a.text("state") != "failed" || a.header.Get("Preference-Applied") != "wait=30" || a.header.Get("Location") == "" {
		t.Errorf("%s, Preference-Applied %q", a.body, a.header.Get("Preference-Applied"))
	}
	// What has ended is not waited for.
	replay := g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "k", "Prefer", "wait=30").want(200, "")
	if replay.header.Get("Idempotency-Replayed") != "true" || replay.text("id") != a.text("id") {
		t.Errorf("replay: %s", replay.body)
	}
	retried := g.later("acme", "POST", "/v1/operations/"+a.text("id")+"/retry", "", "Idempotency-Key", "r", "Prefer", "wait=30")
	g.waiting(1)
	g.created("open", ledger.CreateRefused, "")
	(<-retried).want(200, "")
}

// When the time is over the answer is 202 with the state of then.
func TestPreferWaitEnds(t *testing.T) {
	g := newRig(t)
	began := time.Now()
	a := g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "k", "Prefer", "wait=1").want(202, "")
	if took := time.Since(began); took < time.Second || took > 10*time.Second {
		t.Errorf("waited %s, want 1 s", took)
	}
	if a.text("state") != "pending" || a.header.Get("Preference-Applied") != "wait=1" || a.header.Get("Retry-After") == "" {
		t.Errorf("%s %v", a.body, a.header)
	}
	g.waiting(0)
	// A preference that cannot be read is ignored (RFC 7240 §2).
	for _, prefer := range []string{"wait=soon", "wait=-1", "wait", "wait=0", "respond-async"} {
		b := g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "k", "Prefer", prefer).want(202, "")
		if b.header.Get("Preference-Applied") != "" {
			t.Errorf("%s: Preference-Applied %q", prefer, b.header.Get("Preference-Applied"))
		}
	}
	// More than a minute is a minute.
	long := g.later("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "k", "Prefer", "wait=3600")
	g.waiting(1)
	g.created("open", ledger.CreateRefused, "")
	if b := (<-long).want(200, ""); b.header.Get("Preference-Applied") != "wait=60" {
		t.Errorf("Preference-Applied %q, want wait=60", b.header.Get("Preference-Applied"))
	}
}

// A read can wait as well, by parameter or preference; progress does not end it.
func TestGetWait(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	byParameter := g.later("acme", "GET", "/v1/operations/"+id+"?wait=30", "")
	byPreference := g.later("acme", "GET", "/v1/operations/"+id, "", "Prefer", "wait=30")
	g.waiting(2)
	op := g.created("open", ledger.CreateAccepted, "job_1")
	time.Sleep(50 * time.Millisecond)
	g.waiting(2)
	g.do(ledger.ReceiveEvent{Header: head(), Up: g.policy("open"), Token: op.ID, Event: "e", Obs: ledger.Observation{Task: "job_1", State: pawl.Failed, Word: "failed", Progress: -1}})
	a, b := (<-byParameter).want(200, ""), (<-byPreference).want(200, "")
	if a.text("state") == "running" || a.header.Get("Preference-Applied") != "" || b.header.Get("Preference-Applied") != "wait=30" {
		t.Errorf("%s, %v and %v", a.body, a.header, b.header)
	}
	if began := time.Now(); g.call("acme", "GET", "/v1/operations/"+id+"?wait=30", "").want(200, "").status == 0 || time.Since(began) > 10*time.Second {
		t.Error("what has ended is waited for")
	}
	for _, wait := range []string{"-1", "soon", "1.5", "99999999999"} {
		g.call("acme", "GET", "/v1/operations/"+id+"?wait="+wait, "").want(400, "invalid_query")
	}
	g.call("acme", "GET", "/v1/operations?wait=1", "").want(400, "invalid_query")
	g.call("other", "GET", "/v1/operations/"+id+"?wait=30", "").want(404, "not_found")
}

// Where too many wait, the answer comes at once; whoever goes away is free; and
// a node that stops lets nobody wait.
func TestWaitersAreBounded(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	ctx, leave := context.WithCancel(t.Context())
	for range 3 {
		go func() {
			req, _ := http.NewRequestWithContext(ctx, "GET", g.url+"/v1/operations/"+id+"?wait=60", strings.NewReader(""))
			req.Header.Set("Authorization", "Bearer "+g.secrets["acme"])
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}()
	}
	g.waiting(3)
	began := time.Now()
	a := g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "k", "Prefer", "wait=60").want(202, "")
	if time.Since(began) > 10*time.Second || a.header.Get("Preference-Applied") != "" {
		t.Errorf("the fourth of three waited %s", time.Since(began))
	}
	leave()
	g.waiting(0)
	last := g.later("acme", "GET", "/v1/operations/"+id, "", "Prefer", "wait=60")
	g.waiting(1)
	g.watch.Close()
	if a := (<-last).want(200, ""); a.text("state") != "pending" {
		t.Errorf("at the end: %s", a.body)
	}
}
