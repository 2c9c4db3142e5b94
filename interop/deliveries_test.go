package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/sim"
)

const adminKey = "pawl_sk_interop0123456789abcdef0123456789ab"

// received is one line of the Node receiver.
type received struct {
	Path   string
	Valid  bool
	Body   string
	Tokens int
}

// Pawl's deliveries verify under Node: with the official Standard Webhooks
// library, with the old and the new secret while a rotation lasts, and with
// Node's crypto for the other schemes and for v1a, which that library skips. It
// still verifies with its secret while an endpoint goes over to v1a.
func TestDeliveriesVerifyUnderNode(t *testing.T) {
	fresh := "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	base, lines := startReceiver(t, map[string]map[string]string{
		"/v1a":            {"scheme": "standard-webhooks-v1a", "secret": publicKey},
		"/v1a-old":        {"scheme": "standard-webhooks-v1a", "secret": publicKey},
		"/v1a-new":        {"scheme": "standard-webhooks-v1a", "secret": nextPublicKey},
		"/over-old":       {"scheme": "standard-webhooks", "secret": secrets["standard-webhooks"]},
		"/over-new":       {"scheme": "standard-webhooks-v1a", "secret": nextPublicKey},
		"/old":            {"scheme": "standard-webhooks", "secret": secrets["standard-webhooks"]},
		"/new":            {"scheme": "standard-webhooks", "secret": fresh},
		"/media-v2":       {"scheme": "media-v2", "secret": secrets["media-v2"]},
		"/body-timestamp": {"scheme": "body-timestamp", "secret": secrets["body-timestamp"]},
	})
	n := startNode(t)
	rotated := map[string]string{
		"/old": n.endpoint(t, base+"/old", "standard-webhooks", secrets["standard-webhooks"]).ID,
		"/new": n.endpoint(t, base+"/new", "standard-webhooks", secrets["standard-webhooks"]).ID,
	}
	n.endpoint(t, base+"/media-v2", "media-v2", secrets["media-v2"])
	n.endpoint(t, base+"/body-timestamp", "body-timestamp", secrets["body-timestamp"])
	for _, id := range rotated {
		n.post(t, "/v1/endpoints/"+id+"/rotate-secret", "", map[string]any{"secret": fresh}, nil)
	}
	n.asymmetric(t, base)
	n.post(t, "/v1/operations", "interop-1", map[string]any{"upstream": "sim", "model": "m", "input": map[string]any{"n": 0}}, nil)

	// Running and succeeded, at each path.
	missing := map[string]int{
		"/old": 2, "/new": 2, "/media-v2": 2, "/body-timestamp": 2, "/v1a": 2, "/v1a-old": 2, "/v1a-new": 2, "/over-old": 2, "/over-new": 2,
	}
	tokens := map[string]int{"/old": 2, "/new": 2, "/v1a": 1, "/v1a-old": 2, "/v1a-new": 2, "/over-old": 2, "/over-new": 2}
	timeout := time.After(30 * time.Second)
	for len(missing) > 0 {
		select {
		case line := <-lines:
			if !line.Valid {
				t.Fatalf("Node refuses a delivery at %s: %s", line.Path, line.Body)
			}
			if want := tokens[line.Path]; want > 0 && line.Tokens != want {
				t.Errorf("%s: %d signatures, want %d", line.Path, line.Tokens, want)
			}
			if missing[line.Path]--; missing[line.Path] <= 0 {
				delete(missing, line.Path)
			}
		case <-timeout:
			t.Fatalf("these deliveries did not come: %v", missing)
		}
	}
}

// What is signed is what is sent: of data whose keys are in no order, with a
// letter beyond ASCII, a 1.0 and a "<", Node verifies the bytes on the wire, and
// those of each replay are the same.
func TestO039SignedBytesAreSent(t *testing.T) {
	paths := map[string]map[string]string{"/": {"scheme": "standard-webhooks", "secret": secrets["standard-webhooks"]}}
	base, lines := startReceiver(t, paths)
	n := startNode(t)
	n.endpoint(t, base+"/", "standard-webhooks", secrets["standard-webhooks"])
	const data = `{"z":"é","b":1.0,"a":"<b>&","\u00e9":[1e2,{"y":1,"x":2}]}`
	var published struct{ ID string }
	n.post(t, "/v1/events", "", map[string]any{"type": "sketch.drawn", "data": json.RawMessage(data)}, &published)
	next := func() received {
		t.Helper()
		select {
		case line := <-lines:
			return line
		case <-time.After(30 * time.Second):
			t.Fatal("no delivery came")
		}
		return received{}
	}
	first := next()
	if !first.Valid || !strings.Contains(first.Body, `"data":`+data) {
		t.Errorf("verified by Node: %v, of %s", first.Valid, first.Body)
	}
	var rows struct {
		Items []struct {
			ID       string
			Attempts int
		}
	}
	for sent := range 2 {
		for began := time.Now(); len(rows.Items) == 0 || rows.Items[0].Attempts <= sent; time.Sleep(10 * time.Millisecond) {
			if n.get(t, "/v1/deliveries?event="+published.ID, &rows); time.Since(began) > 30*time.Second {
				t.Fatal("never recorded")
			}
		}
		n.post(t, "/v1/deliveries/"+rows.Items[0].ID+"/retry", "", struct{}{}, nil)
		if again := next(); !again.Valid || again.Body != first.Body {
			t.Errorf("verified by Node: %v, of %s", again.Valid, again.Body)
		}
	}
}

// asymmetric makes the endpoints that sign with Ed25519: one as it is, two with
// their key and two with their symmetric secret being replaced.
func (n node) asymmetric(t *testing.T, base string) {
	t.Helper()
	const v1a = "standard-webhooks-v1a"
	if ep := n.endpoint(t, base+"/v1a", v1a, secrets[v1a]); ep.PublicKey != publicKey {
		t.Errorf("the API shows the public key %q", ep.PublicKey)
	}
	for _, path := range []string{"/v1a-old", "/v1a-new", "/over-old", "/over-new"} {
		scheme := v1a
		if strings.HasPrefix(path, "/over") {
			scheme = "standard-webhooks"
		}
		id := n.endpoint(t, base+path, scheme, secrets[scheme]).ID
		var ep endpoint
		n.post(t, "/v1/endpoints/"+id+"/rotate-secret", "", map[string]any{"secret": nextKey, "scheme": v1a, "overlap": "1h"}, &ep)
		if ep.PublicKey != nextPublicKey {
			t.Errorf("the API shows the public key %q after the rotation", ep.PublicKey)
		}
	}
}

// startReceiver runs the Node program until the test ends.
func startReceiver(t *testing.T, paths any) (base string, lines <-chan received) {
	t.Helper()
	text, err := json.Marshal(paths)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "node/receiver.mjs", string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	var first struct{ Port int }
	if !scanner.Scan() || json.Unmarshal(scanner.Bytes(), &first) != nil {
		t.Fatal("the receiver did not start")
	}
	all := make(chan received, 100)
	go func() {
		for scanner.Scan() {
			var line received
			if json.Unmarshal(scanner.Bytes(), &line) == nil {
				all <- line
			}
		}
	}()
	return fmt.Sprintf("http://127.0.0.1:%d", first.Port), all
}

type node struct{ url string }

// startNode runs a node with a well-behaved sim as its upstream.
func startNode(t *testing.T) node {
	t.Helper()
	plan := sim.NewPlan(1, 1, sim.Options{Dialects: []sim.Dialect{sim.Native}, Without: sim.Faults()})
	provider, err := sim.NewServer(plan, sim.Config{Speed: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	url, err := provider.Start()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
data: %q
egress: {allow: [127.0.0.0/8]}
upstreams:
  sim: {preset: sim, base_url: %q, key: %q, webhook_keys: [%q]}
`, filepath.Join(t.TempDir(), "data"), url, provider.Key(), provider.Secret(sim.Native))
	cfg, err := config.Parse("interop.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	n, err := server.Start(t.Context(), cfg, server.Options{AdminKey: adminKey})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return node{n.APIURL()}
}

// endpoint is one as the API shows it.
type endpoint struct {
	ID        string
	PublicKey string `json:"public_key"`
}

func (n node) endpoint(t *testing.T, url, scheme, secret string) endpoint {
	t.Helper()
	var ep endpoint
	n.post(t, "/v1/endpoints", "", map[string]any{"url": url, "scheme": scheme, "secret": secret}, &ep)
	return ep
}

func (n node) post(t *testing.T, path, key string, body, into any) {
	t.Helper()
	var text bytes.Buffer
	plain := json.NewEncoder(&text)
	plain.SetEscapeHTML(false)
	if err := plain.Encode(body); err != nil {
		t.Fatal(err)
	}
	n.call(t, http.MethodPost, path, key, &text, into)
}

func (n node) get(t *testing.T, path string, into any) {
	t.Helper()
	n.call(t, http.MethodGet, path, "", nil, into)
}

func (n node) call(t *testing.T, method, path, key string, body io.Reader, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, n.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	if res.StatusCode >= 300 {
		t.Fatalf("%s: %s: %s", path, res.Status, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatal(err)
		}
	}
}
