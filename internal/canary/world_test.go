package canary_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawlhq/pawl/internal/cli"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/telemetry"
)

const patience = 20 * time.Second

// childVariable makes the test's program the program itself.
const childVariable = "PAWL_CANARY_CHILD"

// defaults takes what anything in the process writes to the default logger.
var defaults = new(buffer)

// TestMain is the program where it is asked to be; else it catches the default
// logger of the process.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.System()))
	}
	log.SetOutput(defaults)
	os.Exit(m.Run())
}

// buffer is a bytes.Buffer that is safe for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// world is a node in this process with a careless provider and receiver.
type world struct {
	*watch
	provider *provider
	receiver *httptest.Server
	node     *server.Node
	log      *buffer
	spans    *tracetest.InMemoryExporter
	client   *http.Client
	dir      string
	config   string
	// reader is a key of the tenant that may read and submit, and no more.
	reader string
	stop   func()
}

func newWorld(t *testing.T) *world {
	w := &world{watch: newWatch(t), log: new(buffer), spans: tracetest.NewInMemoryExporter(), dir: filepath.Join(t.TempDir(), "data")}
	w.provider, w.receiver = newProvider(t, w.watch), newReceiver(t, w.watch)
	w.client = &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w.config = configuration(w.dir, w.provider.URL, closedPort(t))
	w.start(w.config)
	t.Cleanup(func() { w.stop() })
	return w
}

// configuration has one upstream that works, one that refuses everybody, one
// that nobody answers for and one that does not speak TLS.
func configuration(dir, provider, closed string) string {
	const upstream = `{preset: sim, base_url: %q, key: %q, webhook_keys: [%q], currency: USD, owner: the team,
      deadline: 1h, timeout: 1s, read: {first: 100ms, factor: 3, max: 1h, rate: 1000}}`
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndata: %q\ndrain: 3s\negress: {allow: [127.0.0.0/8]}\n"+
		"tenants: {default: {account: {currency: USD, credit: \"100\"}}}\nupstreams:\n", dir)
	for _, up := range [...]struct{ name, url string }{
		{"up", provider}, {"locked", provider}, {"busy", provider}, {"shut", provider}, {"gone", "http://" + closed}, {"plain", strings.Replace(provider, "http://", "https://", 1)},
		{"far", "http://192.0.2.1:9"},
	} {
		text += fmt.Sprintf("  "+up.name+": "+upstream+"\n", up.url, theProviderKey, theProviderSecret)
	}
	return text + "  hands: {preset: worker, lease: 60s, deadline: 1h, currency: USD}\n" +
		fmt.Sprintf("sources:\n  shop: {scheme: standard-webhooks, secrets: [%q], tenant: default, owner: the shop}\n", theSourceSecret)
}

// closedPort is an address that nothing listens on.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (w *world) start(text string) {
	w.Helper()
	cfg, err := config.Parse("pawl.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		w.Fatal(err)
	}
	n, err := server.Start(w.Context(), cfg, server.Options{
		Traces: telemetry.NewTraces(telemetry.NewTraceProvider(sdk.WithSyncer(w.spans))),
		Log:    telemetry.NewLogger(w.log, slog.LevelDebug), AdminKey: theAdminKey, Notice: func(text string) { w.look(stderr, text) },
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- n.Run(ctx) }()
	w.node = n
	w.stop = sync.OnceFunc(func() {
		stop()
		if err := <-stopped; err != nil {
			w.Error(err)
		}
	})
}

// reply is an answer of the node.
type reply struct {
	status int
	header http.Header
	body   string
	fields map[string]any
}

func (r reply) text(name string) string {
	text, _ := r.fields[name].(string)
	return text
}

// ask sends a request and looks at the answer: a refusal is a problem, all else
// belongs to the sink.
func (w *world) ask(s sink, method, url string, body []byte, header http.Header) reply {
	w.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(w.Context()), method, url, bytes.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header = header
	plain := *w.client
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := plain.Do(req)
	if err != nil {
		w.Fatalf("%s: %v", s, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatalf("%s: %v", s, err)
	}
	if res.StatusCode >= 400 {
		s = problems
	}
	// What differs each time would make every answer a new text.
	shown := res.Header.Clone()
	shown.Del("Date")
	shown.Del(telemetry.RequestIDHeader)
	w.look(s, fmt.Sprint(shown)+"\n"+string(text))
	r := reply{res.StatusCode, res.Header, string(text), nil}
	_ = json.Unmarshal(text, &r.fields)
	return r
}

// call calls the API under a key; the sink is named after method and route.
func (w *world) call(key, method, route, path string, body any, headers ...string) reply {
	w.Helper()
	h := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + key}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	text, raw := body.(string)
	if !raw && body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			w.Fatal(err)
		}
		text = string(encoded)
	}
	s := sink(method + " " + route)
	if key == theAdminKey && method == http.MethodGet {
		s += " payloads"
	}
	return w.ask(s, method, w.node.APIURL()+path, []byte(text), h)
}

// need ends the test unless the answer has the status.
func (w *world) need(status int, r reply) reply {
	w.Helper()
	if r.status != status {
		w.Fatalf("answered %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// job is a submission full of what must not leak.
func (w *world) job(upstream, do string) map[string]any {
	return map[string]any{
		"upstream": upstream, "model": "m", "input": map[string]any{"prompt": thePrompt, "do": do},
		"metadata": map[string]any{"customer": theMetadata}, "callback_url": callbackAt(w.receiver.URL),
		"expected_cost": map[string]any{"amount": "0.5", "currency": "USD"},
	}
}

// submit submits a job and gives the operation's id.
func (w *world) submit(upstream, do string) string {
	w.Helper()
	return w.need(http.StatusAccepted, w.call(w.reader, http.MethodPost, "/v1/operations", "/v1/operations", w.job(upstream, do),
		"Idempotency-Key", theKey+"-"+upstream+"-"+strings.ReplaceAll(do, " ", "-"))).text("id")
}

// eventually polls until the condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	for began := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			w.Fatalf("after %s: %s", patience, what)
		}
	}
}

// operation reads without payloads.
func (w *world) operation(id string) reply {
	w.Helper()
	return w.need(http.StatusOK, w.call(w.reader, http.MethodGet, "/v1/operations/{id}", "/v1/operations/"+id, nil))
}

// line waits until the timeline of an operation holds a text.
func (w *world) line(id, text string) {
	w.Helper()
	w.eventually("the timeline of "+id+" never had "+text, func() bool {
		r := w.call(w.reader, http.MethodGet, "/v1/operations/{id}/timeline", "/v1/operations/"+id+"/timeline", nil)
		return strings.Contains(r.body, text)
	})
}
