package server

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
)

// A client that sends no body, no key and no Authorization is served where that
// is configured, and counts as an API key that an operator holds (7-rules R44).
func TestAnonymousTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", fronted(config.Fronts{BodyTimestamp: config.TaskFront{Tenant: "default", Upstream: "up", Model: "m", Anonymous: true}}))
	bare := &caller{world: w}
	task := w.want(202, bare.do(http.MethodPost, "/tasks", "")).at("task_id")
	if w.want(202, bare.do(http.MethodPost, "/tasks", "")).at("task_id") == task {
		t.Error("two bare creates are one task")
	}
	w.want(200, bare.do(http.MethodGet, "/tasks/"+task, ""))
	w.want(404, bare.do(http.MethodGet, "/tasks/task_00000000000000000000000009", ""))
	w.state("op_"+strings.TrimPrefix(task, "task_"), "running")
	if body := w.provider.created()[0].body; !strings.Contains(body, `"input":{}`) {
		t.Errorf("the provider got %s", body)
	}
	for name, headers := range map[string][]string{
		"a wrong key":     {"Authorization", "Bearer pawl_sk_00000000000000000000000000000000"},
		"through a proxy": {"X-Forwarded-For", "203.0.113.7"},
		"by a gateway":    {"Via", "1.1 gateway"},
		"from a page":     {"Origin", "https://evil.example"},
		"by a browser":    {"Sec-Fetch-Site", "cross-site"},
	} {
		if r := bare.do(http.MethodPost, "/tasks", "", headers...); r.status != 401 || r.at("error") == "" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	// The other ways in ask for a key.
	w.want(401, bare.do(http.MethodPost, "/api/v1/jobs/createTask", `{"model":"up/m","input":{}}`, "Idempotency-Key", "k"))
	w.want(401, bare.do(http.MethodGet, "/v1/operations", ""))

	// The key is the same after a restart, and revoking it ends anonymous calls.
	anonymous := func() []string {
		var ids []string
		for _, k := range w.get("/v1/keys").items() {
			if k.at("name") == "anonymous" {
				ids = append(ids, k.at("id"))
			}
		}
		return ids
	}
	before := anonymous()
	w.drain()
	w.start()
	if after := anonymous(); len(before) != 1 || !slices.Equal(before, after) {
		t.Fatalf("keys %v, then %v", before, after)
	}
	l := w.listener()
	secret := w.want(200, w.call(http.MethodPost, "/v1/keys/"+before[0]+"/rotate-webhook-secret", "{}")).at("webhook_secret")
	told := w.want(202, bare.do(http.MethodPost, "/tasks", fmt.Sprintf(`{"callback_url":%q}`, l.url))).at("task_id")
	w.eventually("no callback", func() bool { return len(l.all()) == 1 })
	if got := l.all()[0]; got.fields.at("data.task_id") != told {
		t.Errorf("%s", got.body)
	} else if tokens := got.header.Values("X-Webhook-Signature"); len(tokens) != 1 {
		t.Errorf("signatures %v", tokens)
	} else {
		w.verified("body-timestamp", secret, got)
	}
	w.want(204, w.call(http.MethodDelete, "/v1/keys/"+before[0], nil))
	w.want(401, bare.do(http.MethodPost, "/tasks", ""))
	w.drain()
	w.start()
	w.want(401, bare.do(http.MethodPost, "/tasks", ""))
}

// elsewhere is a listener that says it is bound to an address of the network.
type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080} }

// Whatever a name in the configuration stands for, and whatever a reload says,
// anonymous calls are taken on a loopback listener only.
func TestAnonymousTasksOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.drain()
	anonymous := func(c *config.Config) { c.Fronts.BodyTimestamp = config.TaskFront{Anonymous: true} }
	options := w.options()
	options.wires.listen = func(network, address string) (net.Listener, error) {
		l, err := net.Listen(network, address)
		return elsewhere{l}, err
	}
	cfg := w.cfg
	anonymous(&cfg)
	const want = "fronts.body-timestamp.anonymous: takes calls without an API key, which only a loopback listener may"
	if _, err := Start(t.Context(), cfg, options); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("start: %v", err)
	}
	node, err := Start(t.Context(), w.cfg, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Reload(t.Context(), func() (config.Config, error) { return cfg, nil }); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("reload: %v", err)
	}
	if err := node.close(); err != nil {
		t.Fatal(err)
	}
	w.start()
	bare := &caller{world: w}
	w.want(401, bare.do(http.MethodPost, "/tasks", ""))
	if err := w.node.Reload(t.Context(), func() (config.Config, error) { return cfg, nil }); err != nil {
		t.Fatal(err)
	}
	w.want(202, bare.do(http.MethodPost, "/tasks", `{"model":"up/m","input":{}}`))
}
