package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
)

const key = "pawl_sk_canary0123456789abcdef0123456789ab"

// fake answers the calls of a client one after the other; the last answer stays.
type fake struct {
	mu      sync.Mutex
	answers []http.HandlerFunc
	calls   []*http.Request
	bodies  []string
}

// against makes a client of a server with those answers.
func against(t *testing.T, answers ...http.HandlerFunc) (*client.Client, *fake) {
	t.Helper()
	f := &fake{answers: answers}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return fast(t, srv.URL), f
}

func fast(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Server: url, Key: key, Attempts: 4, Backoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body strings.Builder
	_, _ = fmt.Fprint(&body, read(r))
	f.mu.Lock()
	answer := f.answers[min(len(f.calls), len(f.answers)-1)]
	f.calls, f.bodies = append(f.calls, r.Clone(context.Background())), append(f.bodies, body.String())
	f.mu.Unlock()
	answer(w, r)
}

// call is the request of a try, all are those of all.
func (f *fake) call(n int) *http.Request { return f.all()[n] }

func (f *fake) all() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fake) body(n int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies[n]
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

func read(r *http.Request) string {
	var raw json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&raw)
	return string(raw)
}

func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status >= 400 {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

func problem(status int, reason string, header ...string) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"type":"x","title":"T","status":%d,"detail":"D","instance":"urn:pawl:request:req_1","reason":%q,"operation_id":"op_1"}`, status, reason), header...)
}

var submission = client.Submission{Upstream: "u", Model: "m", Input: map[string]string{"prompt": "canary-prompt"}}

const accepted = `{"id":"op_1","state":"pending"}`

// A submission has one key over all its tries, whatever became of them (1-product
// A2): a cut connection, a server that is busy, one that says when to come back.
func TestOneKey(t *testing.T) {
	c, f := against(t, cut, problem(503, "unavailable", "Retry-After", "0"), problem(429, "rate_limited", "Retry-After", "1"), says(202, accepted))
	began := time.Now()
	op, err := c.Submit(t.Context(), submission)
	if err != nil || op.ID != "op_1" || op.State != pawl.Pending {
		t.Fatal(op, err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("Retry-After: 1 was waited for %s", took)
	}
	first := f.call(0).Header.Get("Idempotency-Key")
	for i, r := range f.all() {
		if got := r.Header.Get("Idempotency-Key"); got == "" || got != first {
			t.Errorf("try %d has the key %q, the first %q", i+1, got, first)
		}
		if f.body(i) != f.body(0) || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("try %d differs", i+1)
		}
	}
	if f.count() != 4 {
		t.Errorf("%d tries", f.count())
	}
	// Another submission is another job; a given key is kept.
	if _, err := c.Submit(t.Context(), submission); err != nil {
		t.Fatal(err)
	}
	given := submission
	given.IdempotencyKey = "mine"
	if _, err := c.Submit(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if again := f.call(4).Header.Get("Idempotency-Key"); again == first || f.call(5).Header.Get("Idempotency-Key") != "mine" {
		t.Errorf("the second job has the key %q, the first %q", again, first)
	}
}

// Tries are bounded, and what was never answered says under which key it may go
// on.
func TestUnanswered(t *testing.T) {
	c, f := against(t, cut)
	_, err := c.Submit(t.Context(), submission)
	lost, ok := errors.AsType[*client.Unanswered](err)
	if !ok || lost.Tries != 4 || lost.IdempotencyKey != f.call(0).Header.Get("Idempotency-Key") || f.count() != 4 {
		t.Fatalf("%v after %d tries", err, f.count())
	}
	// The last refusal is told where there was one.
	c, f = against(t, problem(503, "unavailable"))
	if _, err = c.Submit(t.Context(), submission); !errors.Is(err, &client.Problem{Reason: "unavailable"}) || f.count() != 4 {
		t.Errorf("%v after %d tries", err, f.count())
	}
}

// The context bounds everything: a wait that would outlast it is not begun.
func TestContext(t *testing.T) {
	c, f := against(t, problem(429, "rate_limited", "Retry-After", "3600"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	if _, err := c.Submit(ctx, submission); !errors.Is(err, &client.Problem{Status: 429}) || f.count() != 1 || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %d tries and %s", err, f.count(), time.Since(began))
	}
	stop, end := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	c, _ = against(t, func(http.ResponseWriter, *http.Request) { end(why); panic(http.ErrAbortHandler) })
	if _, err := c.Submit(stop, submission); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// What no key protects is repeated only where it cannot have been carried out.
func TestUnsafe(t *testing.T) {
	c, f := against(t, cut, says(201, `{}`))
	if _, err := c.CreateEndpoint(t.Context(), client.NewEndpoint{URL: "https://a.example/"}); err == nil || f.count() != 1 {
		t.Errorf("%v after %d tries", err, f.count())
	}
	c, f = against(t, problem(503, "unavailable"), says(201, `{}`))
	if _, err := c.CreateKey(t.Context(), client.NewAPIKey{}); err == nil || f.count() != 1 {
		t.Errorf("%v after %d tries", err, f.count())
	}
	c, f = against(t, problem(429, "rate_limited"), says(201, `{"id":"ep_1","secret":"whsec_x"}`))
	ep, err := c.CreateEndpoint(t.Context(), client.NewEndpoint{URL: "https://a.example/"})
	if err != nil || f.count() != 2 || string(ep.Secret) != "whsec_x" {
		t.Errorf("%v after %d tries", err, f.count())
	}
	// A port that nobody listens on takes nothing.
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	_, err = fast(t, srv.URL).CreateEndpoint(t.Context(), client.NewEndpoint{URL: "https://a.example/"})
	if lost, ok := errors.AsType[*client.Unanswered](err); !ok || lost.Tries != 4 {
		t.Errorf("%v", err)
	}
}

// Errors say what is wrong in words for programs and people, and hold neither the
// key nor anything of a payload or of somebody else's answer.
func TestProblems(t *testing.T) {
	for status, want := range map[int]error{
		401: client.ErrUnauthorized, 402: client.ErrPayment, 403: client.ErrForbidden, 404: client.ErrNotFound,
		409: client.ErrConflict, 412: client.ErrChanged,
	} {
		c, f := against(t, problem(status, "why"))
		_, err := c.Submit(t.Context(), submission)
		p, ok := errors.AsType[*client.Problem](err)
		if !ok || p.Status != status || p.Reason != "why" || p.OperationID != "op_1" || !errors.Is(err, want) || f.count() != 1 {
			t.Errorf("%d: %v after %d tries", status, err, f.count())
		}
		if errors.Is(err, &client.Problem{Reason: "other"}) || errors.Is(err, &client.Problem{}) || errors.Is(err, errors.New("x")) {
			t.Errorf("%d is taken for another problem", status)
		}
		if err.Error() != "client: why: D, operation op_1 (request req_1)" {
			t.Errorf("%q", err)
		}
	}
	for _, answer := range []http.HandlerFunc{
		says(400, `<html>canary-page</html>`, "Content-Type", "text/html"), says(400, `{"canary-page":1}`), says(302, ``, "Location", "https://canary-page.example/"),
		says(200, `canary-page`),
	} {
		c, _ := against(t, answer)
		_, err := c.Operation(t.Context(), "op_1")
		if err == nil {
			_, err = c.Operation(t.Context(), "op_1")
		}
		for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
			text := fmt.Sprintf(form, err)
			for _, secret := range []string{key, "canary"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s in %s", secret, text)
				}
			}
		}
	}
	c, _ := against(t, cut)
	if text := fmt.Sprintf("%v %+v %#v", c, client.Options{Key: key}, client.APIKey{Secret: key}); strings.Contains(text, "canary") {
		t.Errorf("the key in %s", text)
	}
}

// A redirect is never followed with the key.
func TestRedirect(t *testing.T) {
	other, elsewhere := against(t, says(200, `{}`))
	_ = other
	srv := httptest.NewServer(elsewhere)
	t.Cleanup(srv.Close)
	c, _ := against(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, srv.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.Operation(t.Context(), "op_1"); !errors.Is(err, &client.Problem{Status: 307}) || elsewhere.count() != 0 {
		t.Errorf("%v, and %d calls elsewhere", err, elsewhere.count())
	}
}

func TestOptions(t *testing.T) {
	t.Setenv("PAWL_SERVER", "http://127.0.0.1:1")
	t.Setenv("PAWL_KEY", key)
	if _, err := client.New(client.Options{}); err != nil {
		t.Error(err)
	}
	for _, o := range []client.Options{{Server: "pawl.example.com"}, {Server: "ftp://a"}, {Server: "http://u:p@a"}, {Server: "http://a?b"}, {Key: "with space"}} {
		if _, err := client.New(o); err == nil || strings.Contains(err.Error(), "with space") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	t.Setenv("PAWL_KEY", "")
	if _, err := client.New(client.Options{}); err == nil {
		t.Error("a client without a key")
	}
}

// Lists go on from page to page as they are consumed, and not beyond.
func TestPages(t *testing.T) {
	c, f := against(t,
		says(200, `{"items":[{"id":"op_1","state":"running"},{"id":"op_2","state":"running"}],"next_page_token":"t1"}`),
		says(200, `{"items":[{"id":"op_3","state":"running"}]}`))
	all, err := client.Collect(c.Operations(t.Context(), client.OperationFilter{State: pawl.Running, MetadataKey: "k", MetadataValue: "v"}), 0)
	if err != nil || len(all) != 3 || all[2].ID != "op_3" {
		t.Fatal(all, err)
	}
	for i, want := range []string{"metadata.k=v&page_size=100&state=running", "metadata.k=v&page_size=100&page_token=t1&state=running"} {
		if got := f.call(i).URL.RawQuery; got != want {
			t.Errorf("page %d asks %s", i+1, got)
		}
	}
	c, f = against(t, says(200, `{"items":[{"id":"op_1"},{"id":"op_2"}],"next_page_token":"t1"}`))
	if some, err := client.Collect(c.Operations(t.Context(), client.OperationFilter{}), 2); err != nil || len(some) != 2 || f.count() != 1 {
		t.Error(some, err, f.count())
	}
	c, _ = against(t, says(200, `{"items":[{"id":"op_1"}],"next_page_token":"t1"}`), problem(400, "invalid_page_token"))
	if some, err := client.Collect(c.Operations(t.Context(), client.OperationFilter{}), 0); len(some) != 1 || !errors.Is(err, &client.Problem{Status: 400}) {
		t.Error(some, err)
	}
}

// Wait asks on, over answers without an end and servers that are away.
func TestWait(t *testing.T) {
	c, f := against(t, says(200, accepted), cut, problem(503, "unavailable"), says(200, `{"id":"op_1","state":"failed","error":{"code":"timeout","message":"m"}}`))
	op, err := c.Wait(t.Context(), "op_1")
	if err != nil || op.State != pawl.Failed || op.Error.Code != pawl.FailTimeout || f.call(0).Header.Get("Prefer") != "wait=60" {
		t.Error(op, err, f.call(0).Header)
	}
	c, f = against(t, problem(404, "not_found"))
	if _, err := c.Wait(t.Context(), "op_1"); !errors.Is(err, client.ErrNotFound) || f.count() != 1 {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c, f = against(t, says(200, accepted))
	if _, err := c.Wait(ctx, "op_1"); !errors.Is(err, context.DeadlineExceeded) || f.count() > 60 {
		t.Error(err, f.count())
	}
}

// Events of a feed have the ids that receivers know them by; what is no longer
// stored is told as a gap, and the rest goes on.
func TestFeedGaps(t *testing.T) {
	page := says(200, `{"items":[{"id":"evt_1","direction":"outbound","external_id":"order-7","type":"a","sequence":2},
		{"id":"evt_2","direction":"inbound","external_id":"theirs","type":"b","sequence":3},{"id":"evt_3","direction":"outbound","type":"c","sequence":6}]}`, "Pawl-Endpoint-Sequence", "6")
	c, f := against(t, page, says(200, `{"items":[]}`, "Pawl-Endpoint-Sequence", "6"))
	var got []string
	for e, err := range c.Feed(t.Context(), "ep_1", 1) {
		switch gap, is := errors.AsType[*client.Gap](err); {
		case is:
			got = append(got, fmt.Sprint(gap.From, "-", gap.To))
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, e.ID)
		}
		if e.Sequence == 6 {
			break
		}
	}
	if want := []string{"order-7", "evt_2", "4-5", "evt_3"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if q := f.call(0).URL.RawQuery; q != "after=1&endpoint=ep_1&page_size=100&wait=60" {
		t.Error(q)
	}
	c, _ = against(t, says(200, `{"items":[]}`))
	for _, err := range c.Feed(t.Context(), "ep_1", 0) {
		if err == nil {
			t.Error("an answer without an end is taken for a feed")
		}
	}
}
