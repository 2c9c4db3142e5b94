package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/api/apitest"
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

// rig is the API over an empty ledger in memory with the tenants acme, which
// has 100 USD, and other, which has no account.
type rig struct {
	t      *testing.T
	url    string
	driver *memory.Store
	store  *store.Committer
	watch  *watch.Hub
	desk   *desk.Desk
	h      Handler
	vault  *vault.Vault
	// former is the wrapping key before that of vault, which opens it too.
	former  config.Secret
	secrets map[string]string
	keys    map[string]ledger.APIKey
	fault   func(memory.Step) error
	log     *lockedBuffer
	nodes   []store.Node
	// health is what the node has measured; nil for nothing.
	health func(upstreams []string) Health
	// arrivals is what has come from each source.
	arrivals *telemetry.Arrivals
	// document is what every exchange is held against.
	document    *apitest.Document
	description []byte
}

var documents apitest.Documents

// lockedBuffer takes the log.
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

const allScopes = ledger.ScopeSubmit | ledger.ScopeRead | ledger.ScopeOperate | ledger.ScopePayloads

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOf(t, testUpstreams(t))
}

// newRigOf is [newRig] with upstreams of a test's own.
func newRigOf(t *testing.T, upstreams upstream.InForce) *rig {
	t.Helper()
	g := &rig{t: t, secrets: map[string]string{}, keys: map[string]ledger.APIKey{}, log: &lockedBuffer{}}
	g.driver = memory.New(memory.Options{Fault: func(s memory.Step) error {
		if g.fault != nil {
			return g.fault(s)
		}
		return nil
	}})
	var err error
	g.former = vault.URL(vault.NewKey())
	if g.vault, err = vault.New(t.Context(), vault.URL(vault.NewKey()), g.former); err != nil {
		t.Fatal(err)
	}
	g.watch = watch.New(watch.Options{Versions: g.driver.Versions, Most: 3})
	g.store = store.NewCommitter(g.driver, store.Options{Patience: 100 * time.Millisecond, OnCommit: func(c store.Commit) { g.watch.Committed(c.Rows); g.desk.Committed(c.Rows) }})
	g.desk = desk.New(desk.Options{Store: g.store, Reader: g.driver, Upstreams: upstreams})
	go g.desk.Run(t.Context())
	t.Cleanup(func() { _ = g.store.Close() })
	g.do(ledger.EnsureTenant{Header: head(), Name: "acme", Currency: "USD", Opening: 100 * pawl.AmountScale})
	g.do(ledger.EnsureTenant{Header: head(), Name: "other"})
	g.key("admin", "ops", ledger.ScopeAdmin)
	g.key("acme", "acme", ledger.ScopeSubmit|ledger.ScopeRead|ledger.ScopeOperate)
	g.limitedKey("slow", ledger.KeyLimits{Rate: 1, Burst: 1})
	g.key("sibling", "acme", ledger.ScopeSubmit|ledger.ScopeRead)
	g.key("payloads", "acme", ledger.ScopeRead|ledger.ScopePayloads)
	g.key("reader", "acme", ledger.ScopeRead)
	g.key("submitter", "acme", ledger.ScopeSubmit)
	g.key("other", "other", allScopes)
	g.key("full", "acme", allScopes)
	log := slog.New(slog.NewJSONHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	policy, err := egress.NewPolicy(netip.MustParsePrefix("127.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	g.arrivals = telemetry.NewArrivals(telemetry.NewMetrics(prometheus.NewRegistry()), time.Now())
	h := New(Options{
		Arrivals: g.arrivals, Store: g.store, Reader: g.driver, Upstreams: upstreams, Desk: g.desk, Egress: policy, Vault: g.vault, Rewrap: &vault.Rewrapper{Vault: g.vault, Commands: g.store, Reader: g.driver}, Watch: g.watch, Log: log, Version: "test",
		Sources: testSources(t), Nodes: func(context.Context) ([]store.Node, error) { return g.nodes, nil },
		Health: func(upstreams []string) Health {
			if g.health == nil {
				return Health{}
			}
			return g.health(upstreams)
		},
		ArtifactURL: func(a ledger.Artifact, _ time.Time) (string, time.Time) {
			return "https://pawl.example/files/" + a.ID.Text(pawl.PrefixArtifact), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		},
	})
	g.h, g.description = h, h.Description()
	if g.document, err = documents.Of(g.description); err != nil {
		t.Fatal(err)
	}
	route := func(r *http.Request) string { return r.Pattern }
	srv := httptest.NewServer(telemetry.HTTP(route, telemetry.NewMetrics(prometheus.NewRegistry()), nil, log, Panicked, h))
	t.Cleanup(srv.Close)
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
		"studio": func(u *config.Upstream) { u.Models = map[string]config.Model{"kling-2": {Price: &price}, "free": {}} },
		"open":   func(u *config.Upstream) { u.Idempotent = &config.Idempotent{} },
		"capped": func(u *config.Upstream) {
			u.Models = map[string]config.Model{"m": {Price: &price}}
			u.Spending = &config.Spending{Amount: 200_000_000, Currency: "USD"}
		},
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

func head() ledger.Header {
	var h ledger.Header
	_, _ = rand.Read(h.Seed[:])
	return h
}

// do has a command decided and insists that it is not refused.
func (g *rig) do(cmd ledger.Command) any {
	g.t.Helper()
	out, err := g.store.Do(g.t.Context(), cmd)
	if err != nil || out.Err != nil {
		g.t.Fatalf("%T: %v %v", cmd, err, out.Err)
	}
	return out.Value
}

// key makes an API key that was used just now, so that no use is noted beside
// the tests.
func (g *rig) key(name, tenant string, scopes ledger.Scopes) {
	g.t.Helper()
	secret, err := NewKeySecret()
	if err != nil {
		g.t.Fatal(err)
	}
	id := store.NewID()
	sealed, err := g.vault.Seal(g.t.Context(), id, "whsec_"+name)
	if err != nil {
		g.t.Fatal(err)
	}
	k := g.do(ledger.CreateKey{Header: head(), Key: ledger.APIKey{
		ID: id, Tenant: tenant, Name: name, LastUsedAt: pawl.TimeOf(time.Now()), Hash: hashKey(secret), Scopes: scopes, WebhookSecret: sealed,
	}})
	g.secrets[name], g.keys[name] = secret, k.(ledger.APIKey)
}

// limitedKey is [rig.key] for a key of acme with limits.
func (g *rig) limitedKey(name string, limits ledger.KeyLimits) {
	g.t.Helper()
	g.key(name, "acme", allScopes)
	key := g.do(ledger.ChangeKey{Header: head(), ID: g.keys[name].ID, Limits: &limits})
	g.keys[name] = key.(ledger.APIKey)
}

// answer is what came back.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
	json   map[string]any
}

// call sends a request with the named key; headers are pairs.
func (g *rig) call(key, method, path, body string, headers ...string) answer {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+g.secrets[key])
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Content-Type" || headers[i] == "Authorization" {
			req.Header.Del(headers[i])
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, fault := range g.document.Faults(apitest.Exchange{
		Method: method, URL: req.URL, RequestHeader: req.Header, RequestBody: []byte(body), Status: resp.StatusCode, Header: resp.Header, Body: text,
	}) {
		g.t.Error(fault)
	}
	a := answer{t: g.t, status: resp.StatusCode, header: resp.Header, body: text}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &a.json); err != nil {
			g.t.Fatalf("%s %s: body is no JSON object: %q", method, path, text)
		}
	}
	return a
}

// want insists on a status and, for a refusal, on a sound problem of a reason.
func (a answer) want(status int, reason string) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if cc := a.header.Get("Cache-Control"); cc != "no-store" {
		a.t.Errorf("Cache-Control %q", cc)
	}
	if status < 400 {
		return a
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		a.t.Errorf("Content-Type %q of a problem", ct)
	}
	if a.json["type"] != "/v1/problems/"+reason || a.json["status"] != float64(status) {
		a.t.Errorf("want a problem %s with status %d: %s", reason, status, a.body)
	}
	if title, _ := a.json["title"].(string); title == "" || title == http.StatusText(status) {
		a.t.Errorf("reason %s has no title of its own: %s", reason, a.body)
	}
	if in, _ := a.json["instance"].(string); !strings.HasPrefix(in, "urn:pawl:request:req_") {
		a.t.Errorf("instance %q", in)
	}
	return a
}

func (a answer) text(name string) string {
	s, _ := a.json[name].(string)
	return s
}

// items are the objects of a list.
func (a answer) items() []map[string]any {
	a.t.Helper()
	list, ok := a.json["items"].([]any)
	if !ok {
		a.t.Fatalf("no items: %s", a.body)
	}
	out := make([]map[string]any, len(list))
	for i, item := range list {
		out[i] = item.(map[string]any)
	}
	return out
}

// submit submits an operation of acme and gives its id.
func (g *rig) submit(idempotencyKey, body string) string {
	g.t.Helper()
	a := g.call("acme", "POST", "/v1/operations", body, "Idempotency-Key", idempotencyKey).want(202, "")
	return a.text("id")
}

const openBody = `{"upstream":"open","model":"m","input":{"prompt":"canary-prompt"}}`

func (g *rig) policy(name string) ledger.Upstream { return testUpstreams(g.t)[name].Policy() }

// lease leases the one due operation of acme at an upstream for its create.
func (g *rig) lease(up string) ledger.Lease {
	g.t.Helper()
	leases := g.do(ledger.LeaseWork{
		Header: head(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, up, "acme"), Limit: 1, Up: g.policy(up),
	}).([]ledger.Lease)
	if len(leases) != 1 {
		g.t.Fatalf("%d leases", len(leases))
	}
	return leases[0]
}

// created records how the create of the one due operation ended.
func (g *rig) created(up string, outcome ledger.CreateOutcome, task string) ledger.Operation {
	g.t.Helper()
	l := g.lease(up)
	return g.do(ledger.RecordCreate{
		Header: head(), Up: g.policy(up), Operation: l.Operation.ID, Fence: l.Fence, Outcome: outcome, Task: task,
		ErrorCode: pawl.FailInvalidRequest, ErrorMessage: "no such model",
	}).(ledger.Operation)
}

// deliverTo makes an endpoint of acme, an event for it and its delivery.
func (g *rig) deliverTo() (endpoint, operation string, delivery ledger.Delivery) {
	g.t.Helper()
	endpoint = g.call("acme", "POST", "/v1/endpoints", `{"url":"https://hooks.example.com/in"}`).want(201, "").text("id")
	operation = g.submit("for-delivery", openBody)
	g.created("open", ledger.CreateAccepted, "job_1")
	rows, err := g.driver.Deliveries(g.t.Context(), store.DeliveryFilter{}, store.Page{Limit: 2})
	if err != nil || len(rows) != 1 {
		g.t.Fatalf("%d deliveries, %v", len(rows), err)
	}
	return endpoint, operation, rows[0]
}

// attempt leases a delivery and records that its endpoint answered so.
func (g *rig) attempt(row ledger.Delivery, status int32) {
	g.t.Helper()
	leased := g.do(ledger.LeaseDeliveries{Header: head(), Endpoint: row.Endpoint, Limit: 1}).([]ledger.Delivery)
	g.do(ledger.RecordAttempt{
		Header: head(), Delivery: row.ID, Endpoint: row.Endpoint, Fence: leased[0].Lease, Policy: ledger.DefaultPolicy(),
		At: pawl.Time(4_000_000_000_000_000), Status: status, Error: "refused", Excerpt: "no",
	})
}

// pageOf is the page that holds one operation.
func pageOf(operation string) store.Page {
	id, err := pawl.ParseID(pawl.PrefixOperation, operation)
	if err != nil {
		panic(err)
	}
	return store.Page{After: before(id), Limit: 1}
}

// before is the id right before an id, for pages that begin after one.
func before(id pawl.ID) pawl.ID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}
