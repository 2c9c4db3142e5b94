package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The published example of Standard Webhooks and Svix (4-standards §20).
const (
	exampleSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleBody      = `{"test": 2432232314}`
	exampleSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

// Its Ed25519 counterpart, made with the key pair that the specification prints.
const (
	exampleSigning      = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	examplePublic       = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	exampleV1aSignature = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
)

func exampleV1a(more ...string) []string {
	return exampleArgs(append([]string{"--scheme", "standard-webhooks-v1a", "--header", "webhook-signature: " + exampleV1aSignature}, more...)...)
}

func exampleArgs(more ...string) []string {
	return append([]string{
		"verify", "--scheme", "standard-webhooks", "--now", "1614265330",
		"--header", "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek", "--header", "Webhook-Timestamp:1614265330",
	}, more...)
}

func TestVerify(t *testing.T) {
	signature := []string{"--header", "webhook-signature: " + exampleSignature}
	good := append(signature, "--secret", exampleSecret)
	for _, tt := range []struct {
		name   string
		args   []string
		body   string
		status int
		stdout string
		stderr string
	}{
		{"good", exampleArgs(good...), exampleBody, ExitDone, "valid id msg_p5jXN8AQM9LWM0D4loKWxJek", ""},
		{"good as JSON", exampleArgs(append(good, "--json")...), exampleBody, ExitDone, `"valid":true`, ""},
		{"second secret", exampleArgs(append(signature, "--secret", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "--secret", exampleSecret)...), exampleBody, ExitDone, "secret 2", ""},
		{"changed body", exampleArgs(good...), exampleBody + " ", ExitFailed, "invalid: no_match", ""},
		{"stale", append(exampleArgs(good...), "--now", "1614265631"), exampleBody, ExitFailed, "invalid: stale_timestamp", ""},
		{"stale now", exampleArgs(append(good, "--now", "0")...), exampleBody, ExitFailed, "stale_timestamp", ""},
		{"header twice", exampleArgs(append(good, signature...)...), exampleBody, ExitFailed, "malformed_header", ""},
		{"header missing", exampleArgs("--secret", exampleSecret), exampleBody, ExitFailed, "missing_header", ""},
		{"bad secret", exampleArgs(append(signature, "--secret", "whsec_short")...), exampleBody, ExitFailed, "malformed_key", ""},
		{"no secret", exampleArgs(signature...), exampleBody, ExitUsage, "", "--secret"},
		{"no scheme", []string{"verify", "--secret", "s"}, "", ExitUsage, "", "standard-webhooks"},
		{"unknown scheme", []string{"verify", "--scheme", "fal", "--secret", "s"}, "", ExitUsage, "", "standard-webhooks"},
		{"public key of a scheme without", []string{"verify", "--scheme", "media-v2", "--public-key", examplePublic}, "", ExitUsage, "", "--public-key is for"},
		{"not a public key", exampleArgs("--public-key", "k"), exampleBody, ExitFailed, "malformed_key", ""},
		{"secret key for a public one", exampleArgs("--public-key", exampleSigning), exampleBody, ExitUsage, "", "begins with whpk_"},
		{"v1a by public key", exampleV1a("--public-key", examplePublic), exampleBody, ExitDone, "valid id msg_p5jXN8AQM9LWM0D4loKWxJek", ""},
		{"v1a by public key as secret", exampleV1a("--secret", examplePublic), exampleBody, ExitDone, "valid", ""},
		{"v1a by signing key", exampleV1a("--secret", exampleSigning), exampleBody, ExitDone, "valid", ""},
		{"v1a by the other scheme", exampleArgs("--header", "webhook-signature: "+exampleV1aSignature, "--public-key", examplePublic), exampleBody, ExitDone, "valid", ""},
		{"v1a, changed body", exampleV1a("--public-key", examplePublic), exampleBody + " ", ExitFailed, "invalid: no_match", ""},
		{"v1a with a symmetric secret", exampleV1a("--secret", exampleSecret), exampleBody, ExitFailed, "malformed_key", ""},
		{"symmetric with a public key", exampleArgs(append(signature, "--secret", examplePublic)...), exampleBody, ExitFailed, "malformed_key", ""},
		{"mixed list, symmetric", exampleArgs("--header", "webhook-signature: "+exampleV1aSignature+" "+exampleSignature, "--secret", exampleSecret), exampleBody, ExitDone, "secret 1", ""},
		{"mixed list, second key", exampleArgs("--header", "webhook-signature: "+exampleV1aSignature, "--secret", exampleSecret, "--public-key", examplePublic), exampleBody, ExitDone, "secret 2", ""},
		{"v1a without a key", exampleV1a(), exampleBody, ExitUsage, "", "--secret"},
		{"jwks", exampleArgs("--jwks", "f"), "", ExitUsage, "", "--jwks"},
		{"not a header", exampleArgs("--secret", exampleSecret, "--header", "nonsense"), "", ExitUsage, "", "Name: value"},
		{"no such body", exampleArgs("--secret", exampleSecret, "--body", "/nonexistent"), "", ExitUsage, "", "--body"},
		{"provider alone", []string{"verify", "--provider", "x"}, "", ExitUsage, "", "--vectors"},
		{"url is taken", exampleArgs(append(good, "--url", "https://a.example")...), exampleBody, ExitDone, "valid", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "")
			w.stdin = strings.NewReader(tt.body)
			r := w.run(tt.args...)
			r.want(t, tt.status, tt.stdout, tt.stderr)
			if strings.Contains(r.stdout+r.stderr, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") || strings.Contains(r.stdout+r.stderr, exampleSigning[5:40]) || strings.Contains(r.stdout+r.stderr, "short") {
				t.Error("a secret was printed")
			}
		})
	}
}

// media-v2 (2-contracts §2): the body names the signed task.
func TestVerifyTask(t *testing.T) {
	body := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(body, []byte(`{"data":{"taskId":"job_1"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "")
	signed := w.run("sign", "--scheme", "media-v2", "--secret", "s3cret", "--timestamp", "1780000000", "--body", body)
	signed.want(t, ExitDone, "X-Webhook-Payload-Version: 2\n", "")
	args := []string{"verify", "--scheme", "media-v2", "--secret", "s3cret", "--body", body, "--now", "1780000300"}
	for line := range strings.Lines(signed.stdout) {
		args = append(args, "--header", strings.TrimSpace(line))
	}
	w.run(append(args, "--task-id", "job_1")...).want(t, ExitDone, "task job_1", "")
	w.run(append(args, "--task-id", "job_2")...).want(t, ExitFailed, "task_mismatch", "")
}

// RFC 9421: the address is signed, two secrets sign side by side, and a public
// key verifies.
func TestMessageSignatures(t *testing.T) {
	body := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(body, []byte(exampleBody), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "")
	const address = "https://app.example.com/hook?a=1"
	sign := []string{"sign", "--scheme", "rfc9421", "--secret", exampleSecret, "--secret", exampleSigning, "--id", "evt_1", "--timestamp", "1780000000", "--body", body}
	w.run(sign...).want(t, ExitFailed, "", "the URL is not absolute")
	signed := w.run(append(sign, "--url", address)...)
	signed.want(t, ExitDone, "Signature: sig1=:", "")
	args := []string{"verify", "--scheme", "rfc9421", "--body", body, "--now", "1780000300"}
	for line := range strings.Lines(signed.stdout) {
		args = append(args, "--header", strings.TrimSpace(line))
	}
	w.run(append(args, "--secret", exampleSecret, "--url", address)...).want(t, ExitDone, "valid id evt_1", "")
	w.run(append(args, "--public-key", examplePublic, "--url", address)...).want(t, ExitDone, "valid id evt_1", "")
	w.run(append(args, "--secret", exampleSecret, "--url", address+"2")...).want(t, ExitFailed, "no_match", "")
	w.run(append(args, "--secret", exampleSecret)...).want(t, ExitFailed, "no_url", "")
	// The same as a vector.
	headers := map[string]string{}
	for line := range strings.Lines(signed.stdout) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		headers[name] = value
	}
	vectors := map[string]any{"vectors": []map[string]any{
		{"id": "good", "provider": "rfc9421", "secret": exampleSecret, "headers": headers, "body_base64": []byte(exampleBody), "now_unix": 1780000000, "url": address, "expect": "valid"},
		{"id": "late", "provider": "rfc9421", "secret": exampleSecret, "headers": headers, "body_base64": []byte(exampleBody), "now_unix": 1780000301, "url": address, "expect": "invalid"},
	}}
	text, err := json.Marshal(vectors)
	if err != nil {
		t.Fatal(err)
	}
	w.stdin = strings.NewReader(string(text))
	w.run("verify", "--vectors", "-", "--provider", "rfc9421").want(t, ExitDone, "2 passed, 0 failed", "")
}

func TestSign(t *testing.T) {
	w := newWorld(t, "")
	args := []string{"sign", "--scheme", "standard-webhooks", "--secret", exampleSecret, "--id", "msg_p5jXN8AQM9LWM0D4loKWxJek"}
	w.stdin = strings.NewReader(exampleBody)
	r := w.run(append(args, "--timestamp", "1614265330")...)
	want := "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek\nwebhook-signature: " + exampleSignature + "\nwebhook-timestamp: 1614265330\n"
	if r.status != ExitDone || r.stdout != want {
		t.Errorf("status %d, got\n%s", r.status, r.stdout)
	}
	w.stdin = strings.NewReader(exampleBody)
	signed := w.run("sign", "--scheme", "standard-webhooks-v1a", "--secret", exampleSigning, "--id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "--timestamp", "1614265330")
	signed.want(t, ExitDone, "webhook-signature: "+exampleV1aSignature+"\n", "")
	w.stdin = strings.NewReader(exampleBody)
	mixed := w.run(append(args, "--secret", exampleSigning, "--timestamp", "1614265330")...)
	mixed.want(t, ExitDone, "webhook-signature: "+exampleSignature+" "+exampleV1aSignature+"\n", "")
	w.stdin = strings.NewReader(exampleBody)
	w.run("sign", "--scheme", "standard-webhooks-v1a", "--secret", examplePublic, "--id", "m").want(t, ExitFailed, "", "cannot sign")
	w.stdin = strings.NewReader(exampleBody)
	w.run(args...).want(t, ExitDone, "webhook-timestamp: 1780000000\n", "") // The test's clock.
	w.stdin = strings.NewReader(exampleBody)
	w.run("sign", "--scheme", "standard-webhooks", "--secret", exampleSecret, "--id", "a.b").want(t, ExitFailed, "", "malformed_message")
}

// What senders of generic sources sign is made and checked by hand too; GitHub
// signs no time.
func TestSendersSchemes(t *testing.T) {
	w := newWorld(t, "")
	for scheme, said := range map[string]string{"stripe": "valid timestamp 2026-05-28T20:26:40Z secret 1\n", "github": "valid secret 1\n"} {
		w.stdin = strings.NewReader(exampleBody)
		signed := w.run("sign", "--scheme", scheme, "--secret", "x", "--id", "d1", "--timestamp", "1780000000")
		args := []string{"verify", "--scheme", scheme, "--secret", "x", "--now", "1780000000"}
		for line := range strings.Lines(signed.stdout) {
			args = append(args, "--header", strings.TrimSpace(line))
		}
		w.stdin = strings.NewReader(exampleBody)
		w.run(args...).want(t, ExitDone, said, "")
		w.stdin = strings.NewReader(exampleBody + " ")
		w.run(args...).want(t, ExitFailed, "no_match", "")
	}
}

func TestVectors(t *testing.T) {
	const file = "../../webhook/testdata/vectors.json"
	w := newWorld(t, "")
	r := w.run("verify", "--vectors", file)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.status != ExitDone || len(lines) != 79 || lines[78] != "78 passed, 0 failed" {
		t.Errorf("status %d, last line %q", r.status, lines[len(lines)-1])
	}
	if lines[0] != "standard-webhooks/valid valid valid" {
		t.Errorf("first line %q", lines[0])
	}
	r = w.run("verify", "--vectors", file, "--provider", "media-v2")
	if n := strings.Count(r.stdout, "media-v2/"); r.status != ExitDone || n == 0 || n != strings.Count(r.stdout, "\n")-1 {
		t.Errorf("status %d, %d lines of media-v2 in\n%s", r.status, n, r.stdout)
	}
	w.run("verify", "--vectors", file, "--provider", "nobody").want(t, ExitFailed, "0 passed, 0 failed", "no vector")
	w.run("verify", "--vectors", "/nonexistent").want(t, ExitUsage, "", "--vectors")
}

// An unknown provider and a wrong answer are both failures.
func TestFailingVectors(t *testing.T) {
	text, err := json.Marshal(map[string]any{"vectors": []map[string]any{
		{"id": "a", "provider": "nobody", "secret": "s", "expect": "invalid"},
		{"id": "b", "provider": "body-timestamp", "secret": "s", "expect": "valid"},
		{"id": "c", "provider": "body-timestamp", "secret": "s", "expect": "invalid"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "")
	w.stdin = strings.NewReader(string(text))
	r := w.run("verify", "--vectors", "-")
	if want := "a invalid unknown\nb valid invalid\nc invalid invalid\n1 passed, 2 failed\n"; r.status != ExitFailed || r.stdout != want {
		t.Errorf("status %d, got\n%s", r.status, r.stdout)
	}
	w.stdin = strings.NewReader(string(text))
	r = w.run("verify", "--json", "--vectors", "-")
	var got, want any
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, r.stdout)
	}
	_ = json.Unmarshal([]byte(`{"vectors":[{"id":"a","expected":"invalid","got":"unknown"},{"id":"b","expected":"valid","got":"invalid"},`+
		`{"id":"c","expected":"invalid","got":"invalid"}],"passed":1,"failed":2}`), &want)
	if diff := cmp.Diff(want, got); diff != "" || r.status != ExitFailed {
		t.Errorf("status %d: %s", r.status, diff)
	}
}
