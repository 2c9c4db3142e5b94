package sqlite

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// shop runs the ledger's own commands through a committer, by a clock of its
// own.
type shop struct {
	t    testing.TB
	c    *store.Committer
	up   ledger.Upstream
	now  pawl.Time
	seed uint64
	key  pawl.ID
}

const shopTenant = "acme"

// newShop opens a shop on an empty ledger: a tenant with credit, an upstream
// that is not idempotent, an endpoint that wants everything and one that wants
// ends.
func newShop(t testing.TB, d store.Driver) *shop {
	s := &shop{
		t: t, c: store.NewCommitter(d, store.Options{}), now: 1_760_000_000_000_000, key: testID(1),
		up: ledger.Upstream{
			Name: "studio", Adapter: "media-v2/1", Callbacks: true, Reads: true, ReadFirst: 2 * time.Second, ReadMax: 15 * time.Second,
			ReadFactor: 1500, Timeout: 30 * time.Second, SubmitAttempts: 3, SettleWithin: time.Hour, ParkOrphans: true,
			OrphanGrace: time.Minute, OrphanLimit: 10, Owner: "studio team",
		},
	}
	t.Cleanup(func() {
		if err := s.c.Close(); err != nil {
			t.Error(err)
		}
	})
	s.do(ledger.EnsureTenant{Header: s.head(), Name: shopTenant, Currency: "USD", Opening: 1000})
	for n, types := range []string{"", pawl.TypeSucceeded + "," + pawl.TypeFailed} {
		s.do(ledger.CreateEndpoint{Header: s.head(), Endpoint: ledger.Endpoint{
			ID: testID(10 + n), Tenant: shopTenant, URL: "https://example.com/hook", Scheme: "standard", Secret: "s", Types: types,
		}})
	}
	return s
}

// head is the header of the next command, a second later.
func (s *shop) head() ledger.Header {
	s.now = s.now.Add(time.Second)
	s.seed++
	h := ledger.Header{Now: s.now, Actor: "someone"}
	binary.BigEndian.PutUint64(h.Seed[:], s.seed)
	return h
}

func (s *shop) do(c ledger.Command) ledger.Outcome {
	s.t.Helper()
	out, err := s.c.Do(s.t.Context(), c)
	if err != nil || out.Err != nil {
		s.t.Fatalf("%T: %v, %v", c, err, out.Err)
	}
	return out
}

// submit records an operation of a model, which names it in a test; a price of
// 0 leaves it unmetered.
func (s *shop) submit(model string, price pawl.Amount, callback string) ledger.Operation {
	s.t.Helper()
	h := s.head()
	return s.do(ledger.Submit{
		Header: h, Tenant: shopTenant, APIKey: s.key, Key: model, Fingerprint: ledger.Digest{1}, Window: 24 * time.Hour, Up: s.up,
		Model: model, Input: `{"prompt":"x"}`, Deadline: h.Now.Add(time.Hour), CallbackURL: callback, CallbackScheme: "standard",
		Metered: price > 0, Price: pawl.Money{Amount: price, Currency: "USD"},
	}).Value.(ledger.Submitted).Operation
}

// create leases the operation's create and records its outcome.
func (s *shop) create(op ledger.Operation, how ledger.CreateOutcome) {
	s.t.Helper()
	leases := s.do(ledger.LeaseWork{Header: s.head(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, s.up.Name, shopTenant), Limit: 9, Up: s.up})
	for _, l := range leases.Value.([]ledger.Lease) {
		if l.Operation.ID != op.ID {
			s.t.Fatal("another operation is due")
		}
		s.do(ledger.RecordCreate{Header: s.head(), Up: s.up, Operation: op.ID, Fence: l.Fence, Outcome: how, Task: "task-" + op.Model, ErrorCode: pawl.FailInvalidRequest})
	}
}

// event is a callback about a task.
func (s *shop) event(task, id string, state pawl.State, cost pawl.Amount) {
	s.t.Helper()
	o := ledger.Observation{Task: task, Word: state.String(), State: state, Progress: -1, Result: `{"url":"x"}`}
	if cost > 0 {
		o.HasCost, o.Cost, o.CostText, o.Settled = true, cost, cost.String(), ledger.SettledYes
	}
	s.do(ledger.ReceiveEvent{Header: s.head(), Up: s.up, Event: id, Type: "task.updated", Obs: o, Body: "body", Digest: ledger.Digest{2}})
}

// deliver leases up to n deliveries of an endpoint and records an answer.
func (s *shop) deliver(endpoint pawl.ID, n int, status int32) {
	s.t.Helper()
	for _, row := range s.do(ledger.LeaseDeliveries{Header: s.head(), Endpoint: endpoint, Limit: n, Timeout: time.Second}).Value.([]ledger.Delivery) {
		s.do(ledger.RecordAttempt{
			Header: s.head(), Delivery: row.ID, Endpoint: endpoint, Fence: row.Lease, Policy: ledger.DefaultPolicy(), At: s.now, Status: status, Body: "{}",
		})
	}
}

// wholeLedger fills an empty ledger with operations in every state and what
// belongs to them. Each operation is named by its model.
func wholeLedger(t testing.TB, d store.Driver) {
	s := newShop(t, d)
	all, ends := testID(10), testID(11)
	finish := func(model string, price, cost pawl.Amount, state pawl.State) {
		s.create(s.submit(model, price, ""), ledger.CreateAccepted)
		s.event("task-"+model, "end-"+model, state, cost)
	}
	finish("settled", 10, 4, pawl.Succeeded)
	finish("whole", 10, 10, pawl.Succeeded)
	finish("failed", 20, 0, pawl.Failed)
	finish("canceled", 20, 3, pawl.Canceled)
	finish("expired", 20, 0, pawl.Expired)
	finish("unmetered", 0, 0, pawl.Succeeded)
	s.create(s.submit("refused", 5, ""), ledger.CreateRefused)
	s.create(s.submit("unconfirmed", 30, ""), ledger.CreateUnknown)
	s.create(s.submit("running", 40, ""), ledger.CreateAccepted)
	called := s.submit("called", 0, "https://example.com/callback")
	s.create(called, ledger.CreateAccepted)
	s.deliver(all, 3, 200)
	s.deliver(all, 2, 400)
	s.deliver(all, 2, 503)
	s.deliver(ends, 2, 200)
	s.deliver(called.Callback, 1, 200)
	s.event("task-nobody", "orphan", pawl.Succeeded, 0)
	s.submit("pending", 7, "")
	s.do(ledger.PublishEvent{Header: s.head(), Tenant: "t", ID: "own-1", Type: "order.paid", Data: "{}", Digest: ledger.Digest{3}})
}
