package api

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// docs/limits.md: of each limit of the API's bodies the last value that passes
// and the first that does not.
func TestLimitsOfBodies(t *testing.T) {
	g := newRig(t)
	ids := g.oneOfEach()
	endpoint, account, review := ids["endpoints"], ids["accounts"], ids["reviews"]
	key := g.make("limited", "").text("id")
	text := func(n int) string { return strings.Repeat("x", n) }
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	const month = 30 * 24 * time.Hour
	submit := func(member string) string { return strings.TrimSuffix(openBody, "}") + "," + member + "}" }
	for name, c := range map[string]struct {
		by, method, path string
		at, above        string
		status           int
		refused          int
	}{
		"deadline":               {"acme", "POST", "/v1/operations", submit(`"deadline":"` + in(month) + `"`), submit(`"deadline":"` + in(month+time.Minute) + `"`), 202, 400},
		"a tenth of a day above": {"acme", "POST", "/v1/operations", submit(`"deadline":"` + in(month-time.Hour) + `"`), submit(`"deadline":"` + in(month+month/300) + `"`), 202, 400},
		"model":                  {"acme", "POST", "/v1/operations", `{"upstream":"open","model":"` + text(255) + `","input":{}}`, `{"upstream":"open","model":"` + text(256) + `","input":{}}`, 202, 400},
		"correlation_id":         {"acme", "POST", "/v1/operations", submit(`"correlation_id":"` + text(255) + `"`), submit(`"correlation_id":"` + text(256) + `"`), 202, 400},
		"owner":                  {"acme", "POST", "/v1/operations", submit(`"owner":"` + text(255) + `"`), submit(`"owner":"` + text(256) + `"`), 202, 400},
		"metadata":               {"acme", "POST", "/v1/operations", submit(`"metadata":{"k":"` + text(16<<10-8) + `"}`), submit(`"metadata":{"k":"` + text(16<<10-7) + `"}`), 202, 413},
		"input": {"acme", "POST", "/v1/operations", `{"upstream":"open","model":"m","input":{"k":"` + text(1<<20-8) + `"}}`,
			`{"upstream":"open","model":"m","input":{"k":"` + text(1<<20-7) + `"}}`, 202, 413},
		"description":    {"acme", "PATCH", "/v1/endpoints/" + endpoint, `{"description":"` + text(1000) + `"}`, `{"description":"` + text(1001) + `"}`, 200, 400},
		"endpoint owner": {"acme", "PATCH", "/v1/endpoints/" + endpoint, `{"owner":"` + text(255) + `"}`, `{"owner":"` + text(256) + `"}`, 200, 400},
		"overlap":        {"acme", "POST", "/v1/endpoints/" + endpoint + "/rotate-secret", `{"overlap":"720h"}`, `{"overlap":"720h1s"}`, 200, 400},
		"note":           {"admin", "POST", "/v1/accounts/" + account + "/credit", `{"amount":"1","currency":"USD","note":"` + text(1000) + `"}`, `{"amount":"1","currency":"USD","note":"` + text(1001) + `"}`, 200, 400},
		"review owner":   {"full", "POST", "/v1/reviews/" + review + "/assign", `{"owner":"` + text(255) + `"}`, `{"owner":"` + text(256) + `"}`, 200, 400},
		"pause reason":   {"admin", "POST", "/v1/upstreams/open/pause", `{"reason":"` + text(255) + `"}`, `{"reason":"` + text(256) + `"}`, 200, 400},
		"key name":       {"admin", "PATCH", "/v1/keys/" + key, `{"name":"` + text(255) + `"}`, `{"name":"` + text(256) + `"}`, 200, 400},
		"tenant name":    {"admin", "POST", "/v1/tenants", `{"name":"` + text(63) + `"}`, `{"name":"` + text(64) + `"}`, 201, 400},
		"key rate":       {"admin", "PATCH", "/v1/keys/" + key, `{"limits":{"rate":{"per_second":10000,"burst":10000}}}`, `{"limits":{"rate":{"per_second":10000,"burst":10001}}}`, 200, 400},
		"event type":     {"acme", "POST", "/v1/events", `{"type":"` + text(128) + `","data":{}}`, `{"type":"` + text(129) + `","data":{}}`, 202, 400},
		"event id":       {"acme", "POST", "/v1/events", `{"id":"` + text(255) + `","type":"a.b","data":{}}`, `{"id":"` + text(256) + `","type":"a.b","data":{}}`, 202, 400},
	} {
		for i, body := range []string{c.above, c.at} {
			headers := []string{"Idempotency-Key", fmt.Sprintf("%x-%d", name, i)}
			if c.method == "PATCH" {
				headers = append(headers, "If-Match", "*")
			}
			a := g.call(c.by, c.method, c.path, body, headers...)
			if i == 0 && a.text("reason") != "invalid_request" && a.text("reason") != "content_too_large" {
				t.Errorf("%s: refused for %s", name, a.text("reason"))
			}
			if want := []int{c.refused, c.status}[i]; a.status != want {
				t.Errorf("%s, %d: %d, want %d: %.300s", name, i, a.status, want, a.body)
			}
		}
	}
	// Where a decision is possible at all depends on the row; what is too long is
	// refused before.
	for _, member := range []string{`"decision":"` + text(65) + `"`, `"decision":"failed","note":"` + text(1001) + `"`, `"decision":"failed","task_id":"` + text(256) + `"`} {
		g.call("full", "POST", "/v1/reviews/"+review+"/resolve", "{"+member+"}", "Idempotency-Key", "long").want(400, "invalid_request")
	}
}

// The table in docs/limits.md is the one place for limits.
func TestLimitsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"`deadline` of an operation | 30 days", "`correlation_id`", "| 255 bytes", "`note` of a decision or a credit | 1,000 bytes", "`decision` | 64 bytes", "| 63 of", "`burst` 10,000", "| 720 h |"} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/limits.md lacks %q", row)
		}
	}
}
