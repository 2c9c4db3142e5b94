package server

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
)

// changed is the world's configuration with a change.
func (w *world) changed(change func(*config.Config, *config.Upstream)) config.Config {
	cfg := *w.node.loaded.Load()
	cfg.Upstreams = maps.Clone(cfg.Upstreams)
	up := cfg.Upstreams["up"]
	change(&cfg, &up)
	if _, kept := cfg.Upstreams["up"]; kept {
		cfg.Upstreams["up"] = up
	}
	return cfg
}

func (w *world) reload(change func(*config.Config, *config.Upstream)) error {
	cfg := w.changed(change)
	return w.node.Reload(w.Context(), func() (config.Config, error) { return cfg, cfg.Validate() })
}

func (w *world) mustReload(change func(*config.Config, *config.Upstream)) {
	w.Helper()
	if err := w.reload(change); err != nil {
		w.Fatal(err)
	}
}

func secretOf(t *testing.T, text string) config.Secret {
	t.Helper()
	s, err := config.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func count(text, part string) int { return strings.Count(text, part) }

// A reload counts for everything that begins after it (1-product I7).
func TestReloadTakesEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	price := func(text string) map[string]config.Model {
		a := testAmount(t, text)
		return map[string]config.Model{"m": {Price: &a}}
	}
	bare := map[string]any{"upstream": "up", "model": "m", "input": map[string]any{}}
	cost := func(key string) string {
		return w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", bare, "Idempotency-Key", key)).at("cost.amount")
	}
	w.mustReload(func(_ *config.Config, u *config.Upstream) { u.Models = price("0.25") })
	if got := cost("a"); got != "0.250000000" {
		t.Errorf("costs %s", got)
	}
	w.mustReload(func(_ *config.Config, u *config.Upstream) { u.Models = price("0.75") })
	if got := cost("b"); got != "0.750000000" {
		t.Errorf("costs %s", got)
	}
	w.mustReload(func(_ *config.Config, u *config.Upstream) { u.Models = map[string]config.Model{"n": {}} })
	if r := w.want(422, w.call(http.MethodPost, "/v1/operations", bare, "Idempotency-Key", "c")); r.at("reason") != "unknown_model" {
		t.Error(r.body)
	}

	private := map[string]any{"url": "http://10.1.2.3/hook"}
	w.want(http.StatusBadRequest, w.call(http.MethodPost, "/v1/endpoints", private))
	w.mustReload(func(c *config.Config, _ *config.Upstream) {
		c.Egress.Allow = append(c.Egress.Allow[:1:1], netip.MustParsePrefix("10.0.0.0/8"))
	})
	w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", private))
	w.mustReload(func(c *config.Config, _ *config.Upstream) { c.Egress.Allow = c.Egress.Allow[:1] })
	w.want(http.StatusBadRequest, w.call(http.MethodPost, "/v1/endpoints", private))

	// A tenant and its credit, booked once however often the file is read.
	for range 2 {
		w.mustReload(func(c *config.Config, _ *config.Upstream) {
			c.Tenants = map[string]config.Tenant{"acme": {Account: &config.Account{Currency: "EUR", Credit: 7 * pawl.AmountScale}}}
		})
	}
	if got := w.get("/v1/accounts?tenant=acme").items()[0].at("balance"); got != "7.000000000" {
		t.Errorf("acme has %s", got)
	}

	w.mustReload(func(c *config.Config, u *config.Upstream) { c.Upstreams["second"] = *u })
	bare["upstream"], bare["model"] = "second", "n"
	op := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", bare, "Idempotency-Key", "d")).at("id")
	w.state(op, "running")
	if n := w.metric(`pawl_config_reloads_total{outcome="ok"}`); n != "8" {
		t.Errorf("%s reloads", n)
	}
}

// An idempotency key lives as long as the configuration in force says when it
// is first used.
func TestReloadOfTheWindow(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		once := func(key string) string {
			op := w.submit(key)
			w.pass(time.Second)
			for _, c := range w.provider.created() {
				w.callback(c.callback, event{id: "end-" + c.task, said: done(c.task)})
			}
			return op
		}
		long := once("long")
		w.mustReload(func(c *config.Config, _ *config.Upstream) { c.Idempotency.Window = time.Hour })
		short := once("short")
		w.pass(2 * time.Hour)
		if w.want(http.StatusOK, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "long")).at("id") != long {
			w.Error("a key that was taken for a day was forgotten after two hours")
		}
		if w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "short")).at("id") == short {
			w.Error("a key that was taken for an hour was remembered after two")
		}
	})
}

// What is wrong in a file changes nothing, and each fault is told with its file,
// line and remedy. The values are not.
func TestReloadOfAFaultyFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	before := w.node.loaded.Load()
	parse := func(text string) func() (config.Config, error) {
		return func() (config.Config, error) { return config.Parse("pawl.yaml", []byte(text), os.LookupEnv) }
	}
	for _, c := range []struct {
		text   string
		faults []string
	}{
		{"listenn: 127.0.0.1:0\ndrain: canary-value\n", []string{"pawl.yaml:1: listenn: unknown key", "pawl.yaml:2: drain: not a duration"}},
		{"upstreams:\n  up:\n    preset: canary-value\n", []string{"pawl.yaml:3: upstreams.up.preset: must be one of"}},
		{"upstreams:\n  up:\n    preset: sim\n    key: ${NOT_SET_ANYWHERE}\n", []string{"pawl.yaml:4: upstreams.up.key: the environment variable NOT_SET_ANYWHERE is not set"}},
	} {
		if err := w.node.Reload(t.Context(), parse(c.text)); err == nil {
			t.Errorf("%q was taken", c.text)
		}
		for _, fault := range c.faults {
			if !strings.Contains(w.log.String(), fault) {
				t.Errorf("the log does not tell %q", fault)
			}
		}
	}
	if strings.Contains(w.log.String(), "canary-value") {
		t.Error("the log tells a value")
	}
	if w.node.Reload(t.Context(), func() (config.Config, error) { return config.Config{}, errors.New("the file is gone") }) == nil {
		t.Error("a file that is gone was taken")
	}
	// Nor does one that is right and cannot be carried out.
	w.disk.state.Store(full)
	if w.reload(func(c *config.Config, _ *config.Upstream) { c.Tenants = map[string]config.Tenant{"new": {}} }) == nil {
		t.Error("tenants were made on a full disk")
	}
	w.disk.state.Store(works)
	if w.node.loaded.Load() != before {
		t.Error("the configuration in force was changed")
	}
	op, c := w.running("k")
	w.finish(op, c)
	if n := w.metric(`pawl_config_reloads_total{outcome="refused"}`); n != "5" {
		t.Errorf("%s refused reloads", n)
	}
}

// A create and a read that are under way keep the credential that they began
// with; what begins after the reload has the new one.
func TestReloadKeepsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	reached, open := w.provider.gate()
	first := w.submit("first")
	<-reached
	w.mustReload(func(_ *config.Config, u *config.Upstream) { u.Key = secretOf(t, "another-key") })
	open()
	w.state(first, "running")
	// The provider knows the former key only.
	second := w.submit("second")
	w.eventually("the new credential is not used", func() bool { return strings.Contains(w.log.String(), "refuses our credential") })
	w.now(second, "pending")
	w.now(first, "running")
}

// Limits change in both directions while work is under way.
func TestReloadOfLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", func(_ *config.Config, u *config.Upstream) { u.Concurrency = 1 })
	release := make(chan struct{})
	w.provider.script(func(int, create) *answer { <-release; return nil }, nil)
	started := func(n int) func() bool { return func() bool { return len(w.provider.created()) == n } }
	for i := range 8 {
		w.submit(fmt.Sprint(i))
	}
	w.eventually("no create", started(1))
	w.mustReload(func(_ *config.Config, u *config.Upstream) { u.Concurrency = 3 })
	w.eventually("more slots are not used", started(3))
	w.mustReload(func(_ *config.Config, u *config.Upstream) { u.Concurrency = 2 })
	for range 2 { // With one of three ended, two are left: as many as may be.
		release <- struct{}{}
		time.Sleep(100 * time.Millisecond)
	}
	w.eventually("the slots are not used", started(4))
	time.Sleep(200 * time.Millisecond)
	if n := len(w.provider.created()); n != 4 {
		t.Errorf("%d creates began, want 4: two ended, two under way", n)
	}
	close(release)
	w.eventually("not all were created", started(8))
}

// What only a restart can change is named; the rest of the file counts.
func TestReloadNamesWhatNeedsARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.mustReload(func(c *config.Config, u *config.Upstream) {
		c.Listen, c.AdminListen, c.Data, c.PublicURL, c.Database = "127.0.0.1:1", "127.0.0.1:2", t.TempDir(), "https://pawl.example.com", secretOf(t, "sqlite")
		c.Secrets, c.FormerSecrets = secretOf(t, "base64key://x"), []config.Secret{secretOf(t, "base64key://y")}
		c.Artifacts.Store = "mem://"
		u.Owner = "night shift"
	})
	for _, k := range needsRestart {
		if !strings.Contains(w.log.String(), `"setting":"`+k.key+`"`) {
			t.Errorf("%s is not named", k.key)
		}
	}
	if got := w.get("/v1/upstreams").items()[0].at("owner"); got != "night shift" {
		t.Errorf("owner %q", got)
	}
	_, c := w.running("k")
	if !strings.HasPrefix(c.callback, w.node.APIURL()) {
		t.Errorf("called back at %s", c.callback)
	}
}

// What was begun at an upstream that is removed keeps its name, is shown as
// waiting for it, and goes on when it is back. Nobody else is shown it.
func TestReloadWithoutAnUpstream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", reading(50*time.Millisecond, 50*time.Millisecond, time.Hour))
	w.endpoint()
	op, c := w.running("k")
	kept := *w.node.loaded.Load()
	w.mustReload(func(cfg *config.Config, _ *config.Upstream) {
		delete(cfg.Upstreams, "up")
		cfg.Tenants = map[string]config.Tenant{"other": {}}
	})
	w.want(http.StatusNotFound, w.callback(c.callback, event{id: "e", said: done(c.task)}))
	w.want(422, w.call(http.MethodPost, "/v1/operations", job("x"), "Idempotency-Key", "x"))
	// A repeat is answered all the same.
	if w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "k")).at("id") != op {
		t.Error("the repeat is another operation")
	}
	if r := w.want(http.StatusConflict, w.call(http.MethodPost, "/v1/operations/"+op+"/reconcile", nil)); r.at("reason") != "upstream_unknown" {
		t.Error(r.body)
	}
	if got := w.now(op, "running").at("upstream"); got != "up" {
		t.Errorf("upstream %q", got)
	}
	if items := w.get("/v1/upstreams").items(); len(items) != 1 || items[0].at("name") != "up" || items[0].at("removed") != "true" {
		t.Errorf("upstreams %v", items)
	}
	if items := w.get("/v1/upstreams?tenant=other").items(); len(items) != 0 {
		t.Errorf("another tenant sees %v", items)
	}
	w.provider.say(done(c.task))
	reads := len(w.provider.readAt())
	time.Sleep(300 * time.Millisecond)
	if more := len(w.provider.readAt()) - reads; more > 1 { // one may have been under way
		t.Errorf("%d reads at a removed upstream", more)
	}
	// The same after a restart, with a word in the log.
	w.drain()
	back := w.cfg
	w.cfg = kept
	w.cfg.Upstreams = nil
	w.start()
	w.eventually("the log does not tell", func() bool { return strings.Contains(w.log.String(), "not configured any more") })
	if got := w.metric("pawl_upstreams_removed"); got != "1" {
		t.Errorf("pawl_upstreams_removed %s", got)
	}
	w.now(op, "running")
	if err := w.node.Reload(t.Context(), func() (config.Config, error) { return back, nil }); err != nil {
		t.Fatal(err)
	}
	w.state(op, "succeeded")
	w.told(op, "operation.running", "operation.succeeded")
	w.cfg = back
}
