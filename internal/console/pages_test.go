package console

import (
	"bufio"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// everyPage are the addresses of all pages over a story, with a text that each
// must show to a key that sees it.
func (s *story) everyPage() map[string]string {
	return map[string]string{
		"/console":            `id="health"`,
		"/console/operations": s.succeeded,
		"/console/operations?state=failed&upstream=studio":       s.failed,
		"/console/operations/" + s.succeeded:                     "job_1",
		"/console/operations/" + s.held:                          "The result is held",
		"/console/operations/" + s.failed:                        "content_rejected",
		"/console/operations/" + s.unconfirmed:                   "not created",
		"/console/operations/" + s.pending:                       "It is created at the upstream when its turn comes",
		"/console/reviews":                                       "unconfirmed",
		"/console/upstreams":                                     "media team",
		"/console/search":                                        "Paste any id",
		"/console/search?q=order-9":                              "order-9",
		"/console/events":                                        "operation.succeeded",
		"/console/events?direction=outbound&operation=" + s.held: "operation.succeeded",
		"/console/deliveries":                                    s.delivery,
		"/console/deliveries?state=dead":                         "Dead letters",
		"/console/deliveries/" + s.delivery:                      "Attempts",
		"/console/endpoints":                                     "https://hooks.example.com/in",
		"/console/endpoints/" + s.endpoint:                       "1 dead",
		"/console/accounts":                                      "USD",
		"/console/accounts/" + s.account():                       "reserve",
		"/console/keys":                                          "operator",
		"/console/keys/" + s.keyID("reader"):                     "Last used",
		"/console/replays":                                       "Nothing was replayed in bulk",
		"/console/audit":                                         "console.login",
	}
}

// TestEveryPageIsShown holds that each page is made of real rows, whole, without
// anything that the policy forbids, and with the headers of CO-03.
func TestEveryPageIsShown(t *testing.T) {
	s := newStory(t)
	for _, key := range []string{"admin", "operator", "reader"} {
		v := s.as(key)
		for path, text := range s.everyPage() {
			status := 200
			if strings.Contains(path, "order-9") {
				status = 404
			}
			if key == "reader" && strings.Contains(path, s.unconfirmed) {
				text = "never sent again blindly"
			}
			p := v.get(path).want(status).shows(text).hides("no value", "%!")
			for name, want := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
				"Cross-Origin-Opener-Policy": "same-origin",
			} {
				if got := p.header.Get(name); got != want {
					t.Errorf("%s: %s is %q", path, name, got)
				}
			}
			inert(t, p)
		}
	}
	for _, fault := range s.reads.faults {
		t.Error("a page is not bounded: " + fault)
	}
}

var (
	scripts = regexp.MustCompile(`<script[^>]*>`)
	tags    = regexp.MustCompile(`<(svg|iframe|object|embed|b>owner)`)
	links   = regexp.MustCompile(`(href|src|action)="([^"]*)"`)
	quoted  = regexp.MustCompile(`"[^"]*"`)
	handler = regexp.MustCompile(`<[^>]*\son[a-z]+=`)
)

// inert insists that a page has no script but our files, no element of a
// provider's making, and no address outside the console (CO-04).
func inert(t *testing.T, p page) {
	t.Helper()
	for _, tag := range scripts.FindAllString(p.body, -1) {
		if !strings.Contains(tag, `src="/console/static/`) {
			t.Errorf("%s: %s", p.what, tag)
		}
	}
	if tag := tags.FindString(p.body); tag != "" {
		t.Errorf("%s: %s", p.what, tag)
	}
	if tag := handler.FindString(quoted.ReplaceAllString(p.body, `""`)); tag != "" {
		t.Errorf("%s: %s", p.what, tag)
	}
	for _, link := range links.FindAllStringSubmatch(p.body, -1) {
		if !strings.HasPrefix(link[2], "/console") && link[2] != "#main" {
			t.Errorf("%s: an address elsewhere: %s", p.what, link[0])
		}
	}
}

// TestHostileTextIsShownAsText holds that what a provider wrote is there, escaped.
func TestHostileTextIsShownAsText(t *testing.T) {
	s := newStory(t)
	escaped := "&lt;script&gt;alert(1)&lt;/script&gt;&lt;svg onload=alert(2)&gt; javascript:alert(3)"
	p := s.as("operator").get("/console/operations/" + s.failed).want(200).shows(escaped)
	inert(t, p)
	inert(t, s.as("operator").get("/console/operations/"+s.succeeded).shows(escaped, "&lt;b&gt;owner&lt;/b&gt;", "alert(4)"))
	inert(t, s.as("admin").get("/console/search?q="+url.QueryEscape(hostile)).want(404).shows(escaped))
	inert(t, s.as("admin").get("/console/operations?upstream="+url.QueryEscape(hostile)).want(200))
}

// TestAnotherTenantSeesNothing holds that an id of acme's is as unknown to other
// as one that does not exist, on each page and for each act (CO-05).
func TestAnotherTenantSeesNothing(t *testing.T) {
	s := newStory(t)
	v := s.as("other")
	for _, path := range []string{
		"/console/operations/" + s.succeeded, "/console/operations/" + s.succeeded + "/input", "/console/reviews/" + s.orphan,
		"/console/live?operation=" + s.succeeded, "/console/search?q=job_1", "/console/search?q=order-1",
		"/console/search?q=" + s.request, "/console/search?q=provider-request-job_1", "/console/search?q=e1", "/console/search?q=e9",
	} {
		v.get(path).want(404).hides("kling-2", "canary-prompt", s.failed)
	}
	for _, path := range []string{"/console", "/console/operations", "/console/reviews", "/console/upstreams"} {
		v.get(path).want(200).hides(s.succeeded, s.orphan, "order-1", "payments")
	}
	v.get("/console/operations?tenant=acme").want(403).hides(s.succeeded)
	for _, a := range acts {
		path := strings.NewReplacer("operations/{id}", "operations/"+s.succeeded, "deliveries/{id}", "deliveries/"+s.delivery,
			"reviews/{id}", "reviews/"+s.orphan, "{name}", "private").Replace(a.path)
		status := 404
		if strings.Contains(path, "upstreams") || strings.HasSuffix(path, "/erase") {
			status = 403 // Of the installation: for admin alone.
		}
		v.post(path, url.Values{"reason": {"because"}, "decision": {"keep"}, "once": {"k"}, "owner": {"x"}}).want(status)
	}
}

// TestRolesDecideWhatIsDone holds that a key that only reads gets no form, and is
// refused where it sends one all the same.
func TestRolesDecideWhatIsDone(t *testing.T) {
	s := newStory(t)
	v := s.as("reader")
	v.get("/console/operations/" + s.pending).want(200).hides(`method="post" action="/console/operations`)
	v.post("/console/operations/"+s.pending+"/cancel", url.Values{"reason": {"because"}}).want(403).shows("operate")
	v.get("/console/operations/" + s.pending + "/input").want(403).shows("payloads").hides("canary-prompt")
	s.as("operator").get("/console/operations/" + s.pending + "/input").want(403).hides("canary-prompt")
	s.as("operator").post("/console/upstreams/studio/pause", url.Values{"reason": {"because"}}).want(403)
	s.as("submitter").get("/console/operations").want(403).shows("read")
	payloads := s.as("payloads")
	payloads.get("/console/operations/" + s.pending + "/input").want(200).shows("canary-prompt")
	payloads.get("/console/operations/" + s.pending).want(200).shows(s.pending + "/input")
	v.get("/console/operations/" + s.pending).want(200).hides(s.pending + "/input")
}

// TestReadingPayloadsIsMeant holds that the pages of a key that may read inputs
// do not read them, and that the one that does is in the audit (7-rules R53).
func TestReadingPayloadsIsMeant(t *testing.T) {
	s := newStory(t)
	read := func() int {
		rows, err := s.driver.Audits(t.Context(), store.AuditFilter{Action: "operation.input"}, store.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	for _, key := range []string{"payloads", "admin"} {
		v, before := s.as(key), read()
		for path := range s.everyPage() {
			v.get(path).hides("canary-prompt")
		}
		if n := read(); n != before {
			t.Errorf("%s: looking at pages read %d inputs", key, n-before)
		}
		v.get("/console/operations/" + s.pending + "/input").want(200).shows("canary-prompt")
		if n := read(); n != before+1 {
			t.Errorf("%s: reading an input is %d lines of the audit", key, n-before)
		}
	}
}

// TestHeldResultsAreShownNowhere holds 1-product G4.
func TestHeldResultsAreShownNowhere(t *testing.T) {
	s := newStory(t)
	for _, key := range []string{"admin", "operator", "payloads"} {
		v := s.as(key)
		for path := range s.everyPage() {
			v.get(path).hides("RESULT-HELD")
		}
		for _, event := range s.events(s.held) {
			v.get("/console/events/" + event).want(200).hides("RESULT-HELD")
			v.get("/console/events/" + event + "/raw").hides("RESULT-HELD")
		}
	}
}

// TestActsAreTheAPIs holds that what a form does is one command by the session's
// key, with its reason in the audit, and done once however often it is sent.
func TestActsAreTheAPIs(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	key := s.keys["operator"].ID.Text(pawl.PrefixKey)
	audited := func(action, subject string) []ledger.Audit {
		t.Helper()
		rows, err := s.driver.Audits(t.Context(), store.AuditFilter{Action: action, Subject: subject}, store.Page{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	path := "/console/operations/" + s.pending
	v.post(path+"/cancel", url.Values{"once": {"c-1"}}).want(400).shows("A reason is missing")
	for range 2 {
		p := v.post(path+"/cancel", url.Values{"once": {"c-1"}, "reason": {"wrong prompt <b>"}}).want(303)
		if to := p.header.Get("Location"); to != path {
			t.Errorf("leads to %q", to)
		}
	}
	v.get(path).want(200).shows("The cancel is asked for", `<span class="state canceled">`)
	v.get(path).want(200).hides("The cancel is asked for") // It is told once.
	rows := audited("operation.cancel", s.pending)
	if len(rows) != 1 || rows[0].Actor != key || rows[0].Detail != "wrong prompt <b>" {
		t.Errorf("audit %+v", rows)
	}
	v.post("/console/operations/"+s.unconfirmed+"/resolve", url.Values{"once": {"r-1"}, "reason": {"it is there"}, "decision": {"created"}, "task_id": {"job_77"}}).want(303)
	v.get("/console/operations/"+s.unconfirmed).shows(`<span class="state running">`, "job_77")
	if rows := audited("operation.resolve", s.unconfirmed); len(rows) != 1 || rows[0].Detail != "created: it is there" {
		t.Errorf("audit %+v", rows)
	}
	v.post("/console/operations/"+s.held+"/release", url.Values{"reason": {"checked"}}).want(303)
	if rows := audited("operation.release", s.held); len(rows) != 1 || rows[0].Detail != "checked" {
		t.Errorf("audit %+v", rows)
	}
	v.post("/console/deliveries/"+s.delivery+"/retry", url.Values{"once": {"d-1"}, "reason": {"it is up"}, "back": {"https://evil.example"}}).want(303)
	if rows := audited("delivery.retry", s.delivery); len(rows) != 1 || rows[0].Detail != "it is up" {
		t.Errorf("audit %+v", rows)
	}
	admin := s.as("admin")
	admin.post("/console/upstreams/studio/pause", url.Values{"reason": {"they are down"}}).want(303)
	admin.get("/console/upstreams").shows("they are down", "Resume")
	admin.get("/console").shows("Upstream studio: submit is paused, they are down")
	admin.post("/console/upstreams/studio/resume", url.Values{"reason": {"they are up"}}).want(303)
	admin.get("/console/upstreams").hides("they are down", "Resume</summary>")
}

// TestReviewsAreDecided goes from the list to the decision.
func TestReviewsAreDecided(t *testing.T) {
	s := newStory(t)
	v := s.as("admin")
	v.get("/console/reviews?reason=orphan").want(200).shows(s.orphan)
	path := "/console/reviews/" + s.orphan
	v.get(path).want(200).shows("A verified event names a task that no operation claims", `value="attach"`, `value="discard"`, `name="operation_id"`)
	v.post(path+"/assign", url.Values{"owner": {"night shift"}, "reason": {"mine"}}).want(303)
	v.get(path).shows("night shift")
	v.post(path+"/resolve", url.Values{"decision": {"keep"}, "reason": {"no"}}).want(400)
	v.post(path+"/resolve", url.Values{"decision": {"discard"}, "reason": {"a test of theirs"}}).want(303)
	v.get(path).shows("decided", "discard", "a test of theirs", "review.resolve").hides(`value="attach"`)
	v.post(path+"/resolve", url.Values{"decision": {"discard"}, "reason": {"again"}}).want(409)
	v.get("/console/reviews").hides(s.orphan)
	v.get("/console/reviews?open=false").shows(s.orphan)
	// Each reason has a page of its decisions, each with what it does.
	for _, word := range reasonWords() {
		reason, _ := pawl.ParseReason(word)
		for _, c := range choices(reviewItem{Reason: word, Choices: reason.Guide().Choices}) {
			if c.Means == "" {
				t.Errorf("nothing says what %s does of %s", c.Word, word)
			}
		}
	}
}

// TestEncodedPathsAreNone holds that an id cannot become another path of the API.
func TestEncodedPathsAreNone(t *testing.T) {
	s := newStory(t)
	v := s.as("payloads")
	for _, path := range []string{
		"/console/operations/" + s.succeeded + "%2Ftimeline/input", "/console/operations/" + s.succeeded + "%2Ftimeline",
		"/console/live?operation=" + s.succeeded + "%2Ftimeline", "/console/reviews/%2e%2e%2Foperations",
	} {
		v.get(path).want(404)
	}
	if log := s.log.String(); strings.Contains(log, "a page failed") {
		t.Error("a mistyped address is told as a fault of ours:", log)
	}
}

// TestListsGoOn holds that a list leads to its next page with its filters.
func TestListsGoOn(t *testing.T) {
	s := newStory(t)
	for range 51 {
		s.submit("held", "")
	}
	v := s.as("reader")
	p := v.get("/console/operations?upstream=held&unfinished=true").want(200)
	next := regexp.MustCompile(`id="next" rel="next" href="([^"]*)"`).FindStringSubmatch(p.body)
	if next == nil {
		t.Fatal("no next page")
	}
	q := v.get(strings.ReplaceAll(next[1], "&amp;", "&")).want(200).hides(`id="next"`)
	if n := strings.Count(p.body, "<tr data-id="); n != 50 {
		t.Errorf("%d rows on the first page", n)
	}
	if n := strings.Count(q.body, "<tr data-id="); n != 1 {
		t.Errorf("%d rows on the second page", n)
	}
	v.get("/console/operations?page_token=broken").want(400)
	v.get("/console/operations?state=nonsense").want(400)
}

// TestLive holds that a page is told of its operation's change, and of the end.
func TestLive(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	r := v.request("GET", "/console/live?operation="+s.pending+"&version=1", nil)
	resp, err := v.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
		t.Fatal(resp.StatusCode, got)
	}
	lines := bufio.NewScanner(resp.Body)
	next := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("no %q: %v", want, lines.Err())
	}
	next("retry:")
	v.post("/console/operations/"+s.pending+"/cancel", url.Values{"once": {"c"}, "reason": {"live"}}).want(303)
	next("event: change")
}

// TestPlainHTTPIsForThisMachine holds that the console answers another name, as a
// page elsewhere would ask by (DNS rebinding), only behind TLS.
func TestPlainHTTPIsForThisMachine(t *testing.T) {
	s := newRig(t)
	v := s.browser()
	for host, status := range map[string]int{"localhost:1": 200, "127.0.0.1": 200, "[::1]:8081": 200, "pawl.example.com": 403, "127.0.0.1.evil.example": 403, "10.0.0.1:80": 403} {
		r := v.request("GET", "/console/login", nil)
		r.Host = host
		v.send(r).want(status)
		r.Header.Set("X-Forwarded-Proto", "https")
		if p := v.send(r).want(200); p.header.Get("Strict-Transport-Security") == "" {
			t.Errorf("%s: no HSTS under TLS", host)
		}
	}
}

// TestStaticFiles holds that files are kept under the address that names their
// contents, and only so.
func TestStaticFiles(t *testing.T) {
	g := newRig(t)
	v := g.browser()
	for name, content := range map[string]string{"console.js": "text/javascript; charset=utf-8", "console.css": "text/css; charset=utf-8", "pawl.svg": "image/svg+xml", "LICENSES.txt": "text/plain; charset=utf-8"} {
		p := v.get(g.console.assets.link(name)).want(200)
		if p.header.Get("Content-Type") != content || !strings.Contains(p.header.Get("Cache-Control"), "immutable") || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", name, p.header)
		}
		if p := v.get("/console/static/" + name).want(200); p.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s without its digest: %v", name, p.header)
		}
	}
	v.get("/console/static/nothing").want(404)
	v.get("/console/static/..%2Fconsole.go").want(404)
}

// TestFiguresOfTheOverview holds that the overview says what is wrong.
func TestFiguresOfTheOverview(t *testing.T) {
	s := newStory(t)
	v := s.as("admin")
	s.console.trend.add(measure(s.console.o.Metrics, time.Now().Add(-time.Minute)))
	v.get("/console").shows("Nothing needs you")
	s.metrics.Reviews.WithLabelValues("orphan").Set(3)
	s.metrics.DeliveriesDead.Set(7)
	s.metrics.Operations.WithLabelValues("unconfirmed").Set(2)
	s.metrics.OldestUnfinished.Set(float64(time.Now().Add(-3*time.Hour - time.Minute).Unix()))
	for verdict, n := range map[string]float64{"applied": 18, "orphan": 1, "duplicate": 1} {
		s.metrics.Inbound.WithLabelValues("studio", verdict).Add(n)
	}
	s.metrics.Deliveries.WithLabelValues("delivered").Add(40)
	s.metrics.Deliveries.WithLabelValues("retried").Add(2)
	s.metrics.Submits.WithLabelValues("studio", "ok").Add(1)
	s.metrics.Submits.WithLabelValues("studio", "failed").Add(9)
	for range 100 {
		s.metrics.Confirmed.Observe(20) // Between 10 and 30 s: half of them by 20 s.
	}
	v.get("/console").hides("Nothing needs you").shows("3 open reviews", "7 dead letters", "2 operations are unconfirmed", "3 h 1 min", "5.0 %", "40", "2 retried",
		"20 s", "95 % within 29 s", "Upstream studio fails: 9 of its last 10 calls", "9 failed", "/console/reviews?reason=orphan")
	v = s.as("operator")
	v.get("/console").want(200).shows("Unfinished operations", "1 dead letter<").hides("7 dead letters", "5.0 %")
}

// TestLogin holds the session's rules (CO-01, CO-06).
func TestLogin(t *testing.T) {
	g := newRig(t)
	v := g.browser()
	p := v.get("/console/operations?state=running").want(303)
	if to := p.header.Get("Location"); to != "/console/login?next=%2Fconsole%2Foperations%3Fstate%3Drunning" {
		t.Errorf("leads to %q", to)
	}
	v.post("/console/login", url.Values{"key": {"pawl_sk_" + strings.Repeat("x", 43)}}).want(401).shows("unknown, revoked or expired").hides("xxxx")
	p = v.post("/console/login", url.Values{"key": {g.secrets["reader"]}, "next": {"/console/operations?state=running"}}).want(303)
	if to := p.header.Get("Location"); to != "/console/operations?state=running" {
		t.Errorf("leads to %q", to)
	}
	cookie, err := http.ParseSetCookie(p.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	if cookie.Name != "pawl_console" || !cookie.HttpOnly || cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || len(cookie.Value) != 43 {
		t.Errorf("cookie %+v", cookie)
	}
	v.get("/console/operations").want(200)
	rows, err := g.driver.Audits(t.Context(), store.AuditFilter{Action: "console.login"}, store.Page{Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].Actor != g.keys["reader"].ID.Text(pawl.PrefixKey) {
		t.Errorf("audit %+v, %v", rows, err)
	}
	v.post("/console/logout", url.Values{}).want(303)
	v.get("/console/operations").want(303)
	// The cookie is worth nothing after the logout, whoever kept it.
	r := v.request("GET", "/console/operations", nil)
	r.Header.Set("Cookie", "pawl_console="+cookie.Value)
	v.send(r).want(303)
	if strings.Contains(g.log.String(), cookie.Value) || strings.Contains(g.log.String(), g.secrets["reader"]) {
		t.Error("a credential is in the log")
	}
	tls := v.request("POST", "/console/login", url.Values{"key": {g.secrets["reader"]}})
	tls.Header.Set("X-Forwarded-Proto", "https")
	cookie, err = http.ParseSetCookie(v.send(tls).want(303).header.Get("Set-Cookie"))
	if err != nil || cookie.Name != "__Host-pawl" || !cookie.Secure || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("cookie under TLS: %+v, %v", cookie, err)
	}
}

// TestSessionEndsWithItsKey holds that a revoked key's session does nothing more.
func TestSessionEndsWithItsKey(t *testing.T) {
	g := newRig(t)
	v, admin := g.as("reader"), g.as("admin")
	v.get("/console/operations").want(200)
	g.do(ledger.RevokeKey{Header: head(), ID: g.keys["reader"].ID})
	for start := time.Now(); v.get("/console/operations").status == 200; time.Sleep(50 * time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatal("the session of a revoked key goes on") // Keys are remembered for 2 s.
		}
	}
	v.get("/console/operations").want(303)
	admin.get("/console/operations").want(200)
}

// TestOtherSitesCannotAct holds CO-02.
func TestOtherSitesCannotAct(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	path := "/console/operations/" + s.pending + "/cancel"
	form := url.Values{"reason": {"because"}, "once": {"k"}}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		r := v.request("POST", path, form)
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set(name, value)
		v.send(r).want(403).shows("another site")
	}
	r := v.request("POST", "/console/login", url.Values{"key": {s.secrets["operator"]}})
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	v.send(r).want(403)
	for _, a := range acts {
		v.get(strings.NewReplacer("{id}", s.pending, "{name}", "studio").Replace(a.path)).want(404) // No GET changes anything.
	}
	v.get("/console/operations/" + s.pending).shows(`<span class="state pending">`)
}

// TestLoginsArePaced holds that keys cannot be tried at will.
func TestLoginsArePaced(t *testing.T) {
	g := newRig(t)
	v := g.browser()
	for range loginBurst {
		v.post("/console/login", url.Values{"key": {"wrong"}}).want(401)
	}
	if p := v.post("/console/login", url.Values{"key": {g.secrets["admin"]}}).want(429); p.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
