package api

import (
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
)

// live is the part of the configuration that a reload may replace (1-product
// I7). A call takes one for all that it does; nobody changes it.
type live struct {
	ups     map[string]provider
	sources sender.Set
	// window is how long an idempotency key lives at least.
	window time.Duration
}

// upstream is the configured upstream of that name; one that is no longer
// configured keeps its name, so that decisions about its operations remain
// possible.
func (l *live) upstream(name string) ledger.Upstream {
	if u, ok := l.ups[name]; ok {
		return u.policy
	}
	return ledger.Upstream{Name: name}
}

// Reload goes over to the upstreams that are in force now, and to these sources
// and this least life of an idempotency key (24 h if zero). Calls under way keep
// what they have.
func (h Handler) Reload(sources sender.Set, window time.Duration) {
	if window <= 0 {
		window = 24 * time.Hour
	}
	h.live.Store(&live{ups: providers(h.opts.Upstreams.Now()), sources: sources, window: window})
}
