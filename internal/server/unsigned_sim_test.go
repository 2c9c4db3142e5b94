package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sim"
)

// A provider that misbehaves in every way and signs nothing can only make us
// read: every operation ends as the provider itself says, and costs what it
// says, whatever unsigned callbacks claimed (1-product C6).
func TestUnsignedProvider(t *testing.T) {
	t.Parallel()
	plan := sim.NewPlan(7, 60, sim.Options{
		Dialects: []sim.Dialect{sim.Native}, Currency: "USD",
		// Without a signature no callback teaches the task of a create whose answer
		// was lost (7-rules R19).
		Without: []sim.Fault{sim.CreateLost, sim.CreateSlow, sim.CreateFailedBefore, sim.CreateFailedAfter},
	})
	provider, err := sim.NewServer(plan, sim.Config{Speed: 10, Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	address, err := provider.Start()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "sim", unsigned, func(c *config.Config, u *config.Upstream) {
		u.BaseURL, u.Key = address, secretOf(t, provider.Key())
		u.Read = config.Read{First: 3 * time.Second, Factor: 1, Max: 3 * time.Second, Rate: 200}
		c.Tenants["default"].Account.Credit = testAmount(t, "100000")
	})
	ids := make([]string, plan.Len())
	for n := range ids {
		s, _ := plan.Script(n)
		body := map[string]any{
			"upstream": "up", "model": "m", "input": map[string]any{"n": n},
			"expected_cost": map[string]any{"amount": s.Price.String(), "currency": "USD"},
		}
		ids[n] = w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", fmt.Sprint("k", n))).at("id")
	}
	for n, id := range ids {
		s, _ := plan.Script(n)
		state, cost := s.Expected()
		var op reply
		w.eventually(id+" never ended", func() bool {
			op = w.operation(id)
			return op.at("finished_at") != "" && op.at("cost.settled") == "true"
		})
		if op.at("state") != state.String() || op.at("cost.amount") != cost.String() {
			t.Errorf("%d: %s for %s, want %s for %s", n, op.at("state"), op.at("cost.amount"), state, cost)
		}
	}
	w.stored("")
	if w.metric(`pawl_inbound_events_total{source="up",verdict="hint"}`) == "0" {
		t.Error("no hint was taken")
	}
	if w.metric(`pawl_inbound_unstored_total{reason="read_due",source="up"}`) == "" {
		t.Error("no hint has made a read due")
	}
}
