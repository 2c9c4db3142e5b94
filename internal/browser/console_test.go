package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pawlhq/pawl/internal/demo"
)

var screenshots = flag.String("screenshots", "", "write a picture of each page in each look into this folder")

// town is a node that has lived: operations of three providers at their worst,
// and a browser before its console.
type town struct {
	*testing.T
	demo.Place
	browser *Browser
}

// TestConsole drives the console of a node whose operations went through every
// fault of the sim.
func TestConsole(t *testing.T) {
	t.Parallel()
	ran := false
	err := demo.Run(t.Context(), demo.Options{Operations: 60, Seed: 3, Stay: func(_ context.Context, p demo.Place) error {
		ran = true
		w := &town{T: t, Place: p}
		t.Run("in the browser", func(t *testing.T) {
			w.T = t
			w.browser = Start(t, p.Admin)
			w.prepare()
			for _, part := range []struct {
				name string
				do   func(*town)
			}{
				{"login and logout", (*town).logins}, {"find by any id", (*town).finds}, {"every page, every look", (*town).looks},
				{"a review is decided", (*town).decides}, {"a secret is rotated", (*town).rotates}, {"dead letters are replayed", (*town).replays}, {"what is not yours", (*town).strangers},
				{"a held result", (*town).held}, {"keyboard and live", (*town).lives},
			} {
				t.Run(part.name, func(t *testing.T) {
					inner := *w
					inner.T = t
					part.do(&inner)
				})
			}
		})
		return nil
	}})
	if err != nil || !ran {
		t.Fatalf("demo: %v", err)
	}
}

// call is one call of the API as the operator makes it beside the console.
func (w *town) call(method, path, body string, headers ...string) map[string]any {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.API+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.Key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	var out map[string]any
	if len(text) > 0 && json.NewDecoder(bytes.NewReader(text)).Decode(&out) != nil || resp.StatusCode >= 400 {
		w.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return out
}

// first is the first item of a list.
func (w *town) first(path string) map[string]any {
	w.Helper()
	items, _ := w.call(http.MethodGet, path, "")["items"].([]any)
	if len(items) == 0 {
		w.Fatalf("%s: nothing", path)
	}
	return items[0].(map[string]any)
}

// calledBack is an operation that succeeded, with a callback and a delivery. Of
// those that the sim let succeed some had their callbacks lost and were read.
func (w *town) calledBack() map[string]any {
	w.Helper()
	items, _ := w.call(http.MethodGet, "/v1/operations?state=succeeded&page_size=200", "")["items"].([]any)
	for _, item := range items {
		op := item.(map[string]any)
		if w.any("/v1/events?direction=inbound&operation="+op["id"].(string)) && w.any("/v1/deliveries?operation="+op["id"].(string)) {
			return op
		}
	}
	w.Fatalf("none of %d operations that succeeded had a callback", len(items))
	return nil
}

// any reports whether a list has items.
func (w *town) any(path string) bool {
	w.Helper()
	items, _ := w.call(http.MethodGet, path, "")["items"].([]any)
	return len(items) > 0
}

// prepare adds what the demo has not: another tenant with a key that only reads,
// and keys of the demo's tenant.
func (w *town) prepare() {
	w.call(http.MethodPost, "/v1/tenants", `{"name":"elsewhere"}`)
}

func (w *town) key(tenant string, scopes ...string) string {
	w.Helper()
	text, _ := json.Marshal(map[string]any{"tenant": tenant, "scopes": scopes})
	return w.call(http.MethodPost, "/v1/keys", string(text))["secret"].(string)
}

// operator is a tab that has logged in with the admin key.
func (w *town) operator() *Tab {
	w.Helper()
	tab := w.browser.Tab(w.T)
	tab.Login(w.Key)
	return tab
}

func (w *town) logins() {
	tab := w.browser.Tab(w.T)
	tab.Open("/console/operations?state=failed")
	if at := tab.Path(); !strings.HasPrefix(at, "/console/login?next=") {
		w.Fatalf("a stranger is at %s", at)
	}
	tab.Expect("401")
	tab.Expect("403")
	tab.Fill("#key", "pawl_sk_wrong000000000000000000000000000000000")
	tab.Submit(".login form")
	if tab.Count("#who") != 0 || tab.Count("[role=alert]") != 1 {
		w.Fatal("a wrong key was not refused")
	}
	tab.Fill("#key", w.Key)
	tab.Submit(".login form")
	if at := tab.Path(); at != "/console/operations?state=failed" {
		w.Errorf("after the login at %s", at)
	}
	if cookie := Ask[string](tab, "document.cookie"); cookie != "" {
		w.Errorf("scripts read the cookie %q", cookie)
	}
	tab.Click("#who")
	tab.Click("#logout")
	tab.Wait("#key")
	tab.Open("/console/operations")
	if at := tab.Path(); !strings.HasPrefix(at, "/console/login") {
		w.Errorf("after the logout at %s", at)
	}
}

// finds: "my video was charged and never came", by whatever id they were given.
func (w *town) finds() {
	op := w.calledBack()
	id := op["id"].(string)
	own := w.call(http.MethodPost, "/v1/operations", `{"upstream":"sim","model":"demo","input":{"n":1},"correlation_id":"order-77"}`, "Idempotency-Key", "finds")
	delivery := w.first("/v1/deliveries?operation=" + id)
	event := w.first("/v1/events?direction=inbound&operation=" + id)
	tab := w.operator()
	for what, c := range map[string][2]string{
		"operation": {id, id}, "task": {op["task_id"].(string), id}, "event": {event["id"].(string), event["id"].(string)},
		"delivery": {delivery["id"].(string), delivery["id"].(string)}, "correlation id": {"order-77", own["id"].(string)},
	} {
		tab.Fill("#search", c[0])
		tab.Submit("form.find")
		if at := tab.Path(); !strings.HasSuffix(at, "/"+c[1]) {
			w.Errorf("the %s %s leads to %s", what, c[0], at)
		}
	}
	tab.Open("/console/operations/" + id)
	for _, kind := range []string{"submitted", "create", "callback", "money", "attempt"} {
		if tab.Count("#timeline li[data-kind="+kind+"]") == 0 {
			w.Errorf("the timeline has no %s: %s", kind, tab.Text("#timeline"))
		}
	}
}

// pages are all that there are, with ids of things that exist.
func (w *town) pages() map[string]string {
	op := w.first("/v1/operations?state=succeeded")["id"].(string)
	return map[string]string{
		"overview": "/console", "operations": "/console/operations", "operation": "/console/operations/" + op,
		"input": "/console/operations/" + op + "/input", "reviews": "/console/reviews", "review": "/console/reviews/" + w.first("/v1/reviews")["id"].(string),
		"upstreams": "/console/upstreams", "events": "/console/events", "event": "/console/events/" + w.first("/v1/events?direction=inbound")["id"].(string),
		"raw":        "/console/events/" + w.first("/v1/events?direction=inbound")["id"].(string) + "/raw",
		"deliveries": "/console/deliveries", "dead": "/console/deliveries?state=dead", "delivery": "/console/deliveries/" + w.first("/v1/deliveries")["id"].(string),
		"endpoints": "/console/endpoints", "endpoint": "/console/endpoints/" + w.first("/v1/endpoints")["id"].(string),
		"accounts": "/console/accounts", "account": "/console/accounts/" + w.first("/v1/accounts")["id"].(string) + "?check",
		"replays": "/console/replays?what=deliveries", "nodes": "/console/nodes", "keys": "/console/keys", "key": "/console/keys/" + w.first("/v1/keys")["id"].(string), "audit": "/console/audit", "search": "/console/search",
	}
}

// looks: every page in light, dark and narrow, without a word of complaint from
// the browser, and none wider than its window.
func (w *town) looks() {
	if *screenshots != "" {
		if err := os.MkdirAll(*screenshots, 0o700); err != nil {
			w.Fatal(err)
		}
	}
	tab := w.operator()
	for name, path := range w.pages() {
		for _, look := range Looks() {
			tab.As(look)
			tab.Open(path)
			if title := tab.Text("body"); title == "" {
				w.Errorf("%s (%s) is empty", path, look.Name)
			}
			if n := tab.Overflow(); n > 0 {
				w.Errorf("%s (%s) is %d pixels wider than its window", path, look.Name, n)
			}
			if *screenshots != "" {
				tab.Screenshot(*screenshots, name+"-"+look.Name)
			}
		}
	}
}

// decides: a review is found, understood and decided, with the reason in the
// audit.
func (w *town) decides() {
	tab := w.operator()
	tab.Open("/console")
	tab.Open("/console/reviews")
	if tab.Count("tbody tr[data-id]") == 0 {
		w.Fatal("the sim opened no review")
	}
	open, _ := w.call(http.MethodGet, "/v1/reviews", "")["items"].([]any)
	for _, item := range open {
		id := item.(map[string]any)["id"].(string)
		tab.Open("/console/reviews/" + id)
		decision := Ask[string](tab, "document.querySelector('#decide [name=decision]').value")
		tab.Click("#decide label.choice")
		tab.Fill("#decide [name=reason]", "asked the provider")
		tab.Submit("#decide form")
		if text := tab.Text("#main"); !strings.Contains(text, "decided") {
			w.Errorf("after the decision: %s", text)
		}
		after := w.call(http.MethodGet, "/v1/reviews/"+id, "")
		if after["decision"] != decision || !strings.Contains(fmt.Sprint(after["note"]), "asked the provider") {
			w.Errorf("after the decision %s: %v", decision, after)
		}
		line := w.first("/v1/audit?subject=" + id)
		if line["action"] != "review.resolve" || !strings.Contains(fmt.Sprint(line["detail"]), "asked the provider") {
			w.Errorf("the audit says %v", line)
		}
	}
}

// rotates: the new secret is shown once.
func (w *town) rotates() {
	made := w.call(http.MethodPost, "/v1/endpoints", `{"url":"http://127.0.0.1:9/none","types":["never.sent"]}`)
	id := made["id"].(string)
	tab := w.operator()
	tab.Open("/console/endpoints/" + id)
	form := "form[action$=rotate]"
	tab.Run(fmt.Sprintf("document.querySelector(%q).closest('details').open = true", form))
	tab.Fill(form+" [name=reason]", "yearly")
	tab.Submit(form)
	if text := tab.Text("#main"); !strings.Contains(text, "whsec_") || strings.Contains(text, made["secret"].(string)) {
		w.Errorf("the page shows %s", text)
	}
	tab.Open("/console/endpoints/" + id)
	if html := tab.HTML(); strings.Contains(html, "whsec_") || !strings.Contains(html, "signs beside the present one until") {
		w.Error("the endpoint's page shows a secret, or not how long the former one lasts")
	}
}

// replays: dead letters of an endpoint that was down are counted, then sent again
// all together.
func (w *town) replays() {
	const lost = 5
	var up atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer receiver.Close()
	ep := w.call(http.MethodPost, "/v1/endpoints", fmt.Sprintf(`{"url":%q,"types":["report.made"],"policy":{"attempts":1}}`, receiver.URL))["id"].(string)
	for n := range lost {
		w.call(http.MethodPost, "/v1/events", fmt.Sprintf(`{"id":"report-%d","type":"report.made","data":{}}`, n))
	}
	dead := func() int {
		items, _ := w.call(http.MethodGet, "/v1/deliveries?state=dead&endpoint="+ep, "")["items"].([]any)
		return len(items)
	}
	w.until("the letters are not dead", func() bool { return dead() == lost })
	up.Store(true)
	if disabled, _ := w.call(http.MethodGet, "/v1/endpoints/"+ep, "")["disabled"].(bool); disabled {
		w.call(http.MethodPost, "/v1/endpoints/"+ep+"/enable", "")
	}

	tab := w.operator()
	tab.Open("/console/deliveries?state=dead&endpoint=" + ep)
	tab.Click("#replay-all")
	tab.Wait("#replay [name=dry_run]")
	tab.Fill("#replay [name=reason]", "they are up again")
	tab.Click("#replay [name=dry_run]")
	tab.Wait("#count b")
	if count := tab.Text("#count b"); count != fmt.Sprint(lost) {
		w.Errorf("counted %s, want %d", count, lost)
	}
	if dead() != lost {
		w.Error("the count has sent something")
	}
	tab.Fill("#again [name=reason]", "they are up again")
	tab.Submit("#again")
	w.until("not all were sent again", func() bool { return dead() == 0 })
	tab.Wait("h1 .state.done")
}

// until waits for something that the node does by itself.
func (w *town) until(otherwise string, holds func() bool) {
	w.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatal(otherwise)
		}
	}
}

// strangers: another tenant's page and another role's act are refused.
func (w *town) strangers() {
	op := w.first("/v1/operations?state=succeeded")
	elsewhere := w.browser.Tab(w.T)
	elsewhere.Login(w.key("elsewhere", "read", "operate", "payloads"))
	elsewhere.Expect("404")
	elsewhere.Expect("403")
	for name, path := range w.pages() {
		elsewhere.Open(path)
		if html := elsewhere.HTML(); strings.Contains(html, op["id"].(string)) && !strings.Contains(path, op["id"].(string)) || strings.Contains(html, op["task_id"].(string)) {
			w.Errorf("%s shows another tenant's operation", name)
		}
	}
	reader := w.browser.Tab(w.T)
	reader.Login(w.key("default", "read"))
	reader.Expect("403")
	reader.Open("/console/operations/" + op["id"].(string))
	if n := reader.Count("#main form[method=post]"); n != 0 {
		w.Errorf("a key that reads is offered %d forms", n)
	}
	reader.Open("/console/operations/" + op["id"].(string) + "/input")
	if reader.Count("#input") != 0 {
		w.Error("a key without payloads reads the input")
	}
	cancel := fmt.Sprintf(`fetch(%q, {method: "POST", headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: "reason=x&once=y"}).then(r => r.status)`,
		"/console/operations/"+op["id"].(string)+"/cancel")
	if status := Ask[int](reader, cancel); status != http.StatusForbidden {
		w.Errorf("a cancel by a key that reads: %d", status)
	}
}

// held: a result under release: hold is on no page (1-product G4).
func (w *town) held() {
	op := w.call(http.MethodPost, "/v1/operations", `{"upstream":"sim","model":"demo","input":{"n":3},"release":"hold"}`, "Idempotency-Key", "held")["id"].(string)
	w.until("it did not succeed", func() bool { return w.call(http.MethodGet, "/v1/operations/"+op, "")["state"] == "succeeded" })
	tab := w.operator()
	pages := []string{"/console/operations/" + op, "/console/events?operation=" + op}
	// Where its callbacks were lost, a read brought the result.
	events, _ := w.call(http.MethodGet, "/v1/events?operation="+op, "")["items"].([]any)
	for _, item := range events {
		event := item.(map[string]any)["id"].(string)
		pages = append(pages, "/console/events/"+event, "/console/events/"+event+"/raw")
	}
	tab.Open("/console/operations/" + op)
	if text := tab.Text("#main"); !strings.Contains(text, "held") {
		w.Errorf("the page does not say that the result is held: %s", text)
	}
	tab.Expect("404")
	for _, path := range pages {
		tab.Open(path)
		if html := tab.HTML(); strings.Contains(html, "http://127.0.0.1") && strings.Contains(html, "/files/") {
			w.Errorf("%s shows a link of the result", path)
		}
	}
}

// lives: a page shows a change without being loaded again, and / leads to the
// search.
func (w *town) lives() {
	op := w.call(http.MethodPost, "/v1/operations", `{"upstream":"sim","model":"demo","input":{"n":3}}`, "Idempotency-Key", "lives")["id"].(string)
	tab := w.operator()
	tab.Open("/console/operations/" + op)
	tab.do("press /", chromedp.KeyEvent("/"))
	if focused := Ask[string](tab, "document.activeElement.id"); focused != "search" {
		w.Errorf("/ leads to %q", focused)
	}
	tab.Run("document.activeElement.blur()")
	tab.Wait("h1 .state.succeeded")
}
