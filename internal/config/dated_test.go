package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlhq/pawl/internal/config"
)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Plain texts, dates and mixtures, in block and in flow form.
func TestDatedSecrets(t *testing.T) {
	const text = `upstreams:
  s:
    preset: p
    webhook_keys:
      - {key: "${STUDIO_WEBHOOK_KEY}", until: 2026-03-08T01:00:00+01:00}
      - key: next
        from: "2026-03-01T00:00:00.5Z"
sources:
  q: {scheme: stripe, secrets: [plain, {key: a, until: 2026-01-01T00:00:00Z}, {key: b, from: 2026-01-01T00:00:00Z, until: 2026-02-01T00:00:00Z}, {key: c, from: 2026-02-01T00:00:00Z}]}
`
	c, err := config.Parse("pawl.yaml", []byte(text), environment)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.DatedSecret{
		{Key: secret(t, "whsk_one"), Until: moment(t, "2026-03-08T00:00:00Z")},
		{Key: secret(t, "next"), From: moment(t, "2026-03-01T00:00:00.5Z")},
	}
	if diff := cmp.Diff(want, c.Upstreams["s"].WebhookKeys); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s := c.Sources["q"].Secrets; len(s) != 4 || s[0].Key.Reveal() != "plain" || !s[0].From.IsZero() || s[3].Key.Reveal() != "c" {
		t.Errorf("%v", s)
	}
	if printed := fmt.Sprintf("%v %+v %#v", c, c.Upstreams, c.Sources); strings.Contains(printed, "whsk_one") {
		t.Errorf("the secret is printed: %s", printed)
	}
}

// At from it is active, at until it is not; a nanosecond decides.
func TestActiveAt(t *testing.T) {
	from, until := moment(t, "2026-03-01T00:00:00Z"), moment(t, "2026-03-08T00:00:00Z")
	for _, tt := range []struct {
		name   string
		secret config.DatedSecret
		at     time.Time
		want   bool
	}{
		{"no dates", config.DatedSecret{}, from, true},
		{"no dates, zero clock", config.DatedSecret{}, time.Time{}, true},
		{"before from", config.DatedSecret{From: from}, from.Add(-1), false},
		{"at from", config.DatedSecret{From: from}, from, true},
		{"long after from", config.DatedSecret{From: from}, from.AddDate(100, 0, 0), true},
		{"before until", config.DatedSecret{Until: until}, until.Add(-1), true},
		{"at until", config.DatedSecret{Until: until}, until, false},
		{"at until elsewhere", config.DatedSecret{Until: until}, until.In(time.FixedZone("", 3600)), false},
		{"after until", config.DatedSecret{Until: until}, until.Add(1), false},
		{"between", config.DatedSecret{From: from, Until: until}, from.Add(time.Hour), true},
		{"before both", config.DatedSecret{From: from, Until: until}, from.Add(-1), false},
		{"at the end of both", config.DatedSecret{From: from, Until: until}, until, false},
	} {
		if got := tt.secret.ActiveAt(tt.at); got != tt.want {
			t.Errorf("%s: active %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A chain of any length is fine as long as no moment sees three (R39).
func TestHandOversAreNoCrowd(t *testing.T) {
	day := func(n int) time.Time { return moment(t, "2026-01-01T00:00:00Z").AddDate(0, 0, n) }
	var chain []config.DatedSecret
	for n := range 10 {
		// Each overlaps the next by a day and ends as the one after that begins.
		chain = append(chain, config.DatedSecret{Key: secret(t, fmt.Sprint("k", n)), From: day(n), Until: day(n + 2)})
	}
	c := config.Default()
	up := config.DefaultUpstream()
	up.Preset, up.WebhookKeys = "p", chain
	c.Upstreams = map[string]config.Upstream{"s": up}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	chain[4].Until = chain[4].Until.Add(1)
	err := c.Validate()
	if err == nil || !strings.Contains(err.Error(), "upstreams.s.webhook_keys[6]: is a third secret") {
		t.Errorf("got %v", err)
	}
}
