package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/upstream"
)

// Who may hold a list against the ledger, and what for.
func TestTwoSided(t *testing.T) {
	var page string
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) }))
	t.Cleanup(list.Close)
	set := testUpstreams(t)
	text := string(upstream.PresetText("sim"))
	for name, change := range map[string]func(*config.Upstream, string) string{
		"shared": func(_ *config.Upstream, text string) string { return text },
		"own":    func(u *config.Upstream, text string) string { u.Tenants = []string{"acme"}; return text },
		"untimed": func(u *config.Upstream, text string) string {
			u.Tenants = []string{"acme"}
			return strings.Replace(text, ", time: /updated_at", "", 1)
		},
	} {
		settings := config.DefaultUpstream()
		settings.BaseURL, settings.Timeout, settings.Deadline = list.URL, time.Second, time.Hour
		spec, err := upstream.Parse([]byte(change(&settings, text)))
		if err != nil {
			t.Fatal(err)
		}
		if set[name], err = upstream.New(name, spec, settings); err != nil {
			t.Fatal(err)
		}
	}
	g := newRigOf(t, set)
	policy, err := egress.NewPolicy(netip.MustParsePrefix("127.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	turn := func(ctx context.Context, _ string) (func(), error) { return func() {}, ctx.Err() }
	g.h.opts.Lists = &Lists{Client: egress.NewClient(policy, egress.Options{}), Turn: turn}
	ask := func(key, source, body string) answer {
		return g.call(key, "POST", "/v1/sources/"+source+"/reconcile", body)
	}
	op := g.submit("k", `{"upstream":"own","model":"m","input":{}}`)
	g.created("own", ledger.CreateAccepted, "task-1")
	// An event that nobody could use has come all the same.
	g.odd(g.policy("own"), "evt_1", "{}", pawl.UnknownType)

	page = `{"items":[{"task":"task-1","state":"failed","updated_at":1790000000}],"next":"b"}`
	a := ask("acme", "own", "{}").want(200, "")
	if items := a.items(); len(items) != 1 || items[0]["operation_id"] != op || items[0]["state"] != "running" || items[0]["upstream_state"] != "failed" || items[0]["at"] != "2026-09-21T14:13:20.000000Z" {
		t.Errorf("%s", a.body)
	}
	next := a.text("next")
	ask("admin", "own", `{"after":"`+next+`"}`).want(400, "invalid_request") // It is bound to who sees what.
	ask("acme", "own", `{"after":"`+next+`","since":"2026-01-01T00:00:00Z"}`).want(400, "invalid_request")
	page = `{"items":[]}`
	if a = ask("acme", "own", `{"after":"`+next+`"}`).want(200, ""); a.text("next") != "" {
		t.Errorf("%s", a.body)
	}
	ask("acme", "own", `{"since":"noon"}`).want(400, "invalid_request")
	ask("acme", "untimed", `{"since":"2026-01-01T00:00:00Z"}`).want(409, "list_untimed")
	ask("acme", "shared", "{}").want(403, "source_shared")
	ask("admin", "shared", "{}").want(200, "")
	ask("acme", "payments", "{}").want(409, "no_list")
	ask("acme", "hidden", "{}").want(404, "not_found")
	ask("reader", "own", "{}").want(403, "insufficient_scope")
	g.h.opts.Lists.Turn = func(context.Context, string) (func(), error) { return nil, context.DeadlineExceeded }
	ask("acme", "own", "{}").want(503, "list_busy")
	if s := g.call("acme", "GET", "/v1/sources/own", ""); s.json["lists"] != true {
		t.Errorf("%s", s.body)
	}
}
