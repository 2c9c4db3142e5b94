package canary_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/upstream"
)

// written is a configuration with its secrets in place, as careless people
// write it.
const written = `upstreams:
  up:
    preset: sim
    base_url: http://h
    key: ` + theConfigured + `
    webhook_keys: ["whsec_` + theProviderSecretText + `", whsec_` + theProviderSecretText + `]
  b: {preset: sim, base_url: http://h, key: "` + theConfigured + `"}
`

// Whatever is broken in a configuration, no problem repeats a secret: one
// character is lost, or one is put in, at every place of the file.
func TestBrokenConfiguration(t *testing.T) {
	w := newWatch(t)
	broken := 0
	try := func(text string) {
		if _, err := config.Parse("pawl.yaml", []byte(text), noEnvironment); err != nil {
			broken++
			w.look(startError, err.Error())
		}
	}
	for at := range len(written) {
		try(written[:at] + written[at+1:])
		for _, c := range "\"'{[]:#&*!|%,-\n\t" {
			try(written[:at] + string(c) + written[at:])
		}
	}
	if broken < len(written) {
		t.Errorf("only %d texts were refused", broken)
	}
	w.judge(nil)
}

func noEnvironment(string) (string, bool) { return "", false }

// Values that come from elsewhere and do not fit are not repeated either, nor
// are files that are no configuration.
func TestUnfitValues(t *testing.T) {
	w := newWatch(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte(theConfigured+" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"whsec_" + theConfigured, " " + theConfigured, theConfigured + "\n", theConfigured + "\x07", "\xff" + theConfigured, "${" + theConfigured + "}", theConfigured} {
		env := func(name string) (string, bool) { return value, name == "V" }
		for _, setting := range []string{
			"listen", "public_url", "data", "database", "drain", "secrets", "upstreams.up.base_url", "upstreams.up.preset", "upstreams.up.deadline", "upstreams.up.currency",
			"upstreams.up.concurrency", "upstreams.up.key", "upstreams.up.webhook_keys", "egress.allow", "idempotency.window",
		} {
			for _, reference := range []string{`"${V}"`, `"${file:` + file + `}"`, `["${V}"]`, `{"x": "${V}"}`, fmt.Sprintf("%q", value)} {
				cfg, err := config.Parse("pawl.yaml", []byte(nested(setting, reference)), env)
				if err == nil {
					_, err = upstream.Build(cfg)
				}
				if err != nil {
					w.look(startError, err.Error())
				}
			}
		}
	}
	for _, text := range []string{theConfigured, "- " + theConfigured, theAdminKey, "-----BEGIN KEY-----\n" + theConfigured + "\n-----END KEY-----\n"} {
		if _, err := config.Parse("pawl.yaml", []byte(text), noEnvironment); err == nil {
			t.Errorf("%q was taken", text)
		} else {
			w.look(startError, err.Error())
		}
	}
	w.judge(nil)
}

// nested writes a.b.c: value as a flow mapping.
func nested(setting, value string) string {
	for i := len(setting) - 1; i >= 0; i-- {
		if setting[i] == '.' {
			return nested(setting[:i], "{"+setting[i+1:]+": "+value+"}")
		}
	}
	return setting + ": " + value + "\n"
}
