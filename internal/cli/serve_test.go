package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/configuration.md: whatever is wrong is told at once, faults that only
// providers' descriptions show among them, each key once.
func TestEveryFaultOfAConfigurationAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pawl.yaml")
	text := `upstreams:
  a:
    preset: nosuch
  b:
    preset: media-v2
    base_url: https://b.example.com
    key: ${UNSET_ONE}
    webhook_keys: [{key: "${UNSET_TWO}"}, " spaced"]
    speed: 9
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newWorld(t, "").run("serve", "--config", file, "--data", filepath.Join(t.TempDir(), "d"))
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	want := []string{"upstreams.a.preset: ", "upstreams.b.key: ", "upstreams.b.webhook_keys[0].key: ", "upstreams.b.webhook_keys[1]: ", "upstreams.b.speed: "}
	if r.status != ExitFailed || len(lines) != len(want) {
		t.Fatalf("status %d, %d lines: %s", r.status, len(lines), r.stderr)
	}
	for _, key := range want {
		if !strings.Contains(r.stderr, key) {
			t.Errorf("%s is not told: %s", key, r.stderr)
		}
	}
}
