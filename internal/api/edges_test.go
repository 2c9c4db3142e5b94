package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
)

var onePage = store.Page{Limit: 1}

func storeFilter(tenant string) store.APIKeyFilter { return store.APIKeyFilter{Tenant: tenant} }

func TestWhoAsks(t *testing.T) {
	g := newRig(t)
	secret := g.secrets["reader"]
	bare := g.call("", "GET", "/v1/whoami", "").want(401, "unauthenticated")
	if got := bare.header.Get("WWW-Authenticate"); got != `Bearer realm="pawl"` {
		t.Errorf("%q", got)
	}
	for _, lines := range [][]string{
		{"Basic " + secret}, {secret}, {"Bearer"}, {"Bearer "}, {"Bearer " + secret + "x"}, {"Bearer " + secret[:len(secret)-1]},
		{"Bearer pawl_sk_" + strings.Repeat("a", 43)}, {"Bearer " + secret + " x"}, {"Bearer " + secret, "Bearer " + secret},
	} {
		headers := []string{}
		for _, line := range lines {
			headers = append(headers, "Authorization", line)
		}
		if len(lines) == 2 { // call clears the header before each one
			req, _ := http.NewRequestWithContext(t.Context(), "GET", g.url+"/v1/whoami", nil)
			req.Header["Authorization"] = lines
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != 401 {
				t.Errorf("two credentials: %v %v", resp, err)
			}
			_ = resp.Body.Close()
			continue
		}
		a := g.call("", "GET", "/v1/whoami", "", headers...).want(401, "unauthenticated")
		if !strings.Contains(a.header.Get("WWW-Authenticate"), "invalid_token") || strings.Contains(string(a.body), "pawl_sk_a") {
			t.Errorf("%v %s", a.header, a.body)
		}
	}
	g.call("", "GET", "/v1/whoami", "", "Authorization", "bearer  "+secret).want(200, "")
}

func TestErrorsOfTheRouter(t *testing.T) {
	g := newRig(t)
	for _, path := range []string{"/v1", "/v1/", "/v1/nope", "/v1/operations/", "/v1//operations", "/v1/./operations", "/v1/operations/%2e%2e", "/v1/operations/op_1/nope", "/v1/operations%2Fx", "/other"} {
		g.call("reader", "GET", path, "").want(404, "not_found")
	}
	a := g.call("reader", "PUT", "/v1/endpoints", "{}").want(405, "method_not_allowed")
	if got := a.header.Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow %q", got)
	}
	g.call("reader", "OPTIONS", "/v1/whoami", "").want(405, "method_not_allowed")
	for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "/"} {
		a := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/"}`, "Content-Type", ct).want(415, "unsupported_media_type")
		if a.header.Get("Accept") != "application/json" {
			t.Errorf("%v", a.header)
		}
	}
	g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/"}`, "Content-Type", `application/json; charset="UTF-8"`).want(201, "")
	g.call("acme", "POST", "/v1/endpoints", `{"description":"`+strings.Repeat("x", maxBody)+`"}`).want(413, "content_too_large")
}

func TestHEAD(t *testing.T) {
	g := newRig(t)
	a := g.call("reader", "HEAD", "/v1/operations", "")
	if a.status != 200 || len(a.body) != 0 || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %q", a.status, a.header, a.body)
	}
	if a := g.call("", "HEAD", "/v1/operations", ""); a.status != 401 || len(a.body) != 0 {
		t.Errorf("%d %q", a.status, a.body)
	}
}

func TestPages(t *testing.T) {
	g := newRig(t)
	var want []string
	for i := range 5 {
		want = append([]string{g.submit(fmt.Sprint(i), openBody)}, want...)
	}
	var got []string
	path := "/v1/operations?upstream=open&page_size=2"
	for range 4 {
		a := g.call("reader", "GET", path, "").want(200, "")
		for _, item := range a.items() {
			got = append(got, item["id"].(string))
		}
		token := a.text("next_page_token")
		if token == "" {
			break
		}
		next, _, _ := strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
		if !strings.Contains(next, token) || !strings.HasPrefix(next, "/v1/operations?") || !strings.Contains(a.header.Get("Link"), `rel="next"`) {
			t.Fatalf("Link %q", a.header.Get("Link"))
		}
		g.submit("new"+token[:8], openBody) // Rows that come meanwhile change nothing.
		path = next
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	token := g.call("reader", "GET", "/v1/operations?page_size=1", "").text("next_page_token")
	g.call("reader", "GET", "/v1/operations?page_size=100&page_token="+token, "").want(200, "")
	for _, path := range []string{
		"/v1/operations?state=pending&page_token=" + token, "/v1/events?page_token=" + token, "/v1/operations?page_token=" + token[1:],
		"/v1/operations?page_token=x", "/v1/operations?page_token=" + strings.Repeat("A", 60),
	} {
		g.call("reader", "GET", path, "").want(400, "invalid_page_token")
	}
	// Another tenant's token grants nothing.
	g.call("other", "GET", "/v1/operations?page_token="+token, "").want(400, "invalid_page_token")
	g.call("reader", "GET", "/v1/operations?page_size=-1", "").want(400, "invalid_query")
	g.call("reader", "GET", "/v1/operations?page_size=0", "").want(200, "")
	g.call("reader", "GET", "/v1/operations?page_size=100000", "").want(200, "")
	id, err := pawl.ParseID(pawl.PrefixOperation, want[4])
	if err != nil || strings.Contains(token, string(id[:])) {
		t.Error("the token shows the id")
	}
}

// described are the routes of the document that the API serves.
func (g *rig) described() map[string]map[string]map[string]any {
	g.t.Helper()
	resp, err := http.Get(g.url + "/v1/openapi.json")
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc struct {
		OpenAPI  string
		Paths    map[string]map[string]map[string]any
		Webhooks map[string]any
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		g.t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Webhooks["operation.succeeded"] == nil || len(doc.Paths) < 25 {
		g.t.Fatalf("%s with %d paths", doc.OpenAPI, len(doc.Paths))
	}
	return doc.Paths
}

// Every route refuses without a key and without its scope, and treats another
// tenant's ids like ids that do not exist.
func TestEveryRoute(t *testing.T) {
	g := newRig(t)
	ids := g.oneOfEach()
	for path, methods := range g.described() {
		for method, op := range methods {
			if isOpen(op) {
				continue
			}
			method = strings.ToUpper(method)
			t.Run(method+" "+path, func(t *testing.T) {
				g.t = t
				headers := []string{"If-Match", `"1"`, "Idempotency-Key", "x"}
				unknown := strings.NewReplacer("{id}", "nonsense", "{name}", "nonsense", "{lease}", "nonsense").Replace(path)
				g.call("", method, unknown, "").want(401, "unauthenticated")
				if desc, _ := op["description"].(string); desc != "" {
					g.call(keyWithout(desc), method, unknown, "", headers...).want(403, "insufficient_scope")
				}
				if !strings.Contains(path, "{id}") {
					return
				}
				resource := strings.Split(path, "/")[2]
				mine := strings.ReplaceAll(path, "{id}", ids[resource])
				zeros := strings.ReplaceAll(path, "{id}", regexp.MustCompile(`_.*`).ReplaceAllString(ids[resource], "_00000000000000000000000001"))
				key := "other"
				if strings.Contains(fmt.Sprint(op["description"]), "admin") {
					key = "admin" // narrowed to the other tenant
					mine, zeros, unknown = mine+"?tenant=other", zeros+"?tenant=other", unknown+"?tenant=other"
				}
				body := ""
				if method == "POST" || method == "PATCH" {
					body = "{}"
				}
				foreign := g.call(key, method, mine, body, headers...).want(404, "not_found")
				absent := g.call(key, method, zeros, body, headers...).want(404, "not_found")
				g.call(key, method, unknown, body, headers...).want(404, "not_found")
				if foreign.text("detail") != absent.text("detail") || foreign.text("title") != absent.text("title") {
					t.Errorf("another tenant's id can be told apart: %s %s", foreign.body, absent.body)
				}
			})
		}
	}
}

// keyWithout is a key that lacks the scope that a route's description names.
func keyWithout(description string) string {
	if strings.Contains(description, "scope read") {
		return "submitter"
	}
	return "reader"
}

// oneOfEach makes one row of each resource for acme and gives their ids.
func (g *rig) oneOfEach() map[string]string {
	endpoint, operation, row := g.deliverTo()
	events := g.call("reader", "GET", "/v1/events", "").items()
	g.submit("unconfirmed", `{"upstream":"open","model":"m","input":{}}`)
	g.attempt(row, 400)
	reviews := g.call("reader", "GET", "/v1/reviews", "").items()
	return map[string]string{
		"endpoints": endpoint, "operations": operation, "deliveries": row.ID.Text(pawl.PrefixDelivery),
		"events": events[0]["id"].(string), "accounts": g.call("reader", "GET", "/v1/accounts", "").items()[0]["id"].(string),
		"reviews": reviews[0]["id"].(string), "keys": g.keys["reader"].ID.Text(pawl.PrefixKey),
	}
}

// Lists show a tenant nothing of another.
func TestListsAreOfOneTenant(t *testing.T) {
	g := newRig(t)
	g.oneOfEach()
	for path, methods := range g.described() {
		if methods["get"] == nil || strings.Contains(path, "{") || path == "/v1/tenants" || path == "/v1/nodes" || path == "/v1/status" {
			continue
		}
		a := g.call("other", "GET", path, "").want(200, "")
		if strings.Contains(string(a.body), "acme") {
			t.Errorf("%s shows acme: %s", path, a.body)
		}
		if items, ok := a.json["items"]; ok && slices.Contains([]string{"/v1/operations", "/v1/events", "/v1/deliveries", "/v1/endpoints", "/v1/reviews", "/v1/accounts"}, path) && len(items.([]any)) > 0 {
			t.Errorf("%s: %s", path, a.body)
		}
		g.call("admin", "GET", path, "").want(200, "")
	}
}

// Each reason of the ledger and of this package has a title, and no title is
// left over.
func TestEveryReasonHasATitle(t *testing.T) {
	used := map[string]bool{}
	patterns := []*regexp.Regexp{
		regexp.MustCompile(`(?:dropped|refuse)\(pawl\.\w+, "([a-z_]+)"`),
		regexp.MustCompile(`Reason: "([a-z_]+)", Message`),
		regexp.MustCompile(`refuse\(http\.\w+, "([a-z_]+)"`),
		regexp.MustCompile(`reason :?= "(idempotency[a-z_]+)"`),
	}
	for _, dir := range []string{".", "../ledger"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range patterns {
				for _, m := range p.FindAllStringSubmatch(string(text), -1) {
					used[m[1]] = true
				}
			}
		}
	}
	notForCallers := []string{"panic", "miss", "unknown_token", "too_many_orphans", "task_mismatch", "empty", "early", "order"}
	for reason := range used {
		if titles[reason] == "" && !slices.Contains(notForCallers, reason) {
			t.Errorf("reason %q has no title", reason)
		}
	}
	for reason := range explanations {
		if titles[reason] == "" {
			t.Errorf("the page of %q has no title", reason)
		}
	}
	for reason := range titles {
		if text := explanations[reason]; text.meaning == "" || text.remedy == "" {
			t.Errorf("reason %q has no page under /v1/problems: give it a meaning and a remedy", reason)
		}
		if !used[reason] {
			t.Errorf("title of %q is not used", reason)
		}
	}
}

// A problem's type leads to a page on the node itself, for whoever has no API key
// and no other network (RFC 9457 §3.1.1, 1-product A3).
func TestProblemTypesArePages(t *testing.T) {
	g := newRig(t)
	for reason, title := range titles {
		a := g.call("", "GET", "/v1/problems/"+reason, "").want(200, "")
		statuses, _ := a.json["statuses"].([]any)
		if a.text("reason") != reason || a.text("title") != title || a.text("type") != "/v1/problems/"+reason || a.text("meaning") == "" || a.text("remedy") == "" || len(statuses) == 0 && reason != "negative_price" {
			t.Errorf("%s: %s", reason, a.body)
		}
	}
	refused := g.call("acme", "GET", "/v1/operations?state=nope", "").want(400, "invalid_query")
	if page := g.call("", "GET", refused.text("type"), "").want(200, ""); fmt.Sprint(page.json["statuses"]) != "[400]" {
		t.Errorf("%s", page.body)
	}
	g.call("", "GET", "/v1/problems/nosuch", "").want(404, "not_found")
	for _, path := range []string{"/v1/problems/version", "/v1/openapi.json", "/v1/operations"} {
		g.call("acme", "GET", path, "", "Pad", strings.Repeat("x", 32<<10)).want(431, "headers_too_large")
	}
}

// Nothing that must stay secret is logged, at whatever level (1-product I4).
func TestTheLogHoldsNoSecrets(t *testing.T) {
	g := newRig(t)
	g.submit("canary-key", openBody)
	a := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/canary-path"}`).want(201, "")
	g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/","secret":"canary secret"}`).want(400, "invalid_request")
	g.call("", "GET", "/v1/whoami", "", "Authorization", "Bearer canary-credential").want(401, "unauthenticated")
	log := g.log.String()
	for _, secret := range []string{"canary", a.text("secret"), g.secrets["acme"], "pawl_sk_"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if !strings.Contains(log, "POST /v1/operations") {
		t.Error("the log names no route")
	}
}

func TestStoreIsClosed(t *testing.T) {
	g := newRig(t)
	g.call("reader", "GET", "/v1/operations", "").want(200, "")
	_ = g.driver.Close()
	if a := g.call("reader", "GET", "/v1/operations", "").want(503, "unavailable"); a.header.Get("Retry-After") == "" {
		t.Errorf("%v", a.header)
	}
}

func TestPanicked(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	h := telemetry.HTTP(func(*http.Request) string { return "" }, telemetry.NewMetrics(prometheus.NewRegistry()), nil, log, Panicked,
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("canary") }))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/operations", nil))
	a := answer{t: t, status: w.Code, header: w.Result().Header, body: w.Body.Bytes()}
	if err := json.Unmarshal(a.body, &a.json); err != nil {
		t.Fatal(err)
	}
	a.want(500, "internal")
	if strings.Contains(w.Body.String(), "canary") {
		t.Error("the problem tells what the panic said")
	}
}
