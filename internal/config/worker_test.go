package config_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// An upstream of own workers needs nothing but its preset.
func TestWorkerUpstream(t *testing.T) {
	c, err := config.Parse("f.yaml", []byte("upstreams:\n  w: {preset: worker}\n  v: {preset: worker, attempts: 2, lease: 90s, deadline: 2h, models: {m: {price: \"1\"}}, owner: us, tenants: [t]}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Upstreams["w"]; w.Attempts != 5 || w.Lease != time.Minute {
		t.Errorf("by default %d attempts of %s, want 5 of 1m", w.Attempts, w.Lease)
	}
	if v := c.Upstreams["v"]; v.Attempts != 2 || v.Lease != 90*time.Second {
		t.Errorf("%d attempts of %s, want 2 of 90s", v.Attempts, v.Lease)
	}
}

// What only a provider has is refused by name, and so is what only workers have.
func TestWorkerUpstreamRefuses(t *testing.T) {
	for _, tc := range []struct{ text, key string }{
		{"preset: worker, base_url: \"https://x.example\"", "base_url"},
		{"preset: worker, key: k", "key"},
		{"preset: worker, webhook_keys: [k]", "webhook_keys"},
		{"preset: worker, read: {first: 2s}", "read"},
		{"preset: worker, concurrency: 16", "concurrency"},
		{"preset: worker, submit: {rate: 1}", "submit"},
		{"preset: worker, timeout: 30s", "timeout"},
		{"preset: worker, late_success: review", "late_success"},
		{"preset: worker, idempotent: false", "idempotent"},
		{"preset: worker, orphans: park", "orphans"},
		{"preset: worker, grace: 15m", "grace"},
		{"preset: worker, orphan_limit: 5", "orphan_limit"},
		{"preset: worker, trust: signed", "trust"},
		{"preset: worker, confirm: poll", "confirm"},
		{"preset: worker, callback_rate: 1", "callback_rate"},
		{"preset: worker, attempts: 0", "attempts"},
		{"preset: worker, attempts: 51", "attempts"},
		{"preset: worker, lease: 999ms", "lease"},
		{"preset: worker, lease: 24h1s", "lease"},
		{"preset: sim, attempts: 5", "attempts"},
		{"preset: sim, lease: 60s", "lease"},
	} {
		_, err := config.Parse("f.yaml", []byte("upstreams:\n  s: {"+tc.text+"}\n"), nil)
		var found config.Problems
		if !errors.As(err, &found) || len(found) != 1 || found[0].Key != "upstreams.s."+tc.key || found[0].Line != 2 {
			t.Errorf("%s: %v", tc.text, err)
		}
	}
	for _, text := range []string{"attempts: 1, lease: 1s", "attempts: 50, lease: 24h"} {
		if _, err := config.Parse("f.yaml", []byte("upstreams: {s: {preset: worker, "+text+"}}"), nil); err != nil {
			t.Error(err)
		}
	}
	// Made in code there is no file to look into.
	c := config.Default()
	u := config.DefaultUpstream()
	u.Preset, u.BaseURL = config.PresetWorker, "https://x.example"
	c.Upstreams = map[string]config.Upstream{"s": u}
	if err := c.Validate(); err == nil {
		t.Error("a base_url made in code is taken")
	}
}
