package api

import (
	"cmp"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// pauseJSON says that a kind of work at an upstream stands still, and why: the
// first thing to know of an operation that stays pending.
type pauseJSON struct {
	Work   string     `json:"work" enum:"submit,read"`
	Until  *pawl.Time `json:"until,omitempty" format:"date-time" doc:"Left out where only a person ends it."`
	Reason string     `json:"reason"`
}

// pauses are those of the upstreams' queues of one tenant: the one that the
// call is about, else the key's own.
func (c *call) pauses() (map[string][]pauseJSON, error) {
	tenant := cmp.Or(c.tenant, c.by.Tenant)
	kinds := [...]struct {
		kind ledger.QueueKind
		word string
	}{{ledger.SubmitQueue, "submit"}, {ledger.ReadQueue, "read"}}
	var keys ledger.Keys
	for name := range c.ups {
		for _, k := range kinds {
			keys.Queues = append(keys.Queues, ledger.WorkQueueID(k.kind, name, tenant))
		}
	}
	rows, err := c.load(c.ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]pauseJSON)
	now := pawl.TimeOf(time.Now())
	for name := range c.ups {
		for _, k := range kinds {
			if q, ok := rows.Queues.Get(ledger.WorkQueueID(k.kind, name, tenant)); ok && q.PausedUntil > now {
				found[name] = append(found[name], pauseJSON{k.word, isSet(q.PausedUntil), q.PauseReason})
			}
		}
	}
	return found, nil
}
