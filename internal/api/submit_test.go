package api

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

func TestSubmit(t *testing.T) {
	g := newRig(t)
	a := g.call("acme", "POST", "/v1/operations", `{"upstream":"studio","model":"kling-2","input":{"prompt":"x"},
		"metadata":{"order":"7"},"correlation_id":"c-1","owner":"me"}`, "Idempotency-Key", "k").want(202, "")
	id := a.text("id")
	if !strings.HasPrefix(id, "op_") || a.header.Get("Location") != "/v1/operations/"+id {
		t.Errorf("id %q, Location %q", id, a.header.Get("Location"))
	}
	// The upstream's first read is after 2 s (1-product E1).
	if got := a.header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q", got)
	}
	if a.header.Get("Idempotency-Replayed") != "" {
		t.Error("a first submit is marked as a replay")
	}
	cost, _ := a.json["cost"].(map[string]any)
	if a.text("state") != "pending" || a.json["version"] != 1.0 || cost["amount"] != "0.150000000" || cost["currency"] != "USD" || cost["settled"] != false {
		t.Errorf("%s", a.body)
	}
	if md, _ := a.json["metadata"].(map[string]any); md["order"] != "7" || a.text("correlation_id") != "c-1" || a.text("owner") != "me" || a.text("adapter") != "media-v2/1" {
		t.Errorf("%s", a.body)
	}
	accounts := g.call("acme", "GET", "/v1/accounts", "").want(200, "").items()
	if len(accounts) != 1 || accounts[0]["balance"] != "100.000000000" || accounts[0]["reserved"] != "0.150000000" || accounts[0]["available"] != "99.850000000" {
		t.Errorf("%v", accounts)
	}
	if len(accounts[0]) != 6 {
		t.Errorf("accounts have exactly six members: %v", accounts[0])
	}
	got := g.call("reader", "GET", "/v1/operations/"+id, "").want(200, "")
	if _, ok := got.json["input"]; ok {
		t.Error("input shown without the scope payloads")
	}
	if got.header.Get("Retry-After") != "2" { // LR-05
		t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
	}
	deadline, err := time.Parse(time.RFC3339, got.text("deadline"))
	if left := time.Until(deadline); err != nil || left > 2*time.Hour || left < 2*time.Hour-time.Minute {
		t.Errorf("deadline in %v, %v", left, err)
	}
}

// What a key stands for: 7-rules R2.
func TestReplays(t *testing.T) {
	first := `{"upstream":"studio","model":"free","input":{"a":1,"b":[1,2]},"metadata":{"x":"1"}}`
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"identical":           {first, 202},
		"re-serialised":       {`{ "model" : "free","input":{"b":[1.0,2e0],"a":10e-1},"upstream":"studio"}`, 202},
		"other metadata":      {strings.Replace(first, `"x":"1"`, `"x":"2"`, 1), 202},
		"deadline added":      {`{"deadline":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `",` + first[1:], 202},
		"deadline since past": {`{"deadline":"2020-01-01T00:00:00Z",` + first[1:], 202},
		"cost added":          {`{"expected_cost":{"amount":"1","currency":"USD"},` + first[1:], 202},
		"other input":         {strings.Replace(first, `"a":1`, `"a":2`, 1), 422},
		"number as text":      {strings.Replace(first, `"a":1`, `"a":"1"`, 1), 422},
		"other order":         {strings.Replace(first, `[1,2]`, `[2,1]`, 1), 422},
		"other model":         {strings.Replace(first, `free`, `kling-2`, 1), 422},
		"other upstream":      {strings.Replace(first, `studio`, `open`, 1), 422},
		"callback added":      {`{"callback_url":"https://a.example.com/cb",` + first[1:], 422},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			id := g.submit("k", first)
			a := g.call("acme", "POST", "/v1/operations", c.body, "Idempotency-Key", "k")
			if c.status == 422 {
				a.want(422, "idempotency_mismatch")
				if a.text("operation_id") != id {
					t.Errorf("does not name the operation: %s", a.body)
				}
				return
			}
			a.want(202, "")
			if a.text("id") != id || a.header.Get("Idempotency-Replayed") != "true" || a.header.Get("Location") != "/v1/operations/"+id || a.header.Get("Retry-After") == "" {
				t.Errorf("%v %s", a.header, a.body)
			}
			if md, _ := a.json["metadata"].(map[string]any); md["x"] != "1" {
				t.Errorf("the first metadata does not stay: %s", a.body)
			}
		})
	}
}

func TestLargeIntegersDiffer(t *testing.T) {
	g := newRig(t)
	body := `{"upstream":"open","model":"m","input":{"n":9007199254740992}}`
	g.submit("k", body)
	g.call("acme", "POST", "/v1/operations", strings.Replace(body, "740992", "740993", 1), "Idempotency-Key", "k").want(422, "idempotency_mismatch")
}

func TestReplayAfterTheEnd(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	g.created("open", ledger.CreateRefused, "")
	a := g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", `"k"`).want(200, "")
	if a.text("id") != id || a.text("state") != "failed" || a.header.Get("Idempotency-Replayed") != "true" || a.header.Get("Retry-After") != "" {
		t.Errorf("%v %s", a.header, a.body)
	}
}

func TestIdempotencyKeyHeader(t *testing.T) {
	g := newRig(t)
	g.call("acme", "POST", "/v1/operations", openBody).want(400, "idempotency_key_missing")
	a := g.call("acme", "POST", "/v1/operations", openBody)
	if link := a.text("documentation"); a.header.Get("Link") != "<"+link+`>; rel="describedby"` {
		t.Errorf("no link to the docs: %v %s", a.header, a.body)
	} else if page := g.call("", "GET", link, "").want(200, ""); !strings.Contains(page.text("meaning"), "idempotency.window") || page.text("remedy") == "" {
		t.Errorf("%s", page.body)
	}
	g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "a", "Idempotency-Key", "a").want(400, "idempotency_key_invalid")
	g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", strings.Repeat("k", 256)).want(400, "idempotency_key_invalid")
	g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", strings.Repeat("k", 255)).want(202, "")
}

func TestKeyOfASibling(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", openBody)
	a := g.call("sibling", "POST", "/v1/operations", openBody, "Idempotency-Key", "k").want(409, "idempotency_key_in_use")
	if strings.Contains(string(a.body)+fmt.Sprint(a.header), strings.TrimPrefix(id, "op_")) || strings.Contains(string(a.body), "op_") {
		t.Errorf("tells the operation: %v %s", a.header, a.body)
	}
	if b := g.call("other", "POST", "/v1/operations", openBody, "Idempotency-Key", "k").want(202, ""); b.text("id") == id {
		t.Error("another tenant got the operation")
	}
	items := g.call("acme", "GET", "/v1/operations?idempotency_key=k", "").want(200, "").items()
	if len(items) != 1 || items[0]["id"] != id {
		t.Errorf("%v", items)
	}
	if items := g.call("sibling", "GET", "/v1/operations?idempotency_key=k", "").want(200, "").items(); len(items) != 0 {
		t.Errorf("a sibling's key finds %v", items)
	}
}

func TestParallelSubmits(t *testing.T) {
	g := newRig(t)
	body := `{"upstream":"studio","model":"kling-2","input":{}}`
	var mu sync.Mutex
	ids, firsts := map[string]int{}, 0
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			a := g.call("acme", "POST", "/v1/operations", body, "Idempotency-Key", "k")
			mu.Lock()
			defer mu.Unlock()
			if ids[a.text("id")]++; a.status != 202 {
				t.Errorf("%d %s", a.status, a.body)
			}
			if a.header.Get("Idempotency-Replayed") == "" {
				firsts++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || firsts != 1 {
		t.Errorf("%d operations, %d first answers", len(ids), firsts)
	}
	ops, err := g.driver.Operations(t.Context(), store.OperationFilter{}, store.Page{Limit: 10})
	if err != nil || len(ops) != 1 {
		t.Errorf("%d rows, %v", len(ops), err)
	}
	if acct := g.call("acme", "GET", "/v1/accounts", "").items()[0]; acct["reserved"] != "0.150000000" {
		t.Errorf("reserved %v", acct["reserved"])
	}
}

func TestSubmitRefusals(t *testing.T) {
	in := func(days int) string { return time.Now().AddDate(0, 0, days).UTC().Format(time.RFC3339) }
	with := func(member string) string { return `{"upstream":"open","model":"m","input":{},` + member + `}` }
	nested := func(n int) string {
		return `{"upstream":"open","model":"m","input":{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	padded := func(n int) string {
		const frame = `{"p":""}`
		return `{"upstream":"open","model":"m","input":{"p":"` + strings.Repeat("x", n-len(frame)) + `"}}`
	}
	metadata := func(n int) string {
		return with(`"metadata":{"p":"` + strings.Repeat("x", n-len(`{"p":""}`)) + `"}`)
	}
	for name, c := range map[string]struct {
		body   string
		status int
		reason string
	}{
		"empty":               {``, 400, "invalid_request"},
		"list":                {`[]`, 400, "invalid_json"},
		"null":                {`null`, 400, "invalid_json"},
		"cut":                 {`{"upstream":"op`, 400, "invalid_json"},
		"trailing":            {openBody + `{}`, 400, "invalid_json"},
		"name twice":          {`{"upstream":"open","upstream":"open","model":"m","input":{}}`, 400, "invalid_json"},
		"name twice in input": {`{"upstream":"open","model":"m","input":{"a":1,"a":2}}`, 400, "invalid_json"},
		"case variant":        {`{"Upstream":"open","model":"m","input":{}}`, 400, "invalid_json"},
		"unknown field":       {with(`"nope":1`), 400, "invalid_json"},
		"release of nothing":  {with(`"release":"now"`), 400, "invalid_request"},
		"number as upstream":  {`{"upstream":1,"model":"m","input":{}}`, 400, "invalid_json"},
		"no model":            {`{"upstream":"open","input":{}}`, 400, "invalid_request"},
		"no input":            {`{"upstream":"open","model":"m"}`, 400, "invalid_request"},
		"input a list":        {`{"upstream":"open","model":"m","input":[]}`, 400, "invalid_request"},
		"input null":          {`{"upstream":"open","model":"m","input":null}`, 400, "invalid_request"},
		"depth 64":            {nested(62), 202, ""},
		"depth 65":            {nested(63), 400, "invalid_json"},
		"input 1 MiB":         {padded(1 << 20), 202, ""},
		"input 1 MiB and one": {padded(1<<20 + 1), 413, "content_too_large"},
		"body far too large":  {padded(2 << 20), 413, "content_too_large"},
		"metadata 16 KiB":     {metadata(16 << 10), 202, ""},
		"metadata one more":   {metadata(16<<10 + 1), 413, "content_too_large"},
		"metadata number":     {with(`"metadata":{"a":1}`), 202, ""},
		"metadata null value": {with(`"metadata":{"a":null}`), 202, ""},
		"metadata list":       {with(`"metadata":[]`), 400, "invalid_request"},
		"correlation 255":     {with(`"correlation_id":"` + strings.Repeat("c", 255) + `"`), 202, ""},
		"correlation 256":     {with(`"correlation_id":"` + strings.Repeat("c", 256) + `"`), 400, "invalid_request"},
		"unknown upstream":    {`{"upstream":"nope","model":"m","input":{}}`, 422, "unknown_upstream"},
		"another's upstream":  {`{"upstream":"private","model":"m","input":{}}`, 422, "unknown_upstream"},
		"unknown model":       {`{"upstream":"studio","model":"m","input":{}}`, 422, "unknown_model"},
		"deadline":            {with(`"deadline":"` + in(1) + `"`), 202, ""},
		"deadline past":       {with(`"deadline":"` + in(-1) + `"`), 400, "invalid_request"},
		"deadline far":        {with(`"deadline":"` + in(31) + `"`), 400, "invalid_request"},
		"deadline malformed":  {with(`"deadline":"tomorrow"`), 400, "invalid_request"},
		"callback metadata":   {with(`"callback_url":"http://169.254.169.254/latest"`), 400, "url_refused"},
		"callback private":    {with(`"callback_url":"https://10.0.0.1/"`), 400, "url_refused"},
		"callback scheme":     {with(`"callback_url":"ftp://a.example.com/"`), 400, "url_refused"},
		"callback":            {with(`"callback_url":"https://a.example.com/cb"`), 202, ""},
		"cost":                {with(`"expected_cost":{"amount":"0.5","currency":"USD"}`), 202, ""},
		"cost zero":           {with(`"expected_cost":{"amount":"0","currency":"USD"}`), 202, ""},
		"cost of all":         {with(`"expected_cost":{"amount":"100","currency":"USD"}`), 202, ""},
		"cost above credit":   {with(`"expected_cost":{"amount":"100.000000001","currency":"USD"}`), 402, "insufficient_credit"},
		"cost a number":       {with(`"expected_cost":{"amount":0.5,"currency":"USD"}`), 400, "invalid_json"},
		"cost negative":       {with(`"expected_cost":{"amount":"-1","currency":"USD"}`), 400, "invalid_request"},
		"cost too fine":       {with(`"expected_cost":{"amount":"0.0000000001","currency":"USD"}`), 400, "invalid_request"},
		"cost exponent":       {with(`"expected_cost":{"amount":"1e3","currency":"USD"}`), 400, "invalid_request"},
		"cost no currency":    {with(`"expected_cost":{"amount":"1"}`), 400, "invalid_request"},
		"cost other currency": {with(`"expected_cost":{"amount":"1","currency":"EUR"}`), 422, "currency"},
		"account unknown":     {with(`"account":"acct_00000000000000000000000001","expected_cost":{"amount":"1","currency":"USD"}`), 404, "not_found"},
		"account no id":       {with(`"account":"mine"`), 404, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			a := g.call("acme", "POST", "/v1/operations", c.body, "Idempotency-Key", "k").want(c.status, c.reason)
			ops, err := g.driver.Operations(t.Context(), store.OperationFilter{}, store.Page{Limit: 2})
			if want := map[bool]int{true: 1}[c.status == 202]; err != nil || len(ops) != want {
				t.Errorf("%d operations after %d", len(ops), a.status)
			}
			if c.status >= 400 {
				// A refusal leaves the key free (1-product A6).
				g.submit("k", openBody)
			}
		})
	}
}

func TestSubmitPriceNeedsAnAccount(t *testing.T) {
	g := newRig(t)
	body := `{"upstream":"studio","model":"kling-2","input":{}}`
	g.call("other", "POST", "/v1/operations", body, "Idempotency-Key", "k").want(422, "no_account")
	a := g.call("other", "POST", "/v1/operations", `{"upstream":"private","model":"x","input":{}}`, "Idempotency-Key", "k").want(202, "")
	if a.json["metered"] != false || a.json["cost"] != nil {
		t.Errorf("%s", a.body)
	}
}

// After a failed commit the same key works (1-product A6).
func TestSubmitWhileTheStoreIsDown(t *testing.T) {
	g := newRig(t)
	g.fault = func(s memory.Step) error {
		if s == memory.OnSave {
			return errors.New("disk full at /secret/path")
		}
		return nil
	}
	a := g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "k").want(503, "unavailable")
	if a.header.Get("Retry-After") == "" || strings.Contains(string(a.body), "secret/path") {
		t.Errorf("%v %s", a.header, a.body)
	}
	g.fault = nil
	if a := g.call("acme", "POST", "/v1/operations", openBody, "Idempotency-Key", "k").want(202, ""); a.header.Get("Idempotency-Replayed") != "" {
		t.Error("a submit that failed is replayed")
	}
}

func TestSubmitForATenant(t *testing.T) {
	g := newRig(t)
	a := g.call("admin", "POST", "/v1/operations?tenant=other", `{"upstream":"private","model":"x","input":{}}`, "Idempotency-Key", "k").want(202, "")
	g.call("other", "GET", "/v1/operations/"+a.text("id"), "").want(200, "")
	g.call("acme", "GET", "/v1/operations/"+a.text("id"), "").want(404, "not_found")
	g.call("admin", "POST", "/v1/operations?tenant=nobody", openBody, "Idempotency-Key", "k2").want(404, "not_found")
	g.call("acme", "POST", "/v1/operations?tenant=other", openBody, "Idempotency-Key", "k3").want(403, "tenant_forbidden")
	g.call("acme", "POST", "/v1/operations?tenant=acme", openBody, "Idempotency-Key", "k3").want(202, "")
}

func TestInputIsReadUnderAudit(t *testing.T) {
	g := newRig(t)
	id := g.submit("k", `{"upstream":"open","model":"m","input":{"n":12345678901234567890123}}`)
	a := g.call("payloads", "GET", "/v1/operations/"+id, "").want(200, "")
	if !strings.Contains(string(a.body), `"input":{"n":12345678901234567890123}`) {
		t.Errorf("%s", a.body)
	}
	lines := g.call("reader", "GET", "/v1/audit", "").want(200, "").items()
	if len(lines) == 0 || lines[0]["action"] != "operation.input" || lines[0]["subject"] != id || lines[0]["actor"] != g.keys["payloads"].ID.Text(pawl.PrefixKey) {
		t.Errorf("%v", lines)
	}
}
