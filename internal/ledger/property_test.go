package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"pgregory.net/rapid"
)

// life drives a few operations of two upstreams through random commands,
// sensible and not. Leases are kept, so that answers of old ones come too.
type life struct {
	*world
	ups        []Upstream
	leases     []Lease
	deliveries []Delivery
	endpoints  []pawl.ID
	states     map[pawl.ID]pawl.State
	versions   map[pawl.ID]int64
	latest     pawl.Time
	n          int
}

// TestAnySequenceKeepsTheInvariants checks invariants 1 to 5 of
// 3-architecture, "Simulation and proof", after every command, each of which
// is also run twice.
func TestAnySequenceKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		l := &life{world: w, states: map[pawl.ID]pawl.State{}, versions: map[pawl.ID]int64{}}
		blind := upstream()
		blind.Reads = rapid.Bool().Draw(r, "second upstream reads")
		blind.Lookups = rapid.Bool().Draw(r, "lookups")
		blind.Name, blind.SubmitAttempts, blind.AcceptLateSuccess = "b", 2, rapid.Bool().Draw(r, "accept late")
		blind.Cancels = rapid.Bool().Draw(r, "cancels")
		blind.Confirm, blind.ParkOrphans = rapid.Bool().Draw(r, "confirm"), rapid.Bool().Draw(r, "park")
		l.ups = []Upstream{idempotent(), blind}
		w.do(EnsureTenant{Name: tenant, Currency: "USD", Opening: 40})
		if rapid.Bool().Draw(r, "budget") {
			limited(w, KeyLimits{Budget: 30, Currency: "USD"})
		}
		r.Repeat(map[string]func(*rapid.T){
			"":       func(r *rapid.T) { l.latest = max(l.latest, l.now); l.invariants(r) },
			"submit": l.submitAny,
			"lease":  l.leaseAny,
			"record": l.recordAny,
			"event":  l.eventAny,
			"hint":   l.hintAny,
			"again":  l.reprocessAny,
			"own":    l.publishAny,
			"tick": func(r *rapid.T) {
				l.tick(time.Duration(rapid.Int64Range(-2000, 4_000_000).Draw(r, "ms")) * time.Millisecond)
			},
			"endpoint": l.endpointAny,
			"deliver":  l.deliverAny,
			"attempt":  l.attemptAny,
			"resolve":  l.resolveAny,
			"cancel":   l.cancelAny,
			"correct":  l.correctAny,
			"replay":   l.replayAny,
		})
		l.drain(r)
	})
}

func (l *life) up(r *rapid.T) Upstream { return rapid.SampledFrom(l.ups).Draw(r, "upstream") }

func (l *life) upOf(name string) Upstream {
	for _, up := range l.ups {
		if up.Name == name {
			return up
		}
	}
	panic(name)
}

func (l *life) submitAny(r *rapid.T) {
	key := fmt.Sprint("k", rapid.IntRange(0, 6).Draw(r, "key"))
	c := Submit{Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(key), Window: time.Hour, Up: l.up(r), Deadline: l.now.Add(time.Hour)}
	if price := rapid.Int64Range(0, 12).Draw(r, "price"); price > 0 {
		c.Metered, c.Price = true, pawl.Money{Amount: pawl.Amount(price), Currency: "USD"}
	}
	if rapid.Bool().Draw(r, "callback") {
		c.CallbackURL = "https://c.example/"
	}
	if rapid.IntRange(0, 3).Draw(r, "spending limit") == 0 {
		c.Up.SpendPerDay, c.Day = 15, DayOf(l.now)
	}
	c.CorrelationID = rapid.SampledFrom([]string{"", "", "c1", "c2"}).Draw(r, "correlation")
	if ids := sortedIDs(l.ops); len(ids) > 0 && rapid.IntRange(0, 3).Draw(r, "retry") == 0 {
		c.RetryOf = rapid.SampledFrom(ids).Draw(r, "of")
		c.Fingerprint, c.Work = RetryFingerprint(c.RetryOf), c.Fingerprint
	}
	l.do(c)
}

func (l *life) leaseAny(r *rapid.T) {
	up := l.up(r)
	kind := rapid.SampledFrom([]QueueKind{SubmitQueue, ReadQueue}).Draw(r, "queue")
	out := l.do(LeaseWork{Queue: WorkQueueID(kind, up.Name, tenant), Limit: rapid.IntRange(1, 3).Draw(r, "limit"), Up: up})
	l.leases = append(l.leases, out.Value.([]Lease)...)
}

func (l *life) observation(r *rapid.T) Observation {
	o := obs(fmt.Sprint("t", rapid.IntRange(0, 5).Draw(r, "task")), rapid.SampledFrom([]pawl.State{0, pawl.Pending, pawl.Running, pawl.Running, pawl.Succeeded, pawl.Failed, pawl.Canceled, pawl.Expired}).Draw(r, "state"))
	o.Progress = rapid.Int32Range(-1, 3).Draw(r, "progress")
	o.ProgressOnly = rapid.IntRange(0, 5).Draw(r, "progress only") == 0
	o.Settled = Settled(rapid.IntRange(0, 2).Draw(r, "settled"))
	if o.HasVersion = rapid.Bool().Draw(r, "versioned"); o.HasVersion {
		o.Version = rapid.Int64Range(0, 4).Draw(r, "version")
	}
	if o.HasCost = rapid.Bool().Draw(r, "costs"); o.HasCost {
		o.Cost = pawl.Amount(rapid.Int64Range(-1, 14).Draw(r, "cost"))
		o.CostText, o.Currency = o.Cost.String(), rapid.SampledFrom([]string{"", "USD", "EUR"}).Draw(r, "currency")
	}
	return o
}

func (l *life) recordAny(r *rapid.T) {
	if len(l.leases) == 0 {
		r.Skip()
	}
	lease := rapid.SampledFrom(l.leases).Draw(r, "lease")
	id, up := lease.Operation.ID, l.upOf(lease.Operation.Upstream)
	switch {
	case rapid.IntRange(0, 7).Draw(r, "drain") == 0:
		l.do(ReleaseLease{Operation: id, Fence: lease.Fence})
	case rapid.IntRange(0, 7).Draw(r, "lose") == 0:
		l.do(LoseLease{Operation: id, Fence: lease.Fence})
	case lease.Action == ActSubmit:
		how := CreateOutcome(rapid.IntRange(int(CreateAccepted), int(CreateUnknown)).Draw(r, "create"))
		l.do(RecordCreate{Up: up, Operation: id, Fence: lease.Fence, Outcome: how, Task: fmt.Sprint("t", rapid.IntRange(0, 5).Draw(r, "task")), ErrorCode: pawl.FailInvalidRequest})
	case lease.Action == ActRead:
		c := ObserveStatus{Up: up, Operation: id, Fence: lease.Fence, Outcome: ReadOutcome(rapid.IntRange(int(ReadObserved), int(ReadUnauthorized)).Draw(r, "read")), Obs: l.observation(r)}
		if rapid.IntRange(0, 3).Draw(r, "right task") > 0 {
			c.Obs.Task = l.ops[id].Task
		}
		l.do(c)
	case lease.Action == ActCancel:
		l.do(l.stopped(r, up, lease))
	case lease.Action == ActLookup:
		l.do(RecordLookup{Up: up, Operation: id, Fence: lease.Fence, Task: rapid.SampledFrom([]string{"", "", "t0", "t1"}).Draw(r, "found")})
	default:
		l.do(Advance{Up: up, Operation: id, Fence: lease.Fence})
	}
}

func (l *life) eventAny(r *rapid.T) {
	c := ReceiveEvent{Up: l.up(r), Event: fmt.Sprint("e", rapid.IntRange(0, 9).Draw(r, "event")), Obs: l.observation(r)}
	c.Digest = digest(c.Event + c.Obs.Word)
	if ids := l.opIDs(); len(ids) > 0 && rapid.Bool().Draw(r, "token") {
		c.Token = rapid.SampledFrom(ids).Draw(r, "operation")
		if task := l.ops[c.Token].Task; task != "" && rapid.Bool().Draw(r, "right task") {
			c.Obs.Task = task
		}
	}
	if rapid.IntRange(0, 9).Draw(r, "unusable") == 0 {
		c.Preset = rapid.SampledFrom([]pawl.Verdict{pawl.Rejected, pawl.UnknownState, pawl.UnknownType}).Draw(r, "preset")
	}
	l.do(c)
}

func (l *life) hintAny(r *rapid.T) {
	c := ReceiveHint{Up: l.up(r), Task: rapid.SampledFrom([]string{"", "t0", "t1", "t2"}).Draw(r, "task")}
	if ids := l.opIDs(); len(ids) > 0 && rapid.Bool().Draw(r, "token") {
		c.Token = rapid.SampledFrom(ids).Draw(r, "operation")
	}
	l.do(c)
}

// reprocessAny judges a stored event anew, half of the time as a mended
// description reads it.
func (l *life) reprocessAny(r *rapid.T) {
	var ids []pawl.ID
	for _, id := range sortedIDs(l.events) {
		if l.events[id].Direction == Inbound {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		r.Skip()
	}
	e := l.events[rapid.SampledFrom(ids).Draw(r, "event")]
	c := ReprocessEvent{ID: e.ID, Whose: e.Tenant, ReceiveEvent: ReceiveEvent{Up: l.upOf(e.Source), Token: e.Operation, Event: e.ExternalID, Obs: l.observation(r)}}
	if rapid.Bool().Draw(r, "same task") && e.Task != "" {
		c.Obs.Task = e.Task
	}
	if rapid.IntRange(0, 3).Draw(r, "unusable") == 0 {
		c.Preset = rapid.SampledFrom([]pawl.Verdict{pawl.Rejected, pawl.UnknownState, pawl.UnknownType}).Draw(r, "preset")
	}
	first := e.Verdict
	l.do(c)
	if now := l.events[e.ID]; now.Verdict != first {
		r.Fatalf("the first verdict of %s became %s", first, now.Verdict)
	}
}

func (l *life) publishAny(r *rapid.T) {
	c := PublishEvent{
		Tenant: tenant, ID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "id"), Type: rapid.SampledFrom([]string{"x", "y"}).Draw(r, "type"), Data: "1",
	}
	if rapid.Bool().Draw(r, "keyed") {
		c.Once = Once{APIKey: apiKey, KeyTenant: tenant, Key: "own", Window: time.Hour}
	}
	before := len(l.world.deliveries)
	out := l.do(c)
	if out.Reason != "published" {
		if len(l.world.deliveries) != before {
			r.Fatalf("%s, and something is sent", out.Reason)
		}
		return
	}
	want := 0
	for _, ep := range l.world.endpoints {
		if ep.Kind == WebhookEndpoint && ep.DeletedAt == 0 && ep.Types == "" {
			want++
		}
	}
	if got := len(l.world.deliveries) - before; got != want && c.ID+c.Key != "" {
		r.Fatalf("%d deliveries for %d endpoints", got, want)
	}
}

// opIDs are in a stable order, so that rapid can shrink.
func (l *life) opIDs() []pawl.ID { return sortedIDs(l.ops) }

func (l *life) endpointAny(r *rapid.T) {
	// A committer's moments do not step back, and one node's are what tells
	// which endpoint lived when an event was emitted.
	l.latest = max(l.latest, l.now)
	l.now = l.latest
	switch change := rapid.IntRange(0, 3).Draw(r, "change"); {
	case change == 0 && len(l.endpoints) < 3:
		l.n++
		id := pawl.NewID(start, uint64(100+l.n))
		l.endpoints = append(l.endpoints, id)
		l.do(CreateEndpoint{Endpoint: Endpoint{ID: id, Tenant: tenant, URL: rapid.SampledFrom([]string{"https://a.example/", FeedURL}).Draw(r, "url"), Types: rapid.SampledFrom([]string{"", "operation.succeeded,operation.progress"}).Draw(r, "types")}})
	case len(l.endpoints) == 0:
		r.Skip()
	case change == 1:
		l.do(ChangeEndpoint{ID: rapid.SampledFrom(l.endpoints).Draw(r, "endpoint"), Change: EndpointChange{Delete: true}})
	default:
		off := change == 2
		l.do(ChangeEndpoint{ID: rapid.SampledFrom(l.endpoints).Draw(r, "endpoint"), Change: EndpointChange{Disabled: &off}})
	}
}

func (l *life) deliverAny(r *rapid.T) {
	ids := sortedIDs(l.world.endpoints)
	if len(ids) == 0 {
		r.Skip()
	}
	out := l.do(LeaseDeliveries{Endpoint: rapid.SampledFrom(ids).Draw(r, "endpoint"), Limit: rapid.IntRange(1, 3).Draw(r, "limit"), Timeout: 15 * time.Second})
	l.deliveries = append(l.deliveries, out.Value.([]Delivery)...)
}

func (l *life) attemptAny(r *rapid.T) {
	if len(l.deliveries) == 0 {
		r.Skip()
	}
	row := rapid.SampledFrom(l.deliveries).Draw(r, "delivery")
	if rapid.IntRange(0, 5).Draw(r, "hand back") == 0 {
		l.do(ReleaseDelivery{Delivery: row.ID, Endpoint: row.Endpoint, Fence: row.Lease})
		return
	}
	l.do(RecordAttempt{Delivery: row.ID, Endpoint: row.Endpoint, Fence: row.Lease, Policy: DefaultPolicy(), At: l.now,
		Status: rapid.SampledFrom([]int32{200, 204, 301, 400, 404, 410, 429, 500}).Draw(r, "status")})
}

func (l *life) resolveAny(r *rapid.T) {
	ids := sortedIDs(l.reviews)
	if len(ids) == 0 {
		r.Skip()
	}
	rv := l.reviews[rapid.SampledFrom(ids).Draw(r, "review")]
	up := l.ups[0]
	if rv.Source != "" {
		up = l.upOf(rv.Source)
	}
	decision := rapid.SampledFrom(rv.Reason.Rule().Decisions).Draw(r, "decision")
	l.once(ResolveReview{Review: rv.ID, Operation: rv.Operation, Event: rv.Event, Delivery: rv.Delivery, Endpoint: rv.Endpoint,
		Source: rv.Source, Whose: rv.Tenant, Up: up, Decision: decision, Task: fmt.Sprint("t", rapid.IntRange(0, 5).Draw(r, "task")),
		EventTask: l.orphaned(rv), Target: l.target(r, rv)})
}

func (l *life) replayAny(r *rapid.T) {
	ids := sortedIDs(l.world.deliveries)
	if len(ids) == 0 {
		r.Skip()
	}
	row := l.world.deliveries[rapid.SampledFrom(ids).Draw(r, "delivery")]
	l.do(RetryDelivery{Delivery: row.ID, Endpoint: row.Endpoint})
}

// invariants are those of the ledger, and what only a run can show: versions
// never fall, an end is left only by a correction, and per endpoint no lower
// version of an operation follows a higher one.
func (l *life) invariants(r *rapid.T) {
	for _, v := range l.check() {
		r.Fatalf("violation: %s", v)
	}
	l.conserved(r)
	for id, op := range l.ops {
		was := l.states[id]
		if op.Version < l.versions[id] {
			r.Fatalf("version of %s fell", id.Text("op"))
		}
		if was.Terminal() && op.State != was && l.facts(id).corrections() == 0 {
			r.Fatalf("%s went from %s to %s", id.Text("op"), was, op.State)
		}
		l.states[id], l.versions[id] = op.State, op.Version
	}
	type place struct{ endpoint, operation pawl.ID }
	highest := map[place]map[int64]int64{}
	for _, d := range l.world.deliveries {
		if d.Sequence > 0 {
			p := place{d.Endpoint, d.Operation}
			if highest[p] == nil {
				highest[p] = map[int64]int64{}
			}
			highest[p][d.Sequence] = l.events[d.Event].Version
		}
	}
	for p, versions := range highest {
		last := int64(0)
		for _, n := range sortedKeys(versions) {
			if versions[n] < last {
				r.Fatalf("endpoint %s: version %d after %d", p.endpoint.Text("ep"), versions[n], last)
			}
			last = versions[n]
		}
	}
}

// drain lets time pass with a provider that answers nothing more: every
// operation must come to its end or to a person, within a bounded number of
// steps, and nothing may stay due for ever.
func (l *life) drain(r *rapid.T) {
	for range 400 {
		next := pawl.Never
		for _, q := range l.queues {
			if q.ID.Kind != DeliveryQueue {
				next = min(next, q.Ready())
			}
		}
		if next == pawl.Never {
			l.invariants(r)
			return
		}
		l.now = max(l.now, next)
		for _, up := range l.ups {
			for _, kind := range []QueueKind{SubmitQueue, ReadQueue} {
				for _, lease := range l.once(LeaseWork{Queue: WorkQueueID(kind, up.Name, tenant), Limit: 100, Up: up}).Value.([]Lease) {
					l.settleLease(up, lease)
				}
			}
		}
		l.tick(10 * time.Minute)
	}
	for _, op := range l.ops {
		if op.DueAt != pawl.Never {
			r.Errorf("%s is %s and due for ever: %+v", op.ID.Text("op"), op.State, op)
		}
	}
	r.Fatalf("the queues never came to rest")
}

func (l *life) settleLease(up Upstream, lease Lease) {
	id := lease.Operation.ID
	switch lease.Action {
	case ActSubmit:
		l.once(RecordCreate{Up: up, Operation: id, Fence: lease.Fence, Outcome: CreateUnknown})
	case ActRead:
		l.once(ObserveStatus{Up: up, Operation: id, Fence: lease.Fence, Outcome: ReadUnreachable})
	case ActLookup:
		l.once(RecordLookup{Up: up, Operation: id, Fence: lease.Fence})
	case ActCancel:
		l.once(RecordCancel{Up: up, Operation: id, Fence: lease.Fence, Outcome: CancelUnreachable})
	default:
		l.once(Advance{Up: up, Operation: id, Fence: lease.Fence})
	}
}
