package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/demo"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/sim"
)

// provider is a sim that ends with the test.
func provider(t *testing.T, plan sim.Plan, c sim.Config) (*sim.Server, string) {
	t.Helper()
	s, err := sim.NewServer(plan, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	at, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	return s, at
}

// newTown is a node with such a configuration and a browser before its console.
func newTown(t *testing.T, configuration string) *town {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	cfg, err := config.Parse("town.yaml", fmt.Appendf(nil, "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndata: %q\n%s", dir, configuration), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	n, err := server.Start(t.Context(), cfg, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- n.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the node: %v", err)
		}
	})
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	return &town{T: t, Place: demo.Place{API: n.APIURL(), Admin: n.AdminURL(), Key: strings.TrimSpace(string(key))}, browser: Start(t, n.AdminURL())}
}

// order submits the operation that has script n, at a price of 1.
func (w *town) order(upstream string, n int, more ...string) string {
	w.Helper()
	body := map[string]any{"upstream": upstream, "model": "any", "input": map[string]int{"n": n}, "expected_cost": map[string]string{"amount": "1", "currency": "USD"}}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	text, err := json.Marshal(body)
	if err != nil {
		w.Fatal(err)
	}
	return w.call(http.MethodPost, "/v1/operations", string(text), "Idempotency-Key", fmt.Sprintf("%s-%d", upstream, n))["id"].(string)
}

// follow clicks on a link and waits for the page that it leads to.
func (t *Tab) follow(selector string) {
	t.t.Helper()
	t.Wait(selector)
	was := t.Path()
	// In one step: a page that makes itself anew may replace the link in between.
	t.Run(fmt.Sprintf("document.querySelector(%q).click()", selector))
	for end := time.Now().Add(patience); t.Path() == was; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.t.Fatalf("%s leads nowhere from %s", selector, was)
		}
	}
	t.Wait("#main")
}

// act opens one of a page's acts, gives a reason and presses its button.
func (t *Tab) act(form, why string) {
	t.t.Helper()
	t.Wait("#main")
	t.Run(fmt.Sprintf("document.querySelector(%q).closest('details').open = true", form))
	t.Fill(form+" [name=reason]", why)
	t.Submit(form)
}
