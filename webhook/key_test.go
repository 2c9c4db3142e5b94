package webhook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/webhook"
)

func whsec(n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, n))
}

func TestParseKey(t *testing.T) {
	const (
		standard = "standard-webhooks"
		text     = "media-v2"
	)
	for _, tt := range []struct {
		name, scheme, secret string
		ok                   bool
	}{
		{"24 bytes", standard, whsec(24), true},
		{"64 bytes", standard, whsec(64), true},
		{"without prefix", standard, strings.TrimPrefix(whsec(32), "whsec_"), true},
		{"23 bytes", standard, whsec(23), false},
		{"65 bytes", standard, whsec(65), false},
		{"prefix only", standard, "whsec_", false},
		{"prefix twice", standard, "whsec_" + whsec(32), false},
		{"prefix in upper case", standard, strings.Replace(whsec(32), "whsec_", "WHSEC_", 1), false},
		{"no padding", standard, strings.TrimRight(whsec(32), "="), false},
		{"url alphabet", standard, strings.NewReplacer("+", "-", "/", "_").Replace(whsec(33)), false},
		{"line break inside", standard, whsec(32)[:20] + "\n" + whsec(32)[20:], false},
		{"stray bits", standard, "whsec_" + strings.Repeat("A", 42) + "B=", false},
		{"private Ed25519", standard, "whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 64)), false},
		{"public Ed25519", standard, "whpk_" + base64.StdEncoding.EncodeToString(make([]byte, 32)), false},
		{"text", text, "key-for-media-v2", true},
		{"text with prefix", text, whsec(32), true},
		{"inner space", text, "pass phrase", true},
		{"one character", text, "k", true},
		{"public Ed25519 as text", text, "whpk_" + base64.StdEncoding.EncodeToString(make([]byte, 32)), false},
		{"empty", text, "", false},
		{"empty", standard, "", false},
		{"blank", text, " \t\n", false},
		{"final newline (O-037)", text, "s3cret\n", false},
		{"leading space (O-037)", text, " s3cret", false},
		{"final newline (O-037)", standard, whsec(32) + "\n", false},
		{"no-break space", text, "s3cret\u00a0", false},
		{"NUL", text, "s3\x00cret", false},
	} {
		s := lookup(t, tt.scheme)
		_, err := s.ParseKey(tt.secret)
		if tt.ok != (err == nil) || !tt.ok && !errors.Is(err, webhook.ReasonMalformedKey) {
			t.Errorf("%s, %s: %v", tt.scheme, tt.name, err)
		}
		if err != nil && len(tt.secret) > 8 && strings.Contains(err.Error(), tt.secret[6:]) {
			t.Errorf("%s, %s: secret shown: %v", tt.scheme, tt.name, err)
		}
	}
	if _, err := (webhook.Scheme{}).ParseKey(whsec(32)); !errors.Is(err, webhook.ReasonUnknownScheme) {
		t.Errorf("zero scheme: %v", err)
	}
}

// O-030: the same text is another key for another scheme; nothing is guessed.
func TestKeyEncodingIsTheSchemes(t *testing.T) {
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(rawSecret))
	for _, d := range dialects {
		s := lookup(t, d.name)
		if d.name == "standard-webhooks-v1a" {
			if _, err := s.ParseKey(secret); !errors.Is(err, webhook.ReasonMalformedKey) {
				t.Errorf("a symmetric secret as an Ed25519 key: %v", err)
			}
			continue
		}
		_, err := s.Verify(d.fresh(), now, parse(t, s, secret))
		if decodes := d.name == "standard-webhooks"; (err == nil) != decodes {
			t.Errorf("%s: signed with the decoded secret: %v", d.name, err)
		}
	}
}

func TestKeyIsNeverShown(t *testing.T) {
	const secret = "canary-secret"
	k := parse(t, lookup(t, "media-v2"), secret)
	type holder struct {
		Public  webhook.Key
		private webhook.Key
		Pointer *webhook.Key
		List    []webhook.Key
		Map     map[string]webhook.Key
	}
	held := holder{k, k, &k, []webhook.Key{k}, map[string]webhook.Key{"a": k}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%t", "%T", "%20v", "%!"} {
		fmt.Fprintf(&out, verb+"\n", k)
		fmt.Fprintf(&out, verb+"\n", &k)
		fmt.Fprintf(&out, verb+"\n", held)
	}
	fmt.Fprintln(&out, k.String(), k.GoString(), fmt.Errorf("wrapped: %v", k))
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("canary", "key", k, "held", held, slog.Group("g", "key", &k))
	}
	if err := json.NewEncoder(&out).Encode(held); err != nil {
		t.Fatal(err)
	}
	decimal := strings.Trim(fmt.Sprint([]byte(secret)), "[]")
	for _, hidden := range []string{
		secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret), decimal,
		strings.ReplaceAll(fmt.Sprintf("% #x", secret), " ", ", "), base64.StdEncoding.EncodeToString([]byte(secret)),
	} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("output shows the secret as %q:\n%s", hidden, out.String())
		}
	}
	if got := fmt.Sprintf("%v %+v %#v %s %q", k, k, k, k, k); got != strings.TrimSpace(strings.Repeat("webhook.Key(redacted) ", 5)) {
		t.Errorf("printed %s", got)
	}
}

func TestNewSecret(t *testing.T) {
	// base64 of the 32 ASCII characters of rawSecret, made with coreutils.
	const want = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	got, err := webhook.NewSecret(strings.NewReader(rawSecret))
	if err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := webhook.NewSecret(strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short source: %v", err)
	}
	a, errA := webhook.NewSecret(nil)
	b, errB := webhook.NewSecret(nil)
	if errA != nil || errB != nil || a == b {
		t.Errorf("two secrets: equal %v, errors %v, %v", a == b, errA, errB)
	}
	for _, name := range webhook.Names() {
		if _, err := lookup(t, name).ParseKey(a); (err != nil) != (name == "standard-webhooks-v1a") {
			t.Errorf("%s: %v", name, err)
		}
		secret, err := lookup(t, name).NewSecret(nil)
		if err != nil {
			t.Fatal(err)
		}
		if k := parse(t, lookup(t, name), secret); !k.CanSign() {
			t.Errorf("%s: a fresh secret cannot sign", name)
		}
	}
}
