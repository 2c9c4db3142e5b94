package config_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
)

// contract is the example of the contract page without the keys that this
// version refuses.
const contract = `listen: 127.0.0.1:8080
admin_listen: 127.0.0.1:8081
public_url: https://pawl.example.com     # callback URLs are made from it
data: ./pawl-data
egress: {allow: [127.0.0.0/8, "::1/128"]}
idempotency: {window: 24h}
upstreams:
  studio:
    preset: media-v2
    base_url: https://studio.example.com
    key: ${STUDIO_KEY}
    webhook_keys: ["${STUDIO_WEBHOOK_KEY}"]   # several while rotating
    deadline: 2h
    models: {kling-2: {price: "0.15"}}
    read: {first: 2s, factor: 1.5, max: 15s, rate: 10}
    currency: USD
    concurrency: 4
    late_success: accept
    timeout: 20s
    settle_within: 12h
    tenants: [default]
    owner: media team
    idempotent: {header: Idempotency-Key, window: 24h}
sources:
  payments: {scheme: stripe, secrets: ["${STRIPE_SECRET}"], tenant: default}
tenants:
  default: {account: {currency: USD, credit: "100.00"}}
fronts:
  media-v2: {models: {kling-2: studio/kling-2}}
  body-timestamp: {tenant: default, upstream: studio, model: kling-2, anonymous: true}
drain: 5s
secrets: base64key://${PAWL_SECRETS_KEY} # wraps secrets at rest
former_secrets: ["base64key://${PAWL_SECRETS_KEY}"]
`

func environment(name string) (string, bool) {
	v, ok := map[string]string{
		"STUDIO_KEY":         "sk: withx",
		"STUDIO_WEBHOOK_KEY": "whsk_one",
		"STRIPE_SECRET":      "whsec_two",
		"PAWL_SECRETS_KEY":   "b2Fr+/8=",
		"YAML":               "a: {b: [c]}\ndrain: 1h",
		"SPACED":             " s3cret",
		"BROKEN":             "s3cret\n",
		"EMPTY":              "",
		"BINARY":             "a\xff",
		"PRICE":              "0.25",
	}[name]
	return v, ok
}

func secret(t *testing.T, text string) config.Secret {
	t.Helper()
	s, err := config.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContractExampleLoads(t *testing.T) {
	got, err := config.Parse("pawl.yaml", []byte(contract), environment)
	if err != nil {
		t.Fatal(err)
	}
	price := pawl.Amount(150_000_000)
	want := config.Config{
		Listen:      "127.0.0.1:8080",
		AdminListen: "127.0.0.1:8081",
		PublicURL:   "https://pawl.example.com",
		Data:        "./pawl-data",
		Secrets:     secret(t, "base64key://b2Fr+/8="), FormerSecrets: []config.Secret{secret(t, "base64key://b2Fr+/8=")},
		Egress:      config.Egress{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}},
		Idempotency: config.Idempotency{Window: 24 * time.Hour},
		Upstreams: map[string]config.Upstream{"studio": {
			Preset:       "media-v2",
			BaseURL:      "https://studio.example.com",
			Key:          secret(t, "sk: withx"),
			WebhookKeys:  []config.DatedSecret{{Key: secret(t, "whsk_one")}},
			Deadline:     2 * time.Hour,
			Models:       map[string]config.Model{"kling-2": {Price: &price}},
			Read:         config.Read{First: 2 * time.Second, Factor: 1.5, Max: 15 * time.Second, Rate: 10},
			Currency:     "USD",
			Concurrency:  4,
			Timeout:      20 * time.Second,
			SettleWithin: 12 * time.Hour,
			Owner:        "media team",
			Tenants:      []string{"default"},
			LateSuccess:  config.LateAccept,
			Idempotent:   &config.Idempotent{Header: "Idempotency-Key", Window: 24 * time.Hour},
			Orphans:      config.OrphansPark,
			Grace:        15 * time.Minute,
			OrphanLimit:  10_000,
			Attempts:     5,
			Lease:        time.Minute,
		}},
		Sources: map[string]config.Source{"payments": {
			Scheme: "stripe", Secrets: []config.DatedSecret{{Key: secret(t, "whsec_two")}}, Tenant: "default",
		}},
		Tenants: map[string]config.Tenant{"default": {Account: &config.Account{Currency: "USD", Credit: 100_000_000_000}}},
		Fronts: config.Fronts{
			MediaV2:       config.MediaFront{Models: map[string]string{"kling-2": "studio/kling-2"}},
			BodyTimestamp: config.TaskFront{Tenant: "default", Upstream: "studio", Model: "kling-2", Anonymous: true},
		},
		Drain:     5 * time.Second,
		Artifacts: config.Artifacts{MaxSize: 5 << 30, LinkTTL: 15 * time.Minute, Concurrency: 8, PerHost: 4},
		Disk:      config.Disk{MinFree: 256 << 20},
		Retention: config.Retention{Inputs: 720 * time.Hour, Results: 720 * time.Hour, Callbacks: 720 * time.Hour, Deliveries: 720 * time.Hour, Audit: 9600 * time.Hour, Idempotency: 168 * time.Hour},
	}
	opts := cmp.Options{
		cmpopts.IgnoreUnexported(config.Config{}),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Error(diff)
	}
}

func TestEmptyIsDefault(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "\ufeff", "{}\n", "---\n"} {
		got, err := config.Parse("pawl.yaml", []byte(text), environment)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(config.Default(), got, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	if err := config.Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValuesAreRead(t *testing.T) {
	one := func(settings string) string { return "upstreams: {s: {preset: p, " + settings + "}}" }
	tests := []struct {
		name, text string
		got        func(config.Config) any
		want       any
	}{
		{"a value cannot inject YAML", "data: ${YAML}", func(c config.Config) any { return [2]any{c.Data, c.Drain} }, [2]any{"a: {b: [c]}\ndrain: 1h", 10 * time.Second}},
		{"part of a value", "data: x/${PRICE}/y", func(c config.Config) any { return c.Data }, "x/0.25/y"},
		{"an escape", "data: $${PRICE} $5", func(c config.Config) any { return c.Data }, "${PRICE} $5"},
		{"an empty variable", "data: x${EMPTY}", func(c config.Config) any { return c.Data }, "x"},
		{"an unquoted price is exact", one("models: {m: {price: 0.123456789}}"), func(c config.Config) any { return *c.Upstreams["s"].Models["m"].Price }, pawl.Amount(123_456_789)},
		{"a price beyond a float's precision", one("models: {m: {price: 9007199.254740993}}"), func(c config.Config) any { return *c.Upstreams["s"].Models["m"].Price }, pawl.Amount(9_007_199_254_740_993)},
		{"a price from a variable", one(`models: {m: {price: "${PRICE}"}}`), func(c config.Config) any { return *c.Upstreams["s"].Models["m"].Price }, pawl.Amount(250_000_000)},
		{"a model without a price", one("models: {a/b.c: {}}"), func(c config.Config) any { return c.Upstreams["s"].Models["a/b.c"].Price == nil }, true},
		{"idempotent false", one("idempotent: false"), func(c config.Config) any { return *c.Upstreams["s"].Idempotent }, config.Idempotent{}},
		{"idempotent left to the preset", one("owner: o"), func(c config.Config) any { return c.Upstreams["s"].Idempotent == nil }, true},
		{"part of read keeps the other defaults", one("read: {first: 300ms}"), func(c config.Config) any { return c.Upstreams["s"].Read }, config.Read{First: 300 * time.Millisecond, Factor: 1.5, Max: 15 * time.Second, Rate: 10}},
		{"sqlite by name", "database: sqlite", func(c config.Config) any { return c.Database.Reveal() }, "sqlite"},
		{"port 0 twice", "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0", func(c config.Config) any { return c.AdminListen }, "127.0.0.1:0"},
		{"a tenant without an account", "tenants: {t: {}}", func(c config.Config) any { return c.Tenants["t"].Account == nil }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := config.Parse("pawl.yaml", []byte(tt.text), environment)
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.got(c); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestLoadReadsFilesBesideIt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "pawl.yaml", "sources: {s: {scheme: stripe, secrets: [\"${file:one}\", \"${file:two}\"]}}\n")
	write(t, dir, "one", "s3cret\n")
	write(t, dir, "two", "s3cret\r\n")
	c, err := config.Load(filepath.Join(dir, "pawl.yaml"), environment)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range c.Sources["s"].Secrets {
		if s.Key.Reveal() != "s3cret" {
			t.Errorf("secret %d: the final line break is not trimmed", i)
		}
	}
	if c, err := config.Load("", environment); err != nil || c.Listen != "127.0.0.1:8080" {
		t.Errorf("no path: %v", err)
	}
	if _, err := config.Load(filepath.Join(dir, "absent.yaml"), environment); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProblemOfALaterRoom(t *testing.T) {
	c, err := config.Parse("pawl.yaml", []byte(contract), environment)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Problem("upstreams.studio.preset", "no such preset").Error()
	if want := "pawl.yaml:9: upstreams.studio.preset: no such preset"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = config.Default().Problem("listen", "is taken").Error()
	if want := "config: listen: is taken"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, err := config.Parse("pawl.yaml", []byte("drain: soon\nlisten: nowhere\nnew: 1\n"), environment)
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v", err)
	}
	for i, key := range []string{"drain", "listen", "new"} {
		if i >= len(problems) || problems[i].Line != i+1 || problems[i].Key != key {
			t.Fatalf("problem %d: want line %d, key %s in\n%v", i, i+1, key, err)
		}
	}
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("want one line a problem:\n%v", err)
	}
	var one config.Problem
	if !errors.As(err, &one) || one.Key != "drain" {
		t.Errorf("errors.As gives %v", one)
	}
}
