package server

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sim"
)

// Pawl behind Pawl: what is submitted at A goes through B's front to the
// provider, and its end comes back by the callbacks of both.
func TestPawlBehindPawl(t *testing.T) {
	for _, dialect := range []string{"media-v2", "body-timestamp"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t, "sim", fronted(config.Fronts{
				MediaV2:       config.MediaFront{Models: map[string]string{"m": "up/m"}},
				BodyTimestamp: config.TaskFront{Upstream: "up"},
			}))
			key := b.caller("default")
			a := newWorld(t, dialect, func(_ *config.Config, u *config.Upstream) {
				u.BaseURL, u.Key = b.node.APIURL(), secretOf(t, key.secret)
				u.WebhookKeys = []config.DatedSecret{{Key: secretOf(t, key.webhookSecret)}}
			})
			a.endpoint()
			for n, end := range []said{
				{state: "succeeded", result: `{"text":"done"}`, cost: "0.6", currency: "USD", settled: true},
				{state: "failed", code: "content_rejected", message: "no"},
			} {
				op := a.submit(fmt.Sprint("k", n))
				a.state(op, "running")
				task := a.operation(op).at("task_id")
				inner := "op_" + task[strings.Index(task, "_")+1:]
				b.state(inner, "running")
				create := b.provider.created()[n]
				end.task = create.task
				b.want(202, b.callback(create.callback, event{id: fmt.Sprint("e", n), said: end}))
				b.now(inner, end.state)
				outer := a.state(op, end.state)
				if end.state == "succeeded" && outer.at("result.text") != "done" {
					t.Errorf("%s", outer.body)
				}
				if dialect == "media-v2" && end.state == "failed" && outer.at("error.code") != "content_rejected" {
					t.Errorf("%s", outer.body)
				}
				// The callback alone did it.
				a.line(op, "callback applied state", 1)
				a.told(op, "operation.running", "operation."+end.state)
			}
			charged := map[string]string{"media-v2": "99.4", "body-timestamp": "99"}[dialect]
			a.money(charged, "0")
			b.money("99.4", "0")
		})
	}
}

// The same circle where the provider's callbacks get lost: A reads B, and B the
// provider, which misbehaves as it likes.
func TestPawlBehindPawlByReads(t *testing.T) {
	t.Parallel()
	provider, err := sim.NewServer(sim.NewScripts(sim.Options{}, scripted(func(s *sim.Script) {
		s.Callbacks, s.Start, s.End, s.Settle = nil, 20*time.Millisecond, 60*time.Millisecond, 60*time.Millisecond
	})), sim.Config{Keys: []string{"provider-key"}, Secrets: map[sim.Dialect]string{sim.Native: hookSecret}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	quick := reading(50*time.Millisecond, 100*time.Millisecond, time.Hour)
	b := newWorld(t, "sim", fronted(config.Fronts{}), quick, func(_ *config.Config, u *config.Upstream) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: provider}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
		u.BaseURL = "http://" + l.Addr().String()
	})
	key := b.caller("default")
	// Without webhook keys A asks for no callbacks.
	a := newWorld(t, "media-v2", quick, func(_ *config.Config, u *config.Upstream) {
		u.BaseURL, u.Key, u.WebhookKeys = b.node.APIURL(), secretOf(t, key.secret), nil
	})
	body := job("a red kite")
	body["model"], body["input"] = "up/m", map[string]any{"n": 0}
	op := a.want(http.StatusAccepted, a.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", "k")).at("id")
	a.state(op, "succeeded")
	a.eventually("not settled", func() bool { return a.operation(op).at("cost.settled") == "true" })
	a.money("99.4", "0")
	b.money("99.4", "0")
}
