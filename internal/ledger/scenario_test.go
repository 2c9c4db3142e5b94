package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// What the tests speak of: one tenant, one upstream with callbacks and reads,
// one endpoint that wants everything.
const tenant = "acme"

var (
	apiKey   = pawl.NewID(start, 1)
	hookID   = pawl.NewID(start, 2)
	deadline = start.Add(time.Hour)
)

func upstream() Upstream {
	return Upstream{
		Name: "s", Adapter: "s/1", Callbacks: true, Reads: true, ReadFirst: 2 * time.Second, ReadMax: 15 * time.Second,
		ReadFactor: 1500, ReadSpacing: 100 * time.Millisecond, Concurrency: 8, Timeout: 30 * time.Second, SubmitAttempts: 5,
		SettleWithin: 24 * time.Hour, ParkOrphans: true, OrphanGrace: 15 * time.Minute, OrphanLimit: 10_000, Owner: "media team",
	}
}

func idempotent() Upstream {
	up := upstream()
	up.Idempotent, up.IdempotencyWindow, up.Credential = true, 10*time.Minute, [8]byte{1}
	return up
}

// stage is a world with a funded tenant and an endpoint.
func stage(t testing.TB) *world {
	w := newWorld(t)
	w.do(EnsureTenant{Name: tenant, Currency: "USD", Opening: 100})
	w.do(CreateEndpoint{Endpoint: Endpoint{ID: hookID, Tenant: tenant, URL: "https://a.example/", Scheme: "standard"}})
	w.tick(time.Second)
	return w
}

func (w *world) account() Account { return w.accounts[w.tenants[tenant].Account] }

func (w *world) submit(up Upstream, key string, price pawl.Amount) Operation {
	w.t.Helper()
	out := w.do(Submit{
		Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(key), Window: 24 * time.Hour, Up: up, Model: "m",
		Input: "{}", Deadline: w.now.Add(time.Hour), Price: pawl.Money{Amount: price, Currency: "USD"}, Metered: price > 0,
	})
	if out.Err != nil {
		w.t.Fatal(out.Err)
	}
	return out.Value.(Submitted).Operation
}

// lease leases what is due for one operation and fails if it is another action.
func (w *world) lease(up Upstream, id pawl.ID, want Action) Lease {
	w.t.Helper()
	op := w.ops[id]
	w.now = max(w.now, op.DueAt)
	out := w.do(LeaseWork{Queue: WorkQueueID(op.Queue, op.Upstream, op.Tenant), Limit: 10, Up: up})
	for _, l := range out.Value.([]Lease) {
		if l.Operation.ID == id && l.Action == want {
			return l
		}
	}
	w.t.Fatalf("no lease to %s of %s: %s %v", want, id.Text("op"), out.Reason, out.Value)
	return Lease{}
}

func (w *world) create(up Upstream, id pawl.ID, how CreateOutcome, task string) Operation {
	w.t.Helper()
	l := w.lease(up, id, ActSubmit)
	return w.answer(up, l, how, task)
}

func (w *world) answer(up Upstream, l Lease, how CreateOutcome, task string) Operation {
	w.t.Helper()
	out := w.do(RecordCreate{Up: up, Operation: l.Operation.ID, Fence: l.Fence, Outcome: how, Task: task, ErrorCode: pawl.FailInvalidRequest})
	if out.Err != nil {
		w.t.Fatal(out.Err)
	}
	return w.ops[l.Operation.ID]
}

func (w *world) running(up Upstream, key string, price pawl.Amount) Operation {
	w.t.Helper()
	return w.create(up, w.submit(up, key, price).ID, CreateAccepted, "task-"+key)
}

func obs(task string, s pawl.State) Observation {
	return Observation{Task: task, Word: s.String(), State: s, Progress: -1, Result: `{"ok":true}`}
}

func (w *world) event(up Upstream, token pawl.ID, id string, o Observation) Received {
	w.t.Helper()
	out := w.do(ReceiveEvent{Up: up, Token: token, Event: id, Type: "t", Obs: o, Body: id, Digest: digest(id + o.Word)})
	if out.Err != nil {
		w.t.Fatal(out.Err)
	}
	return out.Value.(Received)
}

func (w *world) read(up Upstream, id pawl.ID, how ReadOutcome, o Observation) Operation {
	w.t.Helper()
	l := w.lease(up, id, ActRead)
	w.do(ObserveStatus{Up: up, Operation: id, Fence: l.Fence, Outcome: how, Obs: o})
	return w.ops[id]
}

func (w *world) open(id pawl.ID, reason pawl.Reason) Review {
	for _, r := range w.reviews {
		if r.Operation == id && r.Reason == reason && r.ClosedAt == 0 {
			return r
		}
	}
	return Review{}
}

func (w *world) resolve(up Upstream, r Review, decision string) Outcome {
	return w.once(ResolveReview{Review: r.ID, Operation: r.Operation, Event: r.Event, Delivery: r.Delivery, Endpoint: r.Endpoint, Source: r.Source, Whose: r.Tenant, Up: up, Decision: decision})
}

// types are the types of an operation's events in the order of versions.
func (w *world) types(id pawl.ID) (types []string) {
	for _, e := range sortedEvents(w.facts(id).Outbound) {
		types = append(types, e.Type)
	}
	return types
}

func expectVerdict(t *testing.T, what string, got pawl.Verdict, want pawl.Verdict) {
	t.Helper()
	if got != want {
		t.Errorf("%s: verdict %s, want %s", what, got, want)
	}
}

func expectState(t *testing.T, what string, op Operation, want pawl.State) {
	t.Helper()
	if op.State != want {
		t.Errorf("%s: state %s, want %s", what, op.State, want)
	}
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
