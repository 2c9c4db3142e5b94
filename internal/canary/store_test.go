package canary_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"
	"github.com/prometheus/client_golang/prometheus"

	"database/sql"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/console"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/intake"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/outbox"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/internal/vault"
	"github.com/pawlhq/pawl/internal/work"
)

// confessions are errors of a database that say what was in the statement.
var confessions = []string{
	`cannot connect to postgres://pawl:` + theConfigured + `@db.internal/pawl?password=` + theConfigured,
	`cannot connect: host=db user=pawl password=` + theConfigured + ` dbname=pawl`,
	`key pawl_sk_` + theAdminSecret + ` is not unique`, `secret "` + theEndpointSecret + `" is not unique`, `Authorization: Bearer ` + theProviderKey,
	`value {"input":{"prompt":"` + thePrompt + `"},"metadata":{"a":"` + theMetadata + `"},"result":` + theOutcome + `} too long`,
	`no room for ` + theLink, `unique (url) = (` + endpointAt("https://h.example", "x") + `)`, "callback https://pawl.example/hooks/up/" + theForged,
	"POST /hooks/up/" + theForged + " failed", `webhook-signature: v1,` + theForged,
}

// confessing is a driver whose calls fail once it is told to, each with the
// next confession.
type confessing struct {
	store.Driver
	on   atomic.Bool
	next atomic.Int64
}

func (d *confessing) err() error {
	if !d.on.Load() {
		return nil
	}
	return errors.New(confessions[int(d.next.Add(1))%len(confessions)])
}

// Update implements [store.Driver].
func (d *confessing) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	if err := d.err(); err != nil {
		return err
	}
	return d.Driver.Update(ctx, batch, fn)
}

// Load implements [store.Reader].
func (d *confessing) Load(ctx context.Context, k *ledger.Keys, r *ledger.Rows) error {
	if err := d.err(); err != nil {
		return err
	}
	return d.Driver.Load(ctx, k, r)
}

// Operations implements [store.Lists].
func (d *confessing) Operations(ctx context.Context, f store.OperationFilter, p store.Page) ([]ledger.Operation, error) {
	if err := d.err(); err != nil {
		return nil, err
	}
	return d.Driver.Operations(ctx, f, p)
}

// APIKeys implements [store.Lists].
func (d *confessing) APIKeys(ctx context.Context, f store.APIKeyFilter, p store.Page) ([]ledger.APIKey, error) {
	if err := d.err(); err != nil {
		return nil, err
	}
	return d.Driver.APIKeys(ctx, f, p)
}

// Ready implements [store.Sweeps].
func (d *confessing) Ready(ctx context.Context, k ledger.QueueKind, up string, by pawl.Time, n int) ([]ledger.Queue, error) {
	if err := d.err(); err != nil {
		return nil, err
	}
	return d.Driver.Ready(ctx, k, up, by, n)
}

// Stats implements [store.Sweeps].
func (d *confessing) Stats(ctx context.Context) (store.Stats, error) {
	if err := d.err(); err != nil {
		return store.Stats{}, err
	}
	return d.Driver.Stats(ctx)
}

// Whatever a database says when it fails, callers get none of it, and the log
// none of what it confesses.
func TestStoreFails(t *testing.T) {
	w := &world{watch: newWatch(t), log: new(buffer), client: http.DefaultClient, dir: filepath.Join(t.TempDir(), "data")}
	logger := telemetry.NewLogger(w.log, slog.LevelDebug)
	provider := newProvider(t, w.watch)
	w.receiver = newReceiver(t, w.watch)
	cfg, err := config.Parse("pawl.yaml", []byte(configuration(w.dir, provider.URL, closedPort(t))), noEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	prepare(t, cfg)
	real, err := sqlite.Open(t.Context(), w.dir, sqlite.Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	driver := &confessing{Driver: real}
	handler, worker, stop := assemble(t, cfg, driver, logger)
	s := httptest.NewServer(handler)
	defer s.Close()

	header := http.Header{"Authorization": {"Bearer " + theAdminKey}, "Content-Type": {"application/json"}}
	// Once while it works, so that the key is known without the database.
	w.need(http.StatusOK, w.ask("GET /v1/whoami", http.MethodGet, s.URL+"/v1/whoami", nil, header))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	person := &http.Client{Jar: jar}
	ask := func(path string, form url.Values) {
		t.Helper()
		send := person.Get
		if form != nil {
			send = func(at string) (*http.Response, error) { return person.PostForm(at, form) }
		}
		r, err := send(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		w.look(problems, string(text))
	}
	ask("/console/login", url.Values{"key": {theAdminKey}})
	driver.on.Store(true)
	for range confessions {
		ask("/console/operations", nil)
		ask("/console/login", url.Values{"key": {theAdminKey + "y"}})
		h := header.Clone()
		h.Set("Idempotency-Key", theKey)
		w.ask(problems, http.MethodPost, s.URL+"/v1/operations", []byte(`{"upstream":"up","model":"m","input":{"prompt":"`+thePrompt+`"}}`), h)
		w.ask(problems, http.MethodGet, s.URL+"/v1/operations", nil, header)
		w.ask(problems, http.MethodGet, s.URL+"/v1/operations/"+pawl.NewID(1, 1).Text(pawl.PrefixOperation), nil, header)
		body := `{"id":"e","type":"task.updated","task":"t","state":"failed"}`
		got := w.ask(problems, http.MethodPost, s.URL+"/hooks/up", []byte(body), provider.sign("e", []byte(body)))
		if got.status != http.StatusServiceUnavailable {
			t.Errorf("a callback that cannot be stored: %d %s", got.status, got.body)
		}
	}
	// One sweep, which ends with its context.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	worker.Sweep(ctx)
	cancel()
	for _, line := range []string{"batch failed", "request failed", "could not be stored", "a page failed", "due work could not be claimed", "figures could not be read", "due deliveries could not be claimed"} {
		w.eventually("the log has no line "+line, func() bool { return strings.Contains(w.log.String(), line) })
	}
	stop()
	w.look(logs, w.log.String())
	w.judge(nil)
}

// prepare has a node make the ledger with its admin key.
func prepare(t *testing.T, cfg config.Config) {
	n, err := server.Start(t.Context(), cfg, server.Options{AdminKey: theAdminKey})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := n.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// assemble is a node's rooms over a driver.
func assemble(t *testing.T, cfg config.Config, driver store.Driver, logger *slog.Logger) (h http.Handler, worker *work.Worker, stop func()) {
	t.Helper()
	upstreams, err := upstream.Build(cfg)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := egress.NewPolicy(cfg.Egress.Allow...)
	if err != nil {
		t.Fatal(err)
	}
	m := telemetry.NewMetrics(prometheus.NewRegistry())
	committer := store.NewCommitter(driver, store.Options{Log: logger})
	client := egress.NewClient(policy, egress.Options{})
	callbacks := upstream.NewCallbacks("http://pawl.example", []byte(theConfigured))
	worker = work.New(work.Options{Store: committer, Reader: driver, Client: client, Upstreams: upstreams, Callbacks: callbacks, Metrics: m, Log: logger})
	sealer, err := vault.New(t.Context(), vault.URL(vault.NewKey()))
	if err != nil {
		t.Fatal(err)
	}
	sender := outbox.New(outbox.Options{Store: committer, Reader: driver, Client: client, Vault: sealer, Metrics: m, Log: logger})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	go func() { worker.Run(ctx, ctx); ended <- struct{}{} }()
	go func() { _ = sender.Run(ctx); ended <- struct{}{} }()
	mux := http.NewServeMux()
	native := api.New(api.Options{Store: committer, Reader: driver, Upstreams: upstreams, Egress: policy, Vault: sealer, Log: logger})
	mux.Handle("/v1/", native)
	pages := console.New(console.Options{API: native, Log: logger})
	mux.Handle(console.Path, pages)
	mux.Handle(console.Path+"/", pages)
	mux.Handle("/hooks/", intake.New(intake.Options{Store: committer, Upstreams: upstreams, Callbacks: callbacks, Metrics: m, Log: logger}))
	route := func(r *http.Request) string { return r.Pattern }
	return telemetry.HTTP(route, m, nil, logger, api.Panicked, mux), worker, func() {
		cancel()
		for range 2 {
			<-ended
		}
		_ = committer.Close()
	}
}

// What the real database says when it refuses a row holds nothing of the row.
func TestSQLiteSaysNothingOfRows(t *testing.T) {
	w := newWorld(t)
	w.keys()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.dir, "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"payloads", "operations", "endpoints", "api_keys", "idempotency_keys", "events"} {
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf("CREATE TRIGGER refuse_%s BEFORE INSERT ON %s BEGIN SELECT RAISE(ABORT, 'refused by a trigger'); END", table, table)); err != nil {
			t.Fatal(err)
		}
	}
	for _, got := range []reply{
		w.call(w.reader, http.MethodPost, "/v1/operations", "/v1/operations", w.job("up", "read ends"), "Idempotency-Key", theKey),
		w.call(theAdminKey, http.MethodPost, "/v1/endpoints", "/v1/endpoints", map[string]any{"url": endpointAt(w.receiver.URL, "ok"), "secret": theEndpointSecret}),
		w.call(theAdminKey, http.MethodPost, "/v1/keys", "/v1/keys", map[string]any{"name": "x", "scopes": []string{"read"}}),
	} {
		if got.status != http.StatusServiceUnavailable {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	body := `{"id":"e","type":"task.updated","task":"t","state":"failed","note":"` + theForged + `"}`
	w.ask(problems, http.MethodPost, w.node.APIURL()+"/hooks/up", []byte(body), w.provider.sign("e", []byte(body)))
	w.stop()
	if !strings.Contains(w.log.String(), "refused by a trigger") {
		t.Errorf("the log does not say why:\n%s", w.log)
	}
	w.look(logs, w.log.String())
	w.judge(nil)
}
