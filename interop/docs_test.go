package interop

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// The verifier in docs/signatures.md does what it says.
func TestVerifierInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/signatures.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```js\n")
	program, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no JavaScript in docs/signatures.md")
	}
	const at = 1790000000
	sign := func(names ...string) string {
		scheme, _ := webhook.Lookup("standard-webhooks")
		var keys []webhook.Key
		for _, secret := range names {
			key, err := scheme.ForSecret(secret).ParseKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		h, err := scheme.Sign(webhook.Message{ID: "evt_9", Timestamp: at, Body: []byte(body)}, keys...)
		if err != nil {
			t.Fatal(err)
		}
		return h.Get("webhook-signature")
	}
	v1, v1a := secrets["standard-webhooks"], secrets["standard-webhooks-v1a"]
	call := func(signature string, sent string, now int, keys string) string {
		return fmt.Sprintf("console.log(verifyV1a(Buffer.from(%q), {\"webhook-id\": \"evt_9\", \"webhook-timestamp\": \"%d\", \"webhook-signature\": %q}, %s, %d));\n",
			sent, at, signature, keys, now)
	}
	one, two := fmt.Sprintf("[%q]", publicKey), fmt.Sprintf("[%q, %q]", nextPublicKey, publicKey)
	var want []string
	for _, c := range []struct {
		call string
		want bool
	}{
		{call(sign(v1a), body, at, one), true},
		{call(sign(v1, v1a), body, at, one), true},
		{call(sign(nextKey, v1a), body, at+300, two), true},
		{call(sign(nextKey), body, at, one), false},
		{call(sign(v1), body, at, one), false},
		{call(sign(v1a), body+" ", at, one), false},
		{call(sign(v1a), body, at+301, one), false},
		{call(sign(v1a), body, at-301, one), false},
	} {
		program += c.call
		want = append(want, fmt.Sprint(c.want))
	}
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module")
	cmd.Stdin, cmd.WaitDelay = strings.NewReader(program), time.Second
	out, err := cmd.Output()
	if got := strings.Fields(string(out)); err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// The verifiers in docs/fronts.md do what they say.
func TestFrontVerifiersInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/fronts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```js\n")
	program, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no JavaScript in docs/fronts.md")
	}
	const secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	var want []string
	for name, function := range map[string]string{"media-v2": "verifyMediaV2", "body-timestamp": "verifyBodyTimestamp"} {
		scheme, _ := webhook.Lookup(name)
		key, err := scheme.ParseKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			age  time.Duration
			sent string
			with string
			want bool
		}{
			{0, body, secret, true}, {290 * time.Second, body, secret, true},
			{0, strings.Replace(body, "1.0", "1.1", 1), secret, false}, {0, body + " ", secret, false},
			{0, body, strings.TrimPrefix(secret, "whsec_"), false}, {310 * time.Second, body, secret, false}, {-310 * time.Second, body, secret, false},
		} {
			h, err := scheme.Sign(webhook.Message{ID: "evt_9", Timestamp: time.Now().Add(-c.age).Unix(), Body: []byte(body)}, key)
			if err != nil {
				t.Fatal(err)
			}
			program += fmt.Sprintf("console.log(%s(Buffer.from(%q), {\"x-webhook-timestamp\": %q, \"x-webhook-signature\": %q}, %q));\n",
				function, c.sent, h.Get("X-Webhook-Timestamp"), h.Get("X-Webhook-Signature"), c.with)
			want = append(want, fmt.Sprint(c.want))
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module")
	cmd.Stdin, cmd.WaitDelay = strings.NewReader(program), time.Second
	out, err := cmd.Output()
	if got := strings.Fields(string(out)); err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
