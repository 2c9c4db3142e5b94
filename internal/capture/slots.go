package capture

import (
	"context"
	"sync"

	"github.com/pawlhq/pawl/internal/ledger"
)

// slots bound the fetches at once, of all and of each host, and share them out
// among the tenants: no tenant holds more than half of them while another waits.
// Its methods are safe for concurrent use.
type slots struct {
	total, perHost int

	mu   sync.Mutex
	runs map[*run]bool
	// served are the tenants that had their turn in this round.
	served map[string]bool
	begun  int
}

// run is one slot that is held.
type run struct {
	tenant, host string
	// number grows from run to run.
	number int
	// stop gives the fetch up; nil before it has begun.
	stop     context.CancelFunc
	stopping bool
}

// mostServed bounds the tenants that one round remembers.
const mostServed = 500

func newSlots(total, perHost int) *slots {
	return &slots{total: total, perHost: perHost, runs: make(map[*run]bool), served: make(map[string]bool)}
}

// half is the most that one tenant holds of some slots while another waits.
func half(n int) int { return max(n/2, 1) }

// held counts the slots of a tenant and at a host, of all where they are empty;
// those that are being given up count for the bounds, not for a tenant.
func (s *slots) held(tenant, host string) (n int) {
	for r := range s.runs {
		if (tenant == "" || r.tenant == tenant && !r.stopping) && (host == "" || r.host == host) {
			n++
		}
	}
	return n
}

// free is how many slots are left, which hosts have none, and which tenants hold
// half of all or more.
func (s *slots) free() (n int, hosts, tenants []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, of := make(map[string]int), make(map[string]int)
	for r := range s.runs {
		if at[r.host]++; at[r.host] == s.perHost {
			hosts = append(hosts, r.host)
		}
		if r.stopping {
			continue
		}
		if of[r.tenant]++; of[r.tenant] == half(s.total) {
			tenants = append(tenants, r.tenant)
		}
	}
	return max(s.total-len(s.runs), 0), hosts, tenants
}

// round are the tenants that had their turn.
func (s *slots) round() (served []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tenant := range s.served {
		served = append(served, tenant)
	}
	return served
}

// newRound gives each tenant a turn again.
func (s *slots) newRound() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.served)
}

// modest reports whether a further slot leaves a tenant at no more than half.
func (s *slots) modest(a ledger.Artifact) bool {
	return s.held(a.Tenant, "") < half(s.total) && s.held(a.Tenant, a.Host) < half(s.perHost)
}

// take takes a slot, which is the tenant's turn, or gives nil where none is left.
// Fair keeps a tenant at half.
func (s *slots) take(a ledger.Artifact, fair bool) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) >= s.total || s.held("", a.Host) >= s.perHost || fair && !s.modest(a) {
		return nil
	}
	if len(s.served) >= mostServed {
		clear(s.served)
	}
	s.served[a.Tenant] = true
	s.begun++
	r := &run{tenant: a.Tenant, host: a.Host, number: s.begun}
	s.runs[r] = true
	return r
}

// give gives a slot back.
func (s *slots) give(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r)
}

// begin says how the fetch in a slot is given up.
func (s *slots) begin(r *run, stop context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.stop = stop
}

// crowd is a tenant that holds more than half of all slots, or of a host's, none
// of which is left.
type crowd struct{ tenant, host string }

// crowds are those that may have to yield. There are none while a slot is being
// given up: what follows from that is waited for.
func (s *slots) crowds() (all []crowd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[crowd]bool)
	for r := range s.runs {
		if r.stopping {
			return nil
		}
		for _, c := range [...]crowd{{r.tenant, ""}, {r.tenant, r.host}} {
			most := s.total
			if c.host != "" {
				most = s.perHost
			}
			if !seen[c] && s.held("", c.host) >= most && s.held(c.tenant, c.host) > half(most) {
				all = append(all, c)
			}
			seen[c] = true
		}
	}
	return all
}

// yield gives up the youngest fetch of a crowd for what waits, if that would get
// the slot. What was fetched is in the spool.
func (s *slots) yield(c crowd, waits ledger.Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.modest(waits) {
		return
	}
	var youngest *run
	for r := range s.runs {
		if r.tenant == c.tenant && (c.host == "" || r.host == c.host) && r.stop != nil && !r.stopping && (youngest == nil || r.number > youngest.number) {
			youngest = r
		}
	}
	if youngest != nil {
		youngest.stopping = true
		youngest.stop()
	}
}
