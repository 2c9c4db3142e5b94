package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/pawlhq/pawl/internal/config"
)

// holder is a foreign struct: fmt does not ask unexported fields for their form.
type holder struct {
	Public  config.Secret
	private config.Secret
}

func TestSecretDoesNotPrint(t *testing.T) {
	const canary = "SEKRIT1"
	s := secret(t, canary)
	h := holder{s, s}
	values := []any{s, &s, h, &h, []config.Secret{s}, map[string]config.Secret{"a": s}, h.private}
	var out strings.Builder
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
			text, err := encode(v)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(text)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
		out.Write(log.Bytes())
	}
	if text := out.String(); strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) {
		t.Errorf("the secret is printed:\n%s", text)
	}
	if got := fmt.Sprint(s); got != "[redacted]" {
		t.Errorf("got %q", got)
	}
	if s.Reveal() != canary {
		t.Errorf("Reveal gives %q", s.Reveal())
	}
}

func TestSecretZeroAndEqual(t *testing.T) {
	var none config.Secret
	if !none.IsZero() || none.Reveal() != "" || fmt.Sprint(none) != "" {
		t.Error("the zero secret is not empty")
	}
	if a, b := secret(t, "a"), secret(t, "a"); !a.Equal(b) || a.Equal(secret(t, "b")) || a.Equal(none) {
		t.Error("Equal compares something else than the text")
	}
}
