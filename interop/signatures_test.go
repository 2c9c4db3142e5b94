package interop

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// secrets of each scheme, made up for these tests; that of v1a is the key pair of
// the Standard Webhooks specification, whose public half is publicKey.
var secrets = map[string]string{
	"standard-webhooks":     "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef")),
	"standard-webhooks-v1a": "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
	"media-v2":              "a key of the media kind",
	"body-timestamp":        "ключ задачи",
}

const publicKey = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="

// The key pair of the first vector of RFC 8032 §7.1, to rotate to.
const (
	nextKey       = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg=="
	nextPublicKey = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
)

const body = "{ \"id\":\"evt_9\", \"type\":\"ai.task.completed\", \"n\":1.0,\"text\":\"Plaça 🎬 \\u00e9 <&>\",\n \"data\":{\"taskId\":\"job_1\",\"task_id\":\"task_1\"} }\n"

func TestMain(m *testing.M) {
	for _, name := range []string{"standardwebhooks", "@hey-api/openapi-ts", "typescript"} {
		if _, err := os.Stat("node/node_modules/" + name); err != nil {
			_, _ = os.Stderr.WriteString("interop: the Node packages are missing; run the tests by `make test`, or `npm ci` in interop/node first\n")
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// What Node's crypto signs by the text of each scheme verifies here.
func TestNodeSignsAndPawlVerifies(t *testing.T) {
	now := time.Unix(1790000000, 0)
	for name, secret := range secrets {
		t.Run(name, func(t *testing.T) {
			message, err := json.Marshal(map[string]string{
				"scheme": name, "secret": secret, "id": "evt_9", "timestamp": "1790000000",
				"body": base64.StdEncoding.EncodeToString([]byte(body)),
			})
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "node", "node/sign.mjs", string(message)).Output()
			if err != nil {
				t.Fatalf("node: %v", err)
			}
			var headers map[string]string
			if err := json.Unmarshal(out, &headers); err != nil {
				t.Fatal(err)
			}
			h := make(http.Header)
			for k, v := range headers {
				h.Set(k, v)
			}
			scheme, _ := webhook.Lookup(name)
			if name == "standard-webhooks-v1a" {
				secret = publicKey // What a receiver has.
			}
			key, err := scheme.ParseKey(secret)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := scheme.Verify(webhook.Request{Header: h, Body: []byte(body)}, now, key); err != nil {
				t.Errorf("a signature made by Node is refused: %v", err)
			}
			changed := []byte(body)
			changed[len(changed)/2] ^= 1
			if _, err := scheme.Verify(webhook.Request{Header: h, Body: changed}, now, key); err == nil {
				t.Error("one changed bit is accepted")
			}
		})
	}
}
