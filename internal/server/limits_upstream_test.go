package server

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// fill submits so many operations of a tenant straight to the ledger.
func (w *world) fill(who string, n int, deadline time.Duration) {
	w.Helper()
	up := w.node.upstreams.Now()["up"].Policy()
	for from := 0; from < n; from += 500 {
		var commands []ledger.Command
		for i := from; i < min(n, from+500); i++ {
			commands = append(commands, ledger.Submit{
				Header: store.NewHeader(""), Tenant: who, APIKey: adminKeyID, Key: fmt.Sprint("fill", i), Window: time.Hour, Up: up, Model: "m",
				Fingerprint: ledger.Digest{byte(i), byte(i >> 8)}, Input: `{"prompt":"p"}`, Deadline: pawl.TimeOf(time.Now().Add(deadline)),
			})
		}
		for _, r := range w.node.store.DoAll(w.Context(), commands...) {
			if r.Err != nil || r.Outcome.Err != nil {
				w.Fatal(r.Err, r.Outcome.Err)
			}
		}
	}
}

// within is the largest number of moments in any second.
func within(moments []time.Time, span time.Duration) (most int) {
	moments = slices.SortedFunc(slices.Values(moments), time.Time.Compare)
	from := 0
	for i, at := range moments {
		for at.Sub(moments[from]) >= span {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

func (p *provider) createdAt() (moments []time.Time) {
	for _, c := range p.created() {
		moments = append(moments, c.at)
	}
	return moments
}

// Creates are never more a second than the upstream's rate, and no fewer while
// there is work (1-product B5).
func TestCreateRate(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.fill(DefaultTenant, 100, time.Hour)
		w.pass(12 * time.Second)
		at := w.provider.createdAt()
		if most := within(at, time.Second); most > 5 {
			w.Errorf("%d creates within a second, want at most 5", most)
		}
		if n := len(at); n < 55 || n > 61 {
			w.Errorf("%d creates in 12 s at 5 a second", n)
		}
		w.pass(10 * time.Second)
		if n := len(w.provider.created()); n != 100 {
			w.Errorf("%d creates, want 100", n)
		}
	}, func(_ *config.Config, u *config.Upstream) { u.Submit.Rate = 5 })
}

// A rate below one a second is kept as well, for creates and reads.
func TestSlowRates(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.fill(DefaultTenant, 5, time.Hour)
		w.pass(45 * time.Second)
		if most := within(w.provider.createdAt(), 10*time.Second-time.Nanosecond); most > 1 || len(w.provider.created()) != 5 {
			w.Errorf("%d creates, %d within 10 s", len(w.provider.created()), most)
		}
		w.pass(time.Minute)
		reads := w.provider.readAt()
		if most := within(reads, 4*time.Second-time.Nanosecond); most > 1 || len(reads) < 15 {
			w.Errorf("%d reads, %d within 4 s", len(reads), most)
		}
	}, func(_ *config.Config, u *config.Upstream) {
		u.Submit.Rate = 0.1
		u.Read = config.Read{First: time.Second, Factor: 1, Max: time.Second, Rate: 0.25}
	})
}

var backlog = flag.Int("backlog", 2000, "operations that wait in TestTenantsTakeTurns")

// A tenant with thousands of operations waiting does not keep another one's
// waiting: that is created within a turn or two (1-product B5).
func TestTenantsTakeTurns(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		var mine int
		w.provider.script(func(n int, c create) *answer {
			time.Sleep(time.Second) // a create takes a second
			return nil
		}, nil)
		w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/tenants", map[string]any{"name": "small"}))
		w.fill(DefaultTenant, *backlog, 24*time.Hour)
		w.pass(10500 * time.Millisecond)
		before := len(w.provider.created())
		body := map[string]any{"upstream": "up", "model": "mine", "input": map[string]any{}}
		op := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations?tenant=small", body, "Idempotency-Key", "small")).at("id")
		w.pass(3 * time.Second)
		w.now(op, "running")
		for i, c := range w.provider.created()[before:] {
			if modelOf(c) == "mine" {
				mine = i + 1
			}
		}
		if mine == 0 || mine > 2 {
			w.Errorf("it was create number %d of those that followed", mine)
		}
	}, func(_ *config.Config, u *config.Upstream) { u.Concurrency = 1 })
}

// A pause by hand survives a restart, costs nothing while it lasts, and what has
// waited is created when it ends (1-product I7).
func TestPauseSurvivesRestart(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/pause", map[string]any{"reason": "quota talks"}))
		w.fill(DefaultTenant, 50, 24*time.Hour)
		w.pass(time.Minute)
		w.drain()
		w.start()
		lookups := w.disk.loads.Load()
		w.pass(10 * time.Minute)
		if n := len(w.provider.created()); n != 0 {
			w.Errorf("%d creates while paused", n)
		}
		if n := w.disk.loads.Load() - lookups; n > 3*600 {
			w.Errorf("%d looks at the ledger in ten minutes of nothing to do", n)
		}
		if paused := w.get("/v1/upstreams").items()[0].at("paused"); paused != "[map[reason:quota talks work:submit]]" {
			w.Errorf("paused %s", paused)
		}
		w.want(http.StatusOK, w.call(http.MethodPost, "/v1/upstreams/up/resume", nil))
		w.pass(500 * time.Millisecond)
		if n := len(w.provider.created()); n != 50 {
			w.Errorf("%d creates within half a second of the end, want 50", n)
		}
	})
}

// A refused credential stops the creates of all tenants, tries by itself, one
// create at a time and ever more rarely, and goes on when the credential is
// taken (1-product B4).
func TestRefusedCredentialProbes(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/tenants", map[string]any{"name": "other"}))
		w.provider.script(func(int, create) *answer { return &answer{status: http.StatusUnauthorized} }, nil)
		w.fill(DefaultTenant, 20, 24*time.Hour)
		w.fill("other", 20, 24*time.Hour)
		w.pass(time.Second)
		first := len(w.provider.created())
		if first > 16 {
			w.Errorf("%d creates went out before the first was refused, want at most 16", first)
		}
		w.pass(4 * time.Minute)
		probes := w.provider.createdAt()[first:]
		// After 30 s, then 60, 120, … s later, each ± 10 %.
		if n := len(probes); n != 3 {
			w.Errorf("%d probes in four minutes, want 3: %v", n, probes)
		}
		for i := 1; i < len(probes); i++ {
			want := time.Minute << (i - 1)
			if gap := probes[i].Sub(probes[i-1]); gap < want*9/10 || gap > want*11/10+time.Second {
				w.Errorf("probe %d came after %s, want %s", i+1, gap, want)
			}
		}
		w.provider.script(nil, nil)
		w.pass(5 * time.Minute)
		if n := w.unfinished("running"); n != 40 {
			w.Errorf("%d are running, want all 40", n)
		}
	})
}

// Load implements [store.Reader].
func (d *disk) Load(ctx context.Context, keys *ledger.Keys, rows *ledger.Rows) error {
	d.loads.Add(1)
	return d.Driver.Load(ctx, keys, rows)
}

func modelOf(c create) string {
	var body struct{ Model string }
	_ = json.Unmarshal([]byte(c.body), &body)
	return body.Model
}

func (w *world) unfinished(state string) int {
	w.Helper()
	return len(w.get("/v1/operations?page_size=200&state=" + state).items())
}
