package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// A Node program that knows the dialects alone is served by both fronts, and
// verifies their callbacks with the text of the API key's webhook secret.
func TestFrontsUnderNode(t *testing.T) {
	n := startNode(t)
	var key struct {
		Secret        string
		WebhookSecret string `json:"webhook_secret"`
	}
	n.post(t, "/v1/keys", "", map[string]any{"tenant": "default", "name": "front", "scopes": []string{"submit", "read"}}, &key)
	asked, err := json.Marshal(map[string]string{"api": n.url, "key": key.Secret, "secret": key.WebhookSecret})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "node/front.mjs", string(asked))
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var out struct {
		Ends map[string]struct {
			Valid, Changed bool
			State          string
		}
		Job    struct{ Status, Code int }
		Task   struct{ Status any }
		Record struct {
			Data struct {
				State   string
				Settled bool
			}
		}
		View struct{ Status string }
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/media", "/task"} {
		if end, ok := out.Ends[path]; !ok || !end.Valid || end.Changed {
			t.Errorf("%s: %+v", path, end)
		}
	}
	if out.Job.Status != 200 || out.Job.Code != 200 || out.Task.Status != "pending" {
		t.Errorf("%s", text)
	}
	if !out.Record.Data.Settled || out.Record.Data.State != out.Ends["/media"].State || out.View.Status != out.Ends["/task"].State {
		t.Errorf("reads and callbacks differ: %s", text)
	}
}
