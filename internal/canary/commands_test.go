package canary_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/cli"
)

// commands runs the command line against the node, well and badly.
func (w *world) commands() {
	state := w.TempDir()
	env := map[string]string{"PAWL_SERVER": w.node.APIURL(), "PAWL_KEY": theAdminKey, "PAWL_STATE_DIR": state}
	run := func(want int, s sink, args ...string) {
		w.Helper()
		w.command(want, s, env, "", args...)
	}
	one := func(path string) string {
		return fmt.Sprint(items(w.need(http.StatusOK, w.call(w.reader, http.MethodGet, strings.Split(path, "?")[0], path, nil)))[0]["id"])
	}
	done, failed := one("/v1/operations?state=succeeded"), one("/v1/operations?state=failed")
	outbound, inbound := one("/v1/events?direction=outbound&operation="+done), one("/v1/events?direction=inbound&verdict=applied")
	dead := one("/v1/deliveries?state=dead")
	for _, json := range []string{"--json", ""} {
		with := func(args ...string) []string {
			if json != "" {
				args = append(args, json)
			}
			return args
		}
		run(0, "pawl op get", with("op", "get", done)...)
		run(0, "pawl op get", with("op", "get", failed)...)
		run(0, "pawl op timeline", with("op", "timeline", failed)...)
		run(0, "pawl event show", with("event", "show", outbound)...)
		run(0, "pawl event show inbound", with("event", "show", inbound)...)
		run(0, "pawl event list", with("event", "list")...)
		run(0, "pawl delivery list", with("delivery", "list", "--state", "dead")...)
		run(0, "pawl delivery get", with("delivery", "get", dead)...)
		run(0, "pawl delivery attempts", with("delivery", "attempts", dead)...)
		run(0, "pawl review list", with("review", "list")...)
		run(0, "pawl endpoint list", with("endpoint", "list")...)
		run(0, "pawl account list", with("account", "list")...)
		run(0, "pawl key list", with("key", "list")...)
		run(0, "pawl upstream list", with("upstream", "list")...)
	}
	run(0, "pawl op list", "op", "list", "--page-size", "200")
	run(0, "pawl op list --json", "op", "list", "--page-size", "200", "--json")
	run(0, "pawl op submit", "op", "submit", "--upstream", "up", "--model", "m", "--input", `{"prompt":"`+thePrompt+`","do":"wait"}`,
		"--metadata", "customer="+theMetadata, "--callback-url", callbackAt(w.receiver.URL), "--idempotency-key", theKey+"-cli", "--json")
	shown := w.command(0, "pawl endpoint create", env, "", "endpoint", "create", endpointAt(w.receiver.URL, "ok"), "--types", "operation.corrected")
	w.add(endpointSecret, regexp.MustCompile(`whsec_(\S+)`).FindStringSubmatch(shown)[1])
	// Refused by the server, and by the command line.
	run(1, "pawl", "op", "submit", "--upstream", theRefused, "--model", "m", "--input", `{"prompt":"`+thePrompt+`"}`, "--idempotency-key", theKey+"-cli2")
	run(1, "pawl", "op", "get", theRefused)
	run(1, "pawl", "endpoint", "create", "ftp://u:"+theRefused+"@h.example/"+theEndpointPath)
	run(2, "pawl", "op", "submit", "--upstream", "up", "--model", "m", "--input", `{"prompt":"`+thePrompt)
	run(2, "pawl", "op", "submit", "--upstream", "up", "--model", "m", "--input", `{}`, "--expected-cost", theRefused)
	run(2, "pawl", "op", "submit", "--upstream", "up", "--model", "m", "--input", `{}`, "--deadline", theRefused)
	run(2, "pawl", "op", "list", "--server", "http://u:"+theRefused+"@127.0.0.1:1")
	run(2, "pawl", "op", "list", "--key", theAdminKey+" "+theAdminKey)
	run(1, "pawl", "op", "list", "--key", theAdminKey+"x")
	run(3, "pawl", "op", "list", "--server", "http://"+closedPort(w.T), "--metadata", "customer="+theMetadata)
	run(3, "pawl", "op", "submit", "--server", "http://"+closedPort(w.T), "--upstream", "up", "--model", "m", "--input", `{"prompt":"`+thePrompt+`"}`,
		"--callback-url", callbackAt(w.receiver.URL), "--retry", "1", "--idempotency-key", theKey+"-cli3")
	// A credential in the wrong place of the command line.
	run(2, "pawl", "op", "list", theAdminKey)
	run(2, "pawl", "op", "list", "--page-size", theAdminKey)
	run(2, "pawl", theAdminKey)
	run(2, "pawl", "op", "list", "--"+theAdminKey)
	run(2, "pawl", "verify", "--scheme", "standard-webhooks", "--now", theEndpointSecret)
	w.signatures(run)
	w.ledgerCheck(run)
	// What the command line keeps between two runs.
	_ = filepath.WalkDir(state, func(path string, _ os.DirEntry, _ error) error {
		text, _ := os.ReadFile(path)
		w.look("memory of the command line", path+"\n"+string(text))
		return nil
	})
}

// signatures signs and verifies a body of its own.
func (w *world) signatures(run func(int, sink, ...string)) {
	body := filepath.Join(w.TempDir(), "body.json")
	if err := os.WriteFile(body, []byte(`{"prompt":"`+thePrompt+`","data":{"taskId":"t"}}`), 0o600); err != nil {
		w.Fatal(err)
	}
	for _, scheme := range []string{"standard-webhooks", "media-v2", "body-timestamp"} {
		run(0, "pawl sign", "sign", "--scheme", scheme, "--secret", theEndpointSecret, "--id", "msg_1", "--timestamp", "1780000000", "--body", body)
		for _, header := range []string{"webhook-signature: v1," + theForged, "X-Webhook-Signature: sha256=" + theForged, "X-Webhook-Signature: " + theForged, theForged} {
			args := []string{"verify", "--scheme", scheme, "--secret", theEndpointSecret, "--header", header, "--header", "webhook-id: msg_1",
				"--header", "webhook-timestamp: 1780000000", "--header", "X-Webhook-Timestamp: 1780000000", "--now", "1780000000", "--body", body}
			want := 1
			if header == theForged {
				want = 2
			}
			run(want, "pawl verify", args...)
			run(want, "pawl verify", append(args, "--json")...)
		}
		run(1, "pawl verify", "verify", "--scheme", scheme, "--secret", " "+theEndpointSecret, "--body", body)
		run(1, "pawl verify", "verify", "--scheme", "standard-webhooks", "--secret", "whsec_"+theRefused, "--body", body)
	}
	for _, key := range []string{"whsk_" + theRefused, "whpk_" + theRefused, "whsec_" + theRefused} {
		run(1, "pawl verify", "verify", "--scheme", "standard-webhooks-v1a", "--secret", key, "--body", body)
		run(1, "pawl verify", "verify", "--scheme", "standard-webhooks-v1a", "--public-key", key, "--body", body)
		run(1, "pawl sign", "sign", "--scheme", "standard-webhooks-v1a", "--secret", key, "--id", "msg_1", "--body", body)
	}
	run(2, "pawl verify", "verify", "--scheme", theRefused, "--secret", theEndpointSecret, "--body", body)
}

// ledgerCheck checks the ledger while it runs.
func (w *world) ledgerCheck(run func(int, sink, ...string)) {
	run(0, "pawl ledger check", "ledger", "check", "--data", w.dir)
	run(0, "pawl ledger check", "ledger", "check", "--data", w.dir, "--json")
	run(1, "pawl ledger check", "ledger", "check", "--data", filepath.Join(w.dir, "nothing"))
}

// command runs one command; its standard output is the sink, its standard
// error belongs to nobody.
func (w *world) command(want int, s sink, env map[string]string, stdin string, args ...string) string {
	w.Helper()
	var out, errs bytes.Buffer
	status := cli.Main(context.WithoutCancel(w.Context()), args, cli.Env{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Now: time.Now,
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	w.look(s, out.String())
	w.look(stderr, errs.String())
	if status != want {
		w.Errorf("pawl %.80q: exit status %d, want %d: %s%s", args, status, want, out.String(), errs.String())
	}
	return out.String()
}
