package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/webhook"
)

// White space around a secret is refused at set-up, whichever way it came. The
// one line break that ends a file is the file's.
func TestO037WhitespaceInTheSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	for _, secret := range []string{"s3cret\n", " s3cret", "s3cret ", "\ts3cret"} {
		env := func(string) (string, bool) { return secret, true }
		file := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for way, text := range map[string]string{"env": "${SECRET}", "file": "${file:" + file + "}", "text": secret} {
			_, err := config.Parse("p.yaml", fmt.Appendf(nil, "sources: {s: {scheme: github, secrets: [%q]}}", text), env)
			var problems config.Problems
			if !errors.As(err, &problems) || !strings.Contains(err.Error(), "sources.s.secrets[0]: the secret has whitespace around it") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q by %s: %v", secret, way, err)
			}
		}
		for _, scheme := range []string{"standard-webhooks", "media-v2", "body-timestamp"} {
			r := w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": w.sink.url, "scheme": scheme, "secret": secret})
			if r.status != http.StatusBadRequest || !strings.Contains(r.body, "white space around it") || strings.Contains(r.body, "s3cret") {
				t.Errorf("%q by the API, %s: %d %s", secret, scheme, r.status, r.body)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("p.yaml", []byte("sources: {s: {scheme: github, secrets: [\"${file:"+file+"}\"]}}"), os.LookupEnv)
	if err != nil || cfg.Sources["s"].Secrets[0].Key.Reveal() != "s3cret" {
		t.Errorf("a file with its line break: %v", err)
	}
}

// proxied are names that every proxy passes on.
var proxied = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// What we send has letters, digits and hyphens for names, and so must have what
// a configuration asks for. Of a request whose signature a proxy has dropped, the
// refusal says which header was absent; letter case is nothing.
func TestO038HeaderNamesThatProxiesDrop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	taken := new(tape)
	url := w.serve(taken)
	schemes := []string{"standard-webhooks", "standard-webhooks-v1a", "media-v2", "body-timestamp", "rfc9421"}
	for _, scheme := range schemes {
		w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": url, "scheme": scheme}))
	}
	op, c := w.running("k")
	w.finish(op, c)
	w.deliveries(op, 2*len(schemes)-1, "delivered") // media-v2 is told of the end alone (7-rules R43)
	for _, d := range taken.all() {
		for name := range d.header {
			if !proxied.MatchString(name) {
				t.Errorf("%q is sent", name)
			}
		}
	}
	for _, yaml := range []string{"headers: [X_Sig]", `type: "header:X_Sig"`} {
		cfg, err := config.Parse("p.yaml", []byte("sources: {s: {scheme: github, secrets: [s3cret], "+yaml+"}}"), os.LookupEnv)
		if err == nil {
			_, err = sender.Build(cfg)
		}
		if err == nil || !strings.Contains(err.Error(), "sources.s.") {
			t.Errorf("%s: %v", yaml, err)
		}
	}
	for _, name := range webhook.Names() {
		s, _ := webhook.Lookup(name)
		for _, header := range s.Headers() {
			if !proxied.MatchString(header) {
				t.Errorf("scheme %s reads %q", name, header)
			}
		}
	}

	h := http.Header{"stripe-signature": {signedAs(t, paidBody("evt_1")).Get("Stripe-Signature")}}
	w.want(http.StatusAccepted, w.send(http.MethodPost, w.node.APIURL()+"/hooks/payments", paidBody("evt_1"), h))
	h = http.Header{"Stripe_signature": {"t=1,v1=canary"}}
	if r := w.send(http.MethodPost, w.node.APIURL()+"/hooks/payments", paidBody("evt_2"), h); r.status != http.StatusUnauthorized || r.at("reason") != "missing_header" {
		t.Errorf("%d %s", r.status, r.body)
	}
	samples := w.get("/v1/sources/payments").list("samples")
	if len(samples) != 1 || samples[0].at("absent") != "[Stripe-Signature]" || samples[0].at("headers") != "[]" {
		t.Errorf("samples %v", samples)
	}
	if log := w.log.String(); !strings.Contains(log, `"absent":["Stripe-Signature"]`) || strings.Contains(log, "canary") {
		t.Errorf("the log does not name the header: %s", log)
	}
}
