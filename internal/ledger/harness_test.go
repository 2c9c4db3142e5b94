package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// world is the smallest store: it loads by Keys and Follow, runs one command
// after the other, and keeps what they put.
type world struct {
	t    testing.TB
	now  pawl.Time
	seed uint64
	// repeat runs every command twice; the second run must change nothing.
	repeat bool

	idem       map[IdempotencyKeyID]IdempotencyKey
	claims     map[CorrelationID]Correlation
	keys       map[EventKeyID]EventKey
	tasks      map[TaskID]Task
	sources    map[string]Source
	unknown    map[UnknownTypesID]UnknownTypes
	tenants    map[string]Tenant
	apiKeys    map[pawl.ID]APIKey
	wrapping   map[string]WrappingKey
	seals      map[int64]AuditSeal
	replays    map[pawl.ID]Replay
	ops        map[pawl.ID]Operation
	events     map[pawl.ID]Event
	reviews    map[pawl.ID]Review
	accounts   map[pawl.ID]Account
	budgets    map[BudgetID]Budget
	endpoints  map[pawl.ID]Endpoint
	queues     map[QueueID]Queue
	deliveries map[pawl.ID]Delivery
	artifacts  map[pawl.ID]Artifact

	payloads []Payload
	history  []History
	entries  []Entry
	attempts []Attempt
	audits   []Audit
}

const start = pawl.Time(1_800_000_000_000_000)

func newWorld(t testing.TB) *world {
	return &world{
		t: t, now: start, repeat: true,
		claims: map[CorrelationID]Correlation{}, budgets: map[BudgetID]Budget{},
		idem: map[IdempotencyKeyID]IdempotencyKey{}, keys: map[EventKeyID]EventKey{}, tasks: map[TaskID]Task{},
		sources: map[string]Source{}, unknown: map[UnknownTypesID]UnknownTypes{}, tenants: map[string]Tenant{}, apiKeys: map[pawl.ID]APIKey{}, wrapping: map[string]WrappingKey{}, seals: map[int64]AuditSeal{}, replays: map[pawl.ID]Replay{},
		ops: map[pawl.ID]Operation{}, events: map[pawl.ID]Event{}, reviews: map[pawl.ID]Review{},
		accounts: map[pawl.ID]Account{}, endpoints: map[pawl.ID]Endpoint{}, queues: map[QueueID]Queue{},
		deliveries: map[pawl.ID]Delivery{}, artifacts: map[pawl.ID]Artifact{},
	}
}

// seeded gives a command a header of the world's.
type seeded struct {
	Command
	head Header
}

func (s seeded) Head() Header { return s.head }

func (w *world) with(c Command) Command {
	w.seed++
	h := Header{Actor: c.Head().Actor}
	binary.BigEndian.PutUint64(h.Seed[:], w.seed)
	return seeded{c, h}
}

// do runs a command, which must not miss, and saves what it left.
func (w *world) do(c Command) Outcome {
	w.t.Helper()
	out := w.once(c)
	if !w.repeat || !twice(c, out) {
		return out
	}
	before := w.dump()
	w.once(c)
	if change := firstDifference(before, w.dump()); change != "" {
		w.t.Fatalf("%T run twice changed something:\n%s", c, change)
	}
	return out
}

// twice reports whether a repeat of the command must change nothing: an event
// whose key is left free is judged anew, and a lease takes the next rows.
func twice(c Command, out Outcome) bool {
	switch c := c.(type) {
	case ReceiveEvent:
		r, ok := out.Value.(Received)
		return ok && r.Verdict.TakesKey()
	case ReprocessEvent:
		r, ok := out.Value.(Received)
		return ok && r.Verdict.TakesKey() && r.Verdict != pawl.Orphan
	case PublishEvent:
		return c.ID != "" || c.Key != ""
	case TestEndpoint:
		return c.Key != "" || out.Err != nil
	case LeaseReplay, ReplayEvent, LeaseWork, LeaseDeliveries, LeaseForWorker, LeaseArtifact:
		return false
	case ChangeEndpoint:
		return c.IfVersion == 0
	case CreateReplay:
		return c.Key != "" || out.Err != nil
	case Submit, RetryDelivery:
		return out.Err == nil
	}
	return true
}

func (w *world) once(c Command) Outcome {
	w.t.Helper()
	rows := new(Rows)
	var k Keys
	c.Keys(&k)
	// What tells the installation misses its endpoints, and no more (see notify).
	k.EndpointSets = add(k.EndpointSets, "")
	w.load(&k, rows)
	out, miss := NewDraft(rows).Run(w.with(c), w.now)
	if miss != nil {
		w.t.Fatalf("%T misses %+v", c, miss.Keys)
	}
	if p, ok := out.Value.(Panic); ok {
		w.t.Fatalf("%T panicked: %s\n%s", c, p.Type, p.Stack)
	}
	w.save(rows)
	return out
}

// batch runs commands over one set of rows, as a committer does.
func (w *world) batch(commands ...Command) (outs []Outcome) {
	w.t.Helper()
	for len(commands) > 0 {
		rows := new(Rows)
		var k Keys
		for _, c := range commands {
			c.Keys(&k)
		}
		k.EndpointSets = add(k.EndpointSets, "")
		w.load(&k, rows)
		d := NewDraft(rows)
		n := 0
		for _, c := range commands {
			out, miss := d.Run(w.with(c), w.now)
			if miss != nil {
				break
			}
			outs = append(outs, out)
			n++
		}
		if n == 0 {
			w.t.Fatalf("%T misses in first place", commands[0])
		}
		w.save(rows)
		commands = commands[n:]
	}
	return outs
}

func (w *world) load(k *Keys, r *Rows) {
	r.Follow(StageClaims, k)
	loadAll(w.idem, &r.IdempotencyKeys, k.IdempotencyKeys)
	loadAll(w.claims, &r.Correlations, k.Correlations)
	loadAll(w.keys, &r.EventKeys, k.EventKeys)
	loadAll(w.tasks, &r.Tasks, k.Tasks)
	loadAll(w.tenants, &r.Tenants, k.Tenants)
	loadAll(w.apiKeys, &r.APIKeys, k.APIKeys)
	loadAll(w.wrapping, &r.WrappingKeys, k.WrappingKeys)
	loadAll(w.seals, &r.AuditSeals, k.AuditSeals)
	loadAll(w.replays, &r.Replays, k.Replays)
	r.Follow(StageOperations, k)
	loadAll(w.sources, &r.Sources, k.Sources)
	loadAll(w.unknown, &r.UnknownTypes, k.UnknownTypes)
	loadAll(w.ops, &r.Operations, k.Operations)
	loadAll(w.events, &r.Events, k.Events)
	for _, t := range k.Parked {
		for _, e := range pick(w.events, func(e Event) bool { return e.Parked && e.Source == t.Upstream && e.Task == t.Task }) {
			r.Events.Loaded(e.ID, e, true)
		}
		r.ParkedLoaded(t)
	}
	r.Follow(StageAccounts, k)
	loadAll(w.unknown, &r.UnknownTypes, k.UnknownTypes)
	loadAll(w.reviews, &r.Reviews, k.Reviews)
	for _, op := range k.OpenReviews {
		for _, rv := range pick(w.reviews, func(rv Review) bool { return rv.Operation == op && rv.ClosedAt == 0 }) {
			r.Reviews.Loaded(rv.ID, rv, true)
		}
		r.OpenReviewsLoaded(op)
	}
	loadAll(w.accounts, &r.Accounts, k.Accounts)
	loadAll(w.budgets, &r.Budgets, k.Budgets)
	loadAll(w.endpoints, &r.Endpoints, k.Endpoints)
	for _, tenant := range k.EndpointSets {
		for _, e := range slices.SortedFunc(slices.Values(pick(w.endpoints, func(e Endpoint) bool {
			return e.Tenant == tenant && e.Kind == WebhookEndpoint && e.DeletedAt == 0
		})), func(a, b Endpoint) int { return a.ID.Compare(b.ID) }) {
			r.Endpoints.Loaded(e.ID, e, true)
		}
		r.EndpointSetLoaded(tenant)
	}
	loadAll(w.artifacts, &r.Artifacts, k.Artifacts)
	for _, op := range k.ArtifactSets {
		for _, a := range w.artifactsOf(op) {
			r.Artifacts.Loaded(a.ID, a, true)
		}
		r.ArtifactSetLoaded(op)
	}
	r.Follow(StageQueues, k)
	loadAll(w.queues, &r.Queues, k.Queues)
	r.Follow(StageDeliveries, k)
	loadAll(w.deliveries, &r.Deliveries, k.Deliveries)
	for _, x := range k.DueWork {
		if !r.HasDueWork(x) {
			r.DueWorkLoaded(x, first(w.dueWork(x.Queue), x.Limit+1))
		}
	}
	for _, x := range k.DueDeliveries {
		if !r.HasDueDeliveries(x) {
			r.DueDeliveriesLoaded(x, first(w.dueDeliveries(x.Queue), x.Limit+1))
		}
	}
}

func (w *world) artifactsOf(op pawl.ID) []Artifact {
	return slices.SortedFunc(slices.Values(pick(w.artifacts, func(a Artifact) bool { return a.Operation == op })),
		func(a, b Artifact) int { return a.ID.Compare(b.ID) })
}

func (w *world) dueWork(q QueueID) []Operation {
	return slices.SortedFunc(slices.Values(pick(w.ops, func(o Operation) bool {
		return o.DueAt != pawl.Never && WorkQueueID(o.Queue, o.Upstream, o.Tenant) == q
	})), func(a, b Operation) int { return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), a.ID.Compare(b.ID)) })
}

func (w *world) dueDeliveries(q QueueID) []Delivery {
	return slices.SortedFunc(slices.Values(pick(w.deliveries, func(d Delivery) bool {
		return d.DueAt != pawl.Never && DeliveryQueueID(d.Endpoint) == q
	})), func(a, b Delivery) int { return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), a.ID.Compare(b.ID)) })
}

func (w *world) save(r *Rows) {
	saveAll(w.idem, &r.IdempotencyKeys)
	saveAll(w.claims, &r.Correlations)
	saveAll(w.keys, &r.EventKeys)
	saveAll(w.tasks, &r.Tasks)
	saveAll(w.sources, &r.Sources)
	saveAll(w.unknown, &r.UnknownTypes)
	saveAll(w.tenants, &r.Tenants)
	saveAll(w.apiKeys, &r.APIKeys)
	saveAll(w.wrapping, &r.WrappingKeys)
	saveAll(w.seals, &r.AuditSeals)
	saveAll(w.replays, &r.Replays)
	saveAll(w.ops, &r.Operations)
	saveAll(w.events, &r.Events)
	saveAll(w.reviews, &r.Reviews)
	saveAll(w.accounts, &r.Accounts)
	saveAll(w.budgets, &r.Budgets)
	saveAll(w.endpoints, &r.Endpoints)
	saveAll(w.queues, &r.Queues)
	saveAll(w.deliveries, &r.Deliveries)
	saveAll(w.artifacts, &r.Artifacts)
	w.payloads = append(w.payloads, r.Payloads...)
	for _, h := range r.History {
		w.history = append(slices.DeleteFunc(w.history, func(old History) bool { return h.Repeats > 0 && old.ID == h.ID && old.Operation == h.Operation }), h)
	}
	w.entries = append(w.entries, r.Entries...)
	w.attempts = append(w.attempts, r.Attempts...)
	w.audits = append(w.audits, r.Audits...)
}

func loadAll[K, R comparable](from map[K]R, into *Table[K, R], keys []K) {
	for _, k := range keys {
		r, ok := from[k]
		into.Loaded(k, r, ok)
	}
}

func saveAll[K, R comparable](to map[K]R, from *Table[K, R]) {
	for k, c := range from.Changes() {
		if old, ok := to[k]; ok != c.Existed || ok && old != c.Was {
			panic(fmt.Sprintf("%T is not as it was loaded", c.Now))
		}
		if c.Gone {
			delete(to, k)
			continue
		}
		to[k] = c.Now
	}
}

func pick[K comparable, R any](from map[K]R, want func(R) bool) (rows []R) {
	for _, r := range from {
		if want(r) {
			rows = append(rows, r)
		}
	}
	return rows
}

func first[R any](rows []R, n int) []R { return rows[:min(len(rows), n)] }

// dump is everything that a repeated command must leave alone: all but the
// count of repeats.
func (w *world) dump() []part {
	keys := maps.Clone(w.keys)
	for k, r := range keys {
		r.Repeats = 0
		keys[k] = r
	}
	return []part{
		rowsOf(w.claims), rowsOf(w.budgets), rowsOf(w.idem), rowsOf(keys), rowsOf(w.tasks), rowsOf(w.sources), rowsOf(w.unknown), rowsOf(w.tenants), rowsOf(w.apiKeys), rowsOf(w.wrapping), rowsOf(w.replays), rowsOf(w.ops),
		rowsOf(w.events), rowsOf(w.reviews), rowsOf(w.accounts), rowsOf(w.endpoints), rowsOf(w.queues), rowsOf(w.deliveries), rowsOf(w.artifacts),
		linesOf(w.payloads), linesOf(w.history), linesOf(w.entries), linesOf(w.attempts), linesOf(w.audits),
	}
}

// part is one table of a dump.
type part interface{ differs(part) string }

type tableOf[K, R comparable] map[K]R

func rowsOf[K, R comparable](rows map[K]R) part { return tableOf[K, R](maps.Clone(rows)) }

func (a tableOf[K, R]) differs(other part) string {
	b := other.(tableOf[K, R])
	for k, r := range b {
		if old, ok := a[k]; !ok || old != r {
			return fmt.Sprintf("%+v\nbecame\n%+v", old, r)
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d rows became %d", len(a), len(b))
	}
	return ""
}

type logOf[R comparable] []R

func linesOf[R comparable](rows []R) part { return logOf[R](slices.Clone(rows)) }

func (a logOf[R]) differs(other part) string {
	b := other.(logOf[R])
	if len(a) == len(b) && slices.Equal(a, b) {
		return ""
	}
	return fmt.Sprintf("%d lines became %d, the last is %+v", len(a), len(b), b[max(0, len(b)-1):])
}

func (w *world) tick(d time.Duration) { w.now = w.now.Add(d) }

// facts is what a store would hand to the check for one operation.
func (w *world) facts(id pawl.ID) Facts {
	op := w.ops[id]
	f := Facts{
		Operation: op,
		Tasks:     pick(w.tasks, func(t Task) bool { return t.Operation == id }),
		Inbound:   pick(w.events, func(e Event) bool { return e.Operation == id && e.Direction == Inbound }),
		Outbound:  pick(w.events, func(e Event) bool { return e.Operation == id && e.Direction == Outbound }),
		Artifacts: w.artifactsOf(op.ID),
		Deliveries: pick(w.deliveries, func(d Delivery) bool {
			return d.Operation == id
		}),
		Correlation: w.claims[CorrelationID{op.Tenant, op.CorrelationID}],
		Budgets:     pick(w.budgets, func(b Budget) bool { return slices.Contains(op.Budgets(), b.ID) }),
		Reviews:     pick(w.reviews, func(r Review) bool { return r.Operation == id }),
		Endpoints:   pick(w.endpoints, func(e Endpoint) bool { return e.Tenant == op.Tenant }),
	}
	for _, h := range w.history {
		if h.Operation == id {
			f.History = append(f.History, h)
		}
	}
	for _, e := range w.entries {
		if e.Operation == id {
			f.Entries = append(f.Entries, e)
		}
	}
	return f
}

func (w *world) accountFacts(id pawl.ID) AccountFacts {
	f := AccountFacts{Account: w.accounts[id]}
	for _, e := range w.entries {
		if e.Account == id {
			f.Funded -= e.into(Funding)
			f.Spent += e.into(Spent)
			f.Reserved += e.into(Reserving)
		}
	}
	for _, o := range w.ops {
		if o.Account == id && o.Money == Held {
			f.Held += o.Reserved
		}
	}
	return f
}

func (w *world) budgetFacts(id BudgetID) BudgetFacts {
	f := BudgetFacts{Budget: w.budgets[id]}
	for _, op := range w.ops {
		if slices.Contains(op.Budgets(), id) {
			f.Counted += op.Counted()
		}
	}
	return f
}

func (w *world) endpointFacts(id pawl.ID) EndpointFacts {
	f := EndpointFacts{Endpoint: w.endpoints[id], Queue: w.queues[DeliveryQueueID(id)]}
	seen := map[int64]bool{}
	for _, d := range w.deliveries {
		if d.Endpoint == id && d.Sequence > 0 {
			f.Numbered++
			f.Highest = max(f.Highest, d.Sequence)
			seen[d.Sequence] = true
		}
	}
	f.Distinct = int64(len(seen))
	for n := int64(1); n < f.Highest && f.FirstGap == 0; n++ {
		if !seen[n] {
			f.FirstGap = n
		}
	}
	return f
}

func (w *world) looseFacts() LooseFacts {
	named := map[pawl.ID]bool{}
	for _, k := range w.keys {
		named[k.Event] = true
	}
	return LooseFacts{
		EventsMiscounted: pick(w.events, func(e Event) bool {
			return e != e.Tallied(pick(w.deliveries, func(d Delivery) bool { return d.Event == e.ID }))
		}),
		EventsWithoutKey: pick(w.events, func(e Event) bool { return e.HoldsKey() && !named[e.ID] }),
		ParkedWithOperation: pick(w.events, func(e Event) bool {
			return e.Parked && !w.tasks[TaskID{e.Source, e.Task}].Operation.IsZero()
		}),
	}
}

// check is the whole of the invariants, and what the queues promise.
func (w *world) check() (found []Violation) {
	for id := range w.ops {
		found = append(found, CheckFacts(w.facts(id))...)
	}
	for id := range w.accounts {
		found = append(found, CheckAccount(w.accountFacts(id))...)
	}
	for id := range w.budgets {
		found = append(found, CheckBudget(w.budgetFacts(id))...)
	}
	for id := range w.endpoints {
		found = append(found, CheckEndpoint(w.endpointFacts(id))...)
	}
	found = append(found, CheckLoose(w.looseFacts())...)
	for _, op := range w.ops {
		q := w.queues[WorkQueueID(op.Queue, op.Upstream, op.Tenant)]
		if op.DueAt != pawl.Never && (q.ID == QueueID{} || q.NextDue > op.DueAt) {
			found = append(found, Violation{op.ID.Text("op"), "queue", "due before its queue"})
		}
	}
	for _, d := range w.deliveries {
		q := w.queues[DeliveryQueueID(d.Endpoint)]
		if d.DueAt != pawl.Never && (q.ID == QueueID{} || q.NextDue > d.DueAt) {
			found = append(found, Violation{d.ID.Text("dlv"), "queue", "due before its queue"})
		}
	}
	return found
}

func (w *world) sound() {
	w.t.Helper()
	for _, v := range w.check() {
		w.t.Errorf("violation: %s", v)
	}
}

func firstDifference(a, b []part) string {
	for i := range a {
		if d := a[i].differs(b[i]); d != "" {
			return d
		}
	}
	return ""
}

func digest(text string) Digest { return sha256.Sum256([]byte(text)) }

func sortedIDs[R any](rows map[pawl.ID]R) []pawl.ID {
	return slices.SortedFunc(maps.Keys(rows), pawl.ID.Compare)
}

func sortedKeys[K cmp.Ordered, R any](rows map[K]R) []K { return slices.Sorted(maps.Keys(rows)) }
