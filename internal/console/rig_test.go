package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/desk"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/internal/vault"
	"github.com/pawlhq/pawl/internal/watch"
)

// rig is the console over the API and a ledger in memory, with the tenants acme,
// which has 100 USD, and other, which has nothing.
type rig struct {
	t       *testing.T
	url     string
	driver  *memory.Store
	store   *store.Committer
	watch   *watch.Hub
	console *Console
	api     api.Handler
	metrics *telemetry.Metrics
	// public is the API with its requests named.
	public http.Handler
	// request is the Pawl-Request-Id of the latest submit.
	request string
	secrets map[string]string
	keys    map[string]ledger.APIKey
	log     *lockedBuffer
	reads   *bounded
}

// bounded notes what a page asks for beyond one page of a list, and whatever walks
// over everything: with ten million rows nobody could wait for it.
type bounded struct {
	store.Reader
	mu     sync.Mutex
	faults []string
}

func (b *bounded) judge(what string, limit, most int) {
	if limit >= 1 && limit <= most {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf("%s asks for %d", what, limit))
}

const onePage = 201 // And whether there is another.

func (b *bounded) Operations(ctx context.Context, f store.OperationFilter, p store.Page) ([]ledger.Operation, error) {
	b.judge("operations", p.Limit, onePage)
	return b.Reader.Operations(ctx, f, p)
}

func (b *bounded) Events(ctx context.Context, f store.EventFilter, p store.Page) ([]ledger.Event, error) {
	b.judge("events", p.Limit, onePage)
	return b.Reader.Events(ctx, f, p)
}

func (b *bounded) Deliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]ledger.Delivery, error) {
	b.judge("deliveries", p.Limit, onePage)
	return b.Reader.Deliveries(ctx, f, p)
}

func (b *bounded) Reviews(ctx context.Context, f store.ReviewFilter, p store.Page) ([]ledger.Review, error) {
	b.judge("reviews", p.Limit, onePage)
	return b.Reader.Reviews(ctx, f, p)
}

func (b *bounded) Audits(ctx context.Context, f store.AuditFilter, p store.Page) ([]ledger.Audit, error) {
	b.judge("audits", p.Limit, onePage)
	return b.Reader.Audits(ctx, f, p)
}

func (b *bounded) Entries(ctx context.Context, account pawl.ID, p store.Page) ([]ledger.Entry, error) {
	b.judge("entries", p.Limit, onePage)
	return b.Reader.Entries(ctx, account, p)
}

// Facts of one operation are its timeline; all others are of everything.
func (b *bounded) OperationFacts(ctx context.Context, p store.Page) ([]ledger.Facts, error) {
	b.judge("facts of operations", p.Limit, 1)
	return b.Reader.OperationFacts(ctx, p)
}

func (b *bounded) AccountFacts(ctx context.Context) ([]ledger.AccountFacts, error) {
	b.judge("facts of accounts", 0, 0)
	return b.Reader.AccountFacts(ctx)
}

func (b *bounded) EndpointFacts(ctx context.Context) ([]ledger.EndpointFacts, error) {
	b.judge("facts of endpoints", 0, 0)
	return b.Reader.EndpointFacts(ctx)
}

func (b *bounded) LooseFacts(ctx context.Context) (ledger.LooseFacts, error) {
	b.judge("loose facts", 0, 0)
	return b.Reader.LooseFacts(ctx)
}

func (b *bounded) Stats(ctx context.Context) (store.Stats, error) {
	b.judge("counts of the whole ledger", 0, 0)
	return b.Reader.Stats(ctx)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{t: t, driver: memory.New(memory.Options{}), secrets: map[string]string{}, keys: map[string]ledger.APIKey{}, log: &lockedBuffer{}}
	g.watch = watch.New(watch.Options{Versions: g.driver.Versions})
	upstreams := testUpstreams(t)
	g.reads = &bounded{Reader: g.driver}
	g.store = store.NewCommitter(g.driver, store.Options{OnCommit: func(c store.Commit) { g.watch.Committed(c.Rows) }})
	t.Cleanup(func() { _ = g.store.Close() })
	go g.watch.Run(t.Context())
	registry := prometheus.NewRegistry()
	g.metrics = telemetry.NewMetrics(registry)
	g.metrics.AddUpstream("studio")
	policy, err := egress.NewPolicy(netip.MustParsePrefix("127.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := vault.New(t.Context(), vault.URL(vault.NewKey()))
	if err != nil {
		t.Fatal(err)
	}
	g.do(ledger.EnsureTenant{Header: head(), Name: "acme", Currency: "USD", Opening: 100 * pawl.AmountScale})
	g.do(ledger.EnsureTenant{Header: head(), Name: "other"})
	g.key("admin", "ops", ledger.ScopeAdmin)
	g.key("operator", "acme", ledger.ScopeSubmit|ledger.ScopeRead|ledger.ScopeOperate)
	g.key("reader", "acme", ledger.ScopeRead)
	g.key("payloads", "acme", ledger.ScopeRead|ledger.ScopePayloads)
	g.key("submitter", "acme", ledger.ScopeSubmit)
	g.key("other", "other", ledger.ScopeSubmit|ledger.ScopeRead|ledger.ScopeOperate|ledger.ScopePayloads)
	log := slog.New(slog.NewJSONHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g.api = api.New(api.Options{
		Store: g.store, Reader: g.reads, Upstreams: upstreams, Sources: testSources(t), Egress: policy, Vault: keeper,
		Rewrap: &vault.Rewrapper{Vault: keeper, Commands: g.store, Reader: g.driver}, Watch: g.watch, Version: "test", Log: log,
		Desk:     desk.New(desk.Options{Store: g.store, Reader: g.driver, Upstreams: upstreams}),
		Arrivals: telemetry.NewArrivals(g.metrics, time.Now()),
		ArtifactURL: func(ledger.Artifact, time.Time) (string, time.Time) {
			return "https://pawl.example/files/1", time.Time{}
		},
	})
	g.console = New(Options{API: g.api, Watch: g.watch, Metrics: registry, Version: "test", Log: log})
	route := func(r *http.Request) string { return r.Pattern }
	g.public = telemetry.HTTP(route, telemetry.NewMetrics(nil), nil, log, nil, g.api)
	srv := httptest.NewServer(telemetry.HTTP(route, telemetry.NewMetrics(nil), nil, log, nil, g.console))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { g.watch.Close(); g.console.Close() })
	g.url = srv.URL
	return g
}

func testSources(t *testing.T) sender.Set {
	t.Helper()
	secret, err := config.NewSecret("whsec_source")
	if err != nil {
		t.Fatal(err)
	}
	set, err := sender.Build(config.Config{Sources: map[string]config.Source{
		"payments": {Scheme: "stripe", Tenant: "acme", Secrets: []config.DatedSecret{{Key: secret}}},
		"hidden":   {Scheme: "github", Tenant: "other", Secrets: []config.DatedSecret{{Key: secret}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func testUpstreams(t *testing.T) upstream.Set {
	t.Helper()
	spec, ok := upstream.Preset("media-v2")
	if !ok {
		t.Fatal("no preset media-v2")
	}
	price := pawl.Amount(150_000_000)
	set := upstream.Set{}
	for name, change := range map[string]func(*config.Upstream){
		"studio":  func(u *config.Upstream) { u.Models = map[string]config.Model{"kling-2": {Price: &price}} },
		"unsafe":  func(u *config.Upstream) { u.Idempotent = &config.Idempotent{} },
		"held":    func(u *config.Upstream) { u.Release = config.ReleaseHold },
		"private": func(u *config.Upstream) { u.Tenants = []string{"other"} },
	} {
		settings := config.DefaultUpstream()
		settings.BaseURL, settings.Owner, settings.Deadline = "https://studio.example.com", "media team", 2*time.Hour
		change(&settings)
		u, err := upstream.New(name, spec, settings)
		if err != nil {
			t.Fatal(err)
		}
		set[name] = u
	}
	return set
}

func head() ledger.Header { return store.NewHeader("") }

// do has a command decided and insists that it is not refused.
func (g *rig) do(cmd ledger.Command) any {
	g.t.Helper()
	out, err := g.store.Do(g.t.Context(), cmd)
	if err != nil || out.Err != nil {
		g.t.Fatalf("%T: %v %v", cmd, err, out.Err)
	}
	return out.Value
}

func (g *rig) key(name, tenant string, scopes ledger.Scopes) {
	g.t.Helper()
	secret, err := api.NewKeySecret()
	if err != nil {
		g.t.Fatal(err)
	}
	k := g.do(ledger.CreateKey{Header: head(), Key: ledger.APIKey{
		ID: store.NewID(), Tenant: tenant, Name: name, LastUsedAt: pawl.TimeOf(time.Now()), Hash: sha256.Sum256([]byte(secret)), Scopes: scopes,
	}})
	g.secrets[name], g.keys[name] = secret, k.(ledger.APIKey)
}

// submit submits an operation of acme's through the API and gives its id.
func (g *rig) submit(up, more string) string {
	g.t.Helper()
	body := `{"upstream":"` + up + `","model":"kling-2","input":{"prompt":"canary-prompt"}` + more + `}`
	r := httptest.NewRequest("POST", "/v1/operations", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+g.secrets["operator"])
	r.Header.Set("Idempotency-Key", store.NewID().Text("k"))
	w := httptest.NewRecorder()
	g.public.ServeHTTP(w, r)
	g.request = w.Header().Get(telemetry.RequestIDHeader)
	if w.Code != 202 {
		g.t.Fatalf("submit: %d %s", w.Code, w.Body)
	}
	_, id, _ := strings.Cut(w.Header().Get("Location"), "/v1/operations/")
	return id
}

func (g *rig) policy(name string) ledger.Upstream { return testUpstreams(g.t)[name].Policy() }

// created leases the one due operation of acme at an upstream and records how its
// create ended.
func (g *rig) created(up string, outcome ledger.CreateOutcome, task string) ledger.Operation {
	g.t.Helper()
	leases := g.do(ledger.LeaseWork{Header: head(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, up, "acme"), Limit: 1, Up: g.policy(up)}).([]ledger.Lease)
	if len(leases) != 1 {
		g.t.Fatalf("%d leases", len(leases))
	}
	return g.do(ledger.RecordCreate{
		Header: head(), Up: g.policy(up), Operation: leases[0].Operation.ID, Fence: leases[0].Fence, Outcome: outcome, Task: task,
		RequestID: "provider-request-" + task, ErrorCode: pawl.FailContentRejected, ErrorMessage: hostile,
	}).(ledger.Operation)
}

// hostile is what a provider may write anywhere (CO-04).
const hostile = `<script>alert(1)</script><svg onload=alert(2)> javascript:alert(3) "quoted' {{.}}`

// visitor is a browser.
type visitor struct {
	g      *rig
	client *http.Client
}

// browser is one that has not logged in.
func (g *rig) browser() visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return visitor{g, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// as is a browser that has logged in with a key.
func (g *rig) as(key string) visitor {
	g.t.Helper()
	v := g.browser()
	v.post("/console/login", url.Values{"key": {g.secrets[key]}}).want(303)
	return v
}

// page is what a browser got.
type page struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   string
}

func (v visitor) send(r *http.Request) page {
	v.g.t.Helper()
	resp, err := v.client.Do(r)
	if err != nil {
		v.g.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.g.t.Fatal(err)
	}
	return page{v.g.t, r.Method + " " + r.URL.Path, resp.StatusCode, resp.Header, string(body)}
}

func (v visitor) request(method, path string, form url.Values) *http.Request {
	v.g.t.Helper()
	r, err := http.NewRequestWithContext(v.g.t.Context(), method, v.g.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.g.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

func (v visitor) get(path string) page { v.g.t.Helper(); return v.send(v.request("GET", path, nil)) }

func (v visitor) post(path string, form url.Values) page {
	v.g.t.Helper()
	return v.send(v.request("POST", path, form))
}

// want insists on a status, and that a page is a whole one.
func (p page) want(status int) page {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("%s: status %d, want %d: %s", p.what, p.status, status, p.body)
	}
	if strings.HasPrefix(p.header.Get("Content-Type"), "text/html") && status != 303 && !strings.HasSuffix(strings.TrimSpace(p.body), "</html>") {
		p.t.Errorf("%s: half a page: %s", p.what, p.body)
	}
	return p
}

// shows insists that the page holds texts, as HTML.
func (p page) shows(texts ...string) page {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			p.t.Errorf("%s does not show %q:\n%s", p.what, text, p.body)
		}
	}
	return p
}

// hides insists that it does not.
func (p page) hides(texts ...string) page {
	p.t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			p.t.Errorf("%s shows %q:\n%s", p.what, text, p.body)
		}
	}
	return p
}
