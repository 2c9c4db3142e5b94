package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/webhook"
)

// in calls in the background and gives the answer with the time it took.
func (w *world) in(method, path string, body any, headers ...string) <-chan reply {
	answers := make(chan reply, 1)
	go func() {
		began := time.Now()
		r := w.call(method, path, body, headers...)
		r.took = time.Since(began)
		answers <- r
	}()
	return answers
}

// An answer waits a whole minute after a request that took its time to arrive,
// although the server is patient with both together for a minute and a half.
func TestWaitAfterASlowRequest(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		body, err := json.Marshal(job("slow"))
		if err != nil {
			w.Fatal(err)
		}
		conn, err := w.virtual.dial(w.Context(), "tcp", strings.TrimPrefix(w.node.APIURL(), "http://"))
		if err != nil {
			w.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		fmt.Fprintf(conn, "POST /v1/operations HTTP/1.1\r\nHost: pawl\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Idempotency-Key: k\r\nPrefer: wait=60\r\nContent-Length: %d\r\n\r\n", adminKey, len(body))
		time.Sleep(50 * time.Second)
		_, _ = conn.Write(body)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			w.Fatalf("after %s: %v", time.Since(began), err)
		}
		defer res.Body.Close()
		if took := time.Since(began); res.StatusCode != http.StatusAccepted || took < 110*time.Second || took > 111*time.Second {
			w.Errorf("answered %d after %s, want 202 after 110 s", res.StatusCode, took)
		}
	})
}

// An answer waits a minute at most and comes at once with the end (7-rules R7).
func TestWaitForTheEnd(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.client.Timeout = 5 * time.Minute
		r := w.want(http.StatusAccepted, <-w.in(http.MethodPost, "/v1/operations", job("slow"), "Idempotency-Key", "slow", "Prefer", "wait=60"))
		if r.took < time.Minute || r.took > time.Minute+time.Second || r.at("state") != "running" || r.header.Get("Preference-Applied") != "wait=60" {
			w.Errorf("after %s: %s, Preference-Applied %q", r.took, r.body, r.header.Get("Preference-Applied"))
		}
		answers := w.in(http.MethodPost, "/v1/operations", job("quick"), "Idempotency-Key", "quick", "Prefer", "wait=60")
		w.pass(20 * time.Second)
		c := w.provider.created()[1]
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "end", said: done(c.task)}))
		r = w.want(http.StatusOK, <-answers)
		if r.took > 20*time.Second+100*time.Millisecond || r.at("state") != "succeeded" || r.at("result") == "" {
			w.Errorf("after %s: %s", r.took, r.body)
		}
		if waiters := w.metric("pawl_http_waiters"); waiters != "0" {
			w.Errorf("%s wait", waiters)
		}
	})
}

// A node that stops answers those who wait at once, with things as they are.
func TestDrainEndsWaits(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		op := w.submit("k")
		w.pass(time.Second)
		answers := w.in(http.MethodGet, "/v1/operations/"+op+"?wait=50", nil)
		w.pass(5 * time.Second)
		began := time.Now()
		w.drain()
		if took := time.Since(began); took > time.Second {
			w.Errorf("stopping took %s", took)
		}
		r := w.want(http.StatusOK, <-answers)
		if r.took < 5*time.Second || r.took > 6*time.Second || r.at("state") != "running" {
			w.Errorf("answered after %s: %s", r.took, r.body)
		}
	})
}

// After the rotation of a key's webhook secret both sign what goes to its
// callback addresses, until the date that was said (7-rules R50, SW-11).
func TestCallbackSecretsOverlap(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		made := w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/keys", map[string]any{"name": "app", "scopes": []string{"submit"}}))
		w.sink.secrets = nil // Each delivery is verified below.
		deliver := func(key string) delivery {
			body := job("x")
			body["callback_url"] = w.sink.url
			w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", key, "Authorization", "Bearer "+made.at("secret")))
			w.pass(time.Second)
			all := w.sink.attempts()
			return all[len(all)-1]
		}
		signedBy := func(d delivery, secrets ...string) (valid string) {
			scheme, _ := webhook.Lookup("standard-webhooks")
			for _, secret := range secrets {
				key, err := scheme.ParseKey(secret)
				if err != nil {
					w.Fatal(err)
				}
				_, err = scheme.Verify(webhook.Request{Header: d.header, Body: []byte(d.body)}, time.Now(), key)
				valid += fmt.Sprint(err == nil, " ")
			}
			return valid
		}
		former := made.at("webhook_secret")
		if got := signedBy(deliver("a"), former); got != "true " {
			w.Errorf("before the rotation: %s", got)
		}
		rotated := w.want(http.StatusOK, w.call(http.MethodPost, "/v1/keys/"+made.at("id")+"/rotate-webhook-secret", map[string]any{"overlap": "1h"}))
		present := rotated.at("webhook_secret")
		if got := signedBy(deliver("b"), former, present); got != "true true " {
			w.Errorf("within the overlap: %s", got)
		}
		w.pass(time.Hour)
		if got := signedBy(deliver("c"), former, present); got != "false true " {
			w.Errorf("after the overlap: %s", got)
		}
	})
}

// A tenant that the configuration names anywhere is made at the start, without an
// account unless one is given (7-rules R51).
func TestTenantsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", func(c *config.Config, u *config.Upstream) {
		u.Tenants = []string{"default", "named"}
	})
	accounts := map[string]bool{}
	for _, item := range w.get("/v1/tenants").items() {
		accounts[item.at("name")] = item.at("account_id") != ""
	}
	if got := fmt.Sprint(accounts); got != "map[default:true named:false]" {
		t.Errorf("tenants, and whether they have an account: %s", got)
	}
}
