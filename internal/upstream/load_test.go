package upstream

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

func presetText(t testing.TB, name string) string {
	t.Helper()
	data, err := presets.ReadFile("presets/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPresets(t *testing.T) {
	if got, want := strings.Join(Presets(), " "), "body-timestamp media-v2 sim sim-unsigned"; got != want {
		t.Fatalf("Presets() = %s, want %s", got, want)
	}
	for _, name := range Presets() {
		spec, err := Parse([]byte(presetText(t, name)))
		if err != nil {
			t.Error(err)
		}
		if spec.Adapter() != name+"/1" {
			t.Errorf("Adapter() = %s, want %s/1", spec.Adapter(), name)
		}
	}
	for _, name := range []string{"", "nope", "../doc", "sim.yaml"} {
		if _, ok := Preset(name); ok {
			t.Errorf("Preset(%q) found something", name)
		}
	}
}

// Each case makes one line of a good description wrong.
func TestParseRefuses(t *testing.T) {
	cases := []struct{ old, new, want string }{
		{"name: sim", "name: Sim", "name:"},
		{"version: 1", "version: 0", "version:"},
		{"version: 1", "version: 1\ntimeout: 3s", "timeout"},
		{"version: 1", "version: 1\nversion: 2", "version"},
		{"version: 1", "version: 1\nbase_url: ftp://x", "base_url"},
		{"version: 1", "version: 1\nheaders: [{name: 'a b', value: c}]", "headers"},
		{"version: 1", "version: 1\nfailures: {nsfw: forbidden}", "failures"},
		{"{key}", "key", "auth.format"},
		{"auth: {header: Authorization", "auth: {header: ''", "auth.header"},
		{"code: /error/code", "code: error.code", "JSON Pointer"},
		{"queued: running", "queued: pending", "states"},
		{"queued: running", "queued: waiting", "states"},
		{"method: POST\n  path: /generate", "method: GET\n  path: /generate", "create.method"},
		{"path: /generate", "path: /generate/{task}", "create.path"},
		{"path: /generate", "path: generate", "create.path"},
		{"path: /generate", "path: /../generate", "create.path"},
		{"path: /generate", "path: /generate?x=1", "create.path"},
		{"from: model", "from: prompt", "create.body"},
		{"from: model", "from: model, pointer: /x", "create.body"},
		{"from: model", "from: value, value: '{'", "create.body"},
		{"name: input", "name: model", "twice"},
		{"fields: {task: /task, state", "fields: {task: '', state", "create.fields.task"},
		{"path: /status/{task}", "path: /status", "read:"},
		{"query: {client_ref: client_ref}", "query: {client_ref: task}", "lookup"},
		{"scheme: standard-webhooks", "scheme: none", "callback.scheme"},
		{"[signed-id]", "[]", "callback.event"},
		{"[signed-id]", "[webhook-id]", "callback.event"},
		{"event: {from: [signed-id]}", "event: {from: [signed-id], volatile: [/x]}", "volatile"},
		{"task.updated: state", "task.updated: final", "callback.types"},
		{"  type: /type\n", "", "callback.types"},
		{"path: /list", "path: /list?x=1", "list.path"},
		{"path: /list", "path: /list/{task}", "list.path"},
		{"path: /list", "path: /list\n  query: {after: x}", "list.query"},
		{"{task: /task, state: /state, time: /updated_at}", "{state: /state}", "list.fields.task"},
		{"time: /updated_at}", "time: updated_at}", "list: fields.time"},
		{"next: /next", "offset: true, next: /next", "list: paging"},
	}
	good := presetText(t, "sim")
	digested := strings.Replace(strings.Replace(good, "event: {from: [signed-id]}", "event: {digest: true}", 1), "{task: /task, state: /state, time", "{task: /task, event: /id, state: /state, time", 1)
	if _, err := Parse([]byte(digested)); err == nil || !strings.Contains(err.Error(), "list.fields.event") {
		t.Errorf("events known by a digest in a list: %v", err)
	}
	for _, c := range cases {
		if !strings.Contains(good, c.old) {
			t.Fatalf("%q is not in the description", c.old)
		}
		_, err := Parse([]byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: error %v, want one about %s", c.new, c.old, err, c.want)
		}
	}
	for _, text := range []string{"", "#", good + "---\n" + good, "a: &a 1\nb: *a", "[]", "name", strings.Repeat("[", 100_000), strings.Repeat(" ", maxSpec+1)} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.10q was accepted", text)
		}
	}
}

func TestBuild(t *testing.T) {
	const text = `
upstreams:
  studio:
    preset: media-v2
    base_url: https://studio.example.com/v1/
    key: sk-canary-1
    webhook_keys: [hook-canary-1]
    read: {first: 3s, factor: 1.25, max: 20s, rate: 4}
    concurrency: 7
    submit: {rate: 0.4}
    currency: EUR
    spending: {amount: "50.00", per: day}
    settle_within: 2h
    owner: media team
    tenants: [acme]
    late_success: accept
    orphans: reject
    grace: 5m
  plain: {preset: sim, base_url: "http://127.0.0.1:1", read: {rate: 3}, spending: {amount: "1", currency: USD}, currency: EUR}
`
	c, err := config.Parse("pawl.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	set, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	got := set["studio"].Policy()
	want := ledger.Upstream{
		Name: "studio", Adapter: "media-v2/1", Idempotent: true, IdempotencyWindow: 24 * time.Hour,
		Callbacks: true, Reads: true, Cancels: false,
		ReadFirst: 3 * time.Second, ReadMax: 20 * time.Second, ReadFactor: 1250, ReadSpacing: 250 * time.Millisecond, Concurrency: 7,
		CreateSpacing: 2500 * time.Millisecond, SpendPerDay: 50 * pawl.AmountScale, SpendCurrency: "EUR",
		Timeout: 30 * time.Second, SubmitAttempts: 10, SettleWithin: 2 * time.Hour,
		OrphanGrace: 5 * time.Minute, OrphanLimit: 10_000, Owner: "media team", Tenant: "acme", AcceptLateSuccess: true,
	}
	want.Credential = got.Credential
	if got != want {
		t.Errorf("Policy() = %+v, want %+v", got, want)
	}
	plain := set["plain"].Policy()
	if plain.Idempotent || plain.Callbacks || !plain.Cancels || !plain.ParkOrphans || plain.Tenant != "" {
		t.Errorf("Policy() of plain = %+v", plain)
	}
	// Rounded up: three turns of a third of a second are no less than a second.
	if plain.ReadSpacing*3 < time.Second || plain.CreateSpacing != 0 || plain.SpendCurrency != "USD" {
		t.Errorf("limits of plain = %+v", plain)
	}
	if got.Credential == plain.Credential || got.Credential == [8]byte{} {
		t.Error("the credential is not told apart")
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		text := fmt.Sprintf(verb, set) + fmt.Sprintf(verb, set["studio"]) + fmt.Sprintf(verb, &struct{ U Upstream }{set["studio"]})
		if strings.Contains(text, "canary") || strings.Contains(text, "63616e617279") {
			t.Errorf("%s prints a secret: %s", verb, text)
		}
	}
}

// A description of one's own comes from a file, and is placed in the
// configuration if it is wrong.
func TestBuildFromDescription(t *testing.T) {
	dir := t.TempDir()
	own, err := presets.ReadFile("presets/sim.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"own.yaml": strings.Replace(string(own), "name: sim", "name: mine", 1), "wrong.yaml": "name: wrong\nversions: 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := func(file string) (Set, error) {
		text := "upstreams:\n  studio:\n    description: ${file:" + file + "}\n    base_url: https://studio.example.com\n"
		c, err := config.Parse(filepath.Join(dir, "pawl.yaml"), []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return Build(c)
	}
	set, err := build("own.yaml")
	if err != nil || set["studio"].Policy().Adapter != "mine/1" {
		t.Errorf("adapter %q, error %v", set["studio"].Policy().Adapter, err)
	}
	_, err = build("wrong.yaml")
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Key != "upstreams.studio.description" || problems[0].Line != 3 ||
		!strings.Contains(problems[0].What, "versions") {
		t.Errorf("Build() = %v", err)
	}
}

func TestBuildPlacesProblems(t *testing.T) {
	const text = `
upstreams:
  a: {preset: nope, base_url: "https://a.example.com"}
  b: {preset: sim, base_url: ""}
  c:
    preset: sim
    base_url: https://c.example.com
    webhook_keys: [whsec_c2hvcnQ=]
`
	c, err := config.Parse("pawl.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	_, err = Build(c)
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("Build() = %v, want problems", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%d %s", p.Line, p.Key))
	}
	if want := []string{"3 upstreams.a.preset", "4 upstreams.b.base_url", "8 upstreams.c.webhook_keys[0]"}; !reflect.DeepEqual(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
	if strings.Contains(err.Error(), "c2hvcnQ") {
		t.Errorf("a secret is in %v", err)
	}
}
