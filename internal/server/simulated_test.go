package server

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/sim"
)

// play is a world in virtual time around a provider that misbehaves by scripts.
type play struct {
	*world
	sim *sim.Server
}

// simulate runs a test in virtual time against the misbehaving provider itself,
// which plays scripts made by hand. Reads come after 2 s, and every 20 s after
// that.
func simulate(t *testing.T, script sim.Script, test func(*play), change ...settings) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		provider, err := sim.NewServer(
			sim.NewScripts(sim.Options{NoLookup: !script.Lookup}, script),
			sim.Config{Keys: []string{"provider-key"}, Secrets: map[sim.Dialect]string{sim.Native: hookSecret}, Dial: network.dial},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = provider.Close() })
		l, err := network.listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		front := &http.Server{Handler: provider}
		go func() { _ = front.Serve(l) }()
		t.Cleanup(func() { _ = front.Close() })
		all := append([]settings{reading(2*time.Second, 20*time.Second, time.Hour), func(_ *config.Config, u *config.Upstream) {
			u.BaseURL, u.Read.Factor = "http://"+l.Addr().String(), 10
		}}, change...)
		test(&play{makeWorld(t, "sim", network, all), provider})
	})
}

// scripted is a script in which nothing goes wrong: it runs after a second,
// succeeds after ten and costs 0.6 of a price of 1; changes are made to it.
func scripted(change ...func(*sim.Script)) sim.Script {
	s := sim.Script{
		Dialect: sim.Native, Final: pawl.Succeeded, Price: pawl.AmountScale, Cost: 6 * pawl.AmountScale / 10,
		Start: time.Second, End: 10 * time.Second, Settle: 10 * time.Second,
		Callbacks: []sim.Callback{{Event: "end", Kind: sim.TellsEnd, At: 10 * time.Second}},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// order submits the one operation that has a script.
func (p *play) order(extra ...any) string {
	p.Helper()
	body := job("a red kite")
	body["input"] = map[string]any{"n": 0}
	for i := 0; i < len(extra); i += 2 {
		body[extra[i].(string)] = extra[i+1]
	}
	return p.want(http.StatusAccepted, p.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", "k")).at("id")
}

// page is what the provider knows of that operation.
func (p *play) page() sim.Operation {
	p.Helper()
	pages := p.sim.Snapshot().Operations
	if len(pages) != 1 {
		p.Fatalf("the provider knows of %d operations", len(pages))
	}
	return pages[0]
}

// deadline sets the upstream's deadline.
func deadline(d time.Duration) settings {
	return func(_ *config.Config, u *config.Upstream) { u.Deadline = d }
}
