package api

import (
	"cmp"
	"net/http"
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

// pauses are those of the upstreams: of creates for all tenants, and of the work
// of one tenant, the one that the call is about or else the key's own.
func (c *call) pauses() (map[string][]pauseJSON, error) {
	tenant := cmp.Or(c.tenant, c.by.Tenant)
	queues := func(name string) []ledger.QueueID {
		return []ledger.QueueID{
			ledger.GateID(name), ledger.WorkQueueID(ledger.SubmitQueue, name, tenant), ledger.WorkQueueID(ledger.ReadQueue, name, tenant),
		}
	}
	var keys ledger.Keys
	for name := range c.ups {
		keys.Queues = append(keys.Queues, queues(name)...)
	}
	rows, err := c.load(c.ctx, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]pauseJSON)
	now := pawl.TimeOf(time.Now())
	for name := range c.ups {
		for _, id := range queues(name) {
			if q, ok := rows.Queues.Get(id); ok && q.PausedUntil > now {
				found[name] = append(found[name], pauseJSON{workWords[id.Kind], isSet(q.PausedUntil), q.PauseReason})
			}
		}
	}
	return found, nil
}

var workWords = map[ledger.QueueKind]string{ledger.SubmitQueue: "submit", ledger.ReadQueue: "read"}

func (a *api) pauseRoutes() {
	one := route{
		method: http.MethodPost, tag: "upstreams", scope: ledger.ScopeAdmin, status: http.StatusOK,
		refuses: reasons{http.StatusNotFound: {"not_found"}},
	}
	pause, resume := one, one
	pause.path, pause.name = "/v1/upstreams/{name}/pause", "pauseUpstream"
	pause.summary = "Stop creates at an upstream, of all tenants, until it is resumed; reads, callbacks and cancels go on"
	resume.path, resume.name = "/v1/upstreams/{name}/resume", "resumeUpstream"
	resume.summary = "End every pause of an upstream, also those after a refused credential"
	handle(a, pause, pauseUpstream)
	handle(a, resume, resumeUpstream)
}

// pauseRequest says why an upstream is paused.
type pauseRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"255" doc:"Shown to whoever asks for the upstream."`
}

func pauseUpstream(c *call, in pauseRequest) (upstreamJSON, error) {
	var f faults
	f.check(plainText(in.Reason, maxWord), "/reason", "is longer than 255 bytes or holds control characters")
	if err := f.err(); err != nil {
		return upstreamJSON{}, err
	}
	name := c.r.PathValue("name")
	if up, ok := c.ups[name]; !ok || !up.opens(c.tenant) {
		return upstreamJSON{}, errNotFound
	}
	_, err := c.do(c.ctx, ledger.PauseUpstream{Header: c.head(), Upstream: name, Reason: cmp.Or(in.Reason, ledger.PausedByHand)})
	if err != nil {
		return upstreamJSON{}, err
	}
	return c.showUpstream(name)
}

func resumeUpstream(c *call, _ none) (upstreamJSON, error) {
	name := c.r.PathValue("name")
	if up, ok := c.ups[name]; !ok || !up.opens(c.tenant) {
		return upstreamJSON{}, errNotFound
	}
	queues, err := c.pausedQueues(name)
	if err != nil {
		return upstreamJSON{}, err
	}
	if _, err := c.do(c.ctx, ledger.ResumeUpstream{Header: c.head(), Upstream: name, Queues: queues}); err != nil {
		return upstreamJSON{}, err
	}
	return c.showUpstream(name)
}

// pausedQueues are the queues of single tenants that failures have paused.
func (c *call) pausedQueues(name string) ([]ledger.QueueID, error) {
	tenants, err := c.opts.Reader.Tenants(c.ctx)
	if err != nil {
		return nil, err
	}
	var keys ledger.Keys
	for _, t := range tenants {
		for kind := range workWords {
			keys.Queues = append(keys.Queues, ledger.WorkQueueID(kind, name, t.Name))
		}
	}
	rows, err := c.load(c.ctx, keys)
	if err != nil {
		return nil, err
	}
	var paused []ledger.QueueID
	for id, q := range rows.Queues.All() {
		if q.Failures > 0 || q.PausedUntil != 0 {
			paused = append(paused, id)
		}
	}
	return paused, nil
}

func (c *call) showUpstream(name string) (upstreamJSON, error) {
	paused, err := c.pauses()
	shown := upstreamShape(c.ups[name])
	shown.Paused = append(shown.Paused, paused[name]...)
	return shown, err
}
