package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// TestIdempotency is 1-product A2 to A7 and R2 to R6.
func TestIdempotency(t *testing.T) {
	up := upstream()
	base := Submit{Tenant: tenant, APIKey: apiKey, Key: "k", Fingerprint: digest("f"), Window: 24 * time.Hour, Up: up,
		Deadline: deadline, Price: pawl.Money{Amount: 10, Currency: "USD"}, Metered: true, Metadata: "{}"}
	w := stage(t)
	op := w.do(base).Value.(Submitted).Operation
	with := func(change func(*Submit)) Outcome {
		c := base
		change(&c)
		return w.do(c)
	}
	replayed := func(what string, out Outcome) {
		t.Helper()
		if out.Err != nil || !out.Value.(Submitted).Replayed || out.Value.(Submitted).Operation.ID != op.ID {
			t.Errorf("%s: %+v, want a replay", what, out)
		}
	}
	replayed("same", w.do(base))
	replayed("other metadata, deadline and price", with(func(c *Submit) {
		c.Metadata, c.Deadline, c.Price.Amount = `{"a":1}`, deadline+1, 99
	}))
	other := with(func(c *Submit) { c.Fingerprint = digest("g") })
	expect(t, "other fingerprint", other.Err.Kind, pawl.Unprocessable)
	expect(t, "names the operation", other.Err.Operation, op.ID)
	sibling := with(func(c *Submit) { c.APIKey = pawl.NewID(start, 7) })
	expect(t, "sibling", sibling.Err.Kind, pawl.Conflicting)
	expect(t, "no id for the sibling", sibling.Err.Operation, pawl.ID{})
	expect(t, "sibling, other body", with(func(c *Submit) { c.APIKey, c.Fingerprint = pawl.NewID(start, 7), digest("g") }).Err.Kind, pawl.Conflicting)
	w.do(EnsureTenant{Name: "other"})
	elsewhere := with(func(c *Submit) { c.Tenant, c.Metered = "other", false })
	expect(t, "another tenant never notices", elsewhere.Value.(Submitted).Replayed, false)
	expect(t, "one reservation", w.account().Reserved, 10)
	expect(t, "a credit under the same key", w.do(Credit{Account: w.account().ID, Amount: 1, Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: "k"}}).Err.Kind, pawl.Unprocessable)

	w.tick(25 * time.Hour)
	replayed("expired, but unfinished (R3)", w.do(base))
	a := w.lease(up, op.ID, ActAdvance)
	w.do(Advance{Up: up, Operation: op.ID, Fence: a.Fence})
	expect(t, "expired and finished", w.do(base).Value.(Submitted).Replayed, false)
	w.sound()
}

// TestRefusals: what is refused leaves the key free, and nothing but the
// refusal of a lack of credit in the audit (A7, R6, R27).
func TestRefusals(t *testing.T) {
	base := Submit{Tenant: tenant, APIKey: apiKey, Key: "k", Fingerprint: digest("f"), Window: time.Hour, Up: upstream(),
		Deadline: deadline, Price: pawl.Money{Amount: 101, Currency: "USD"}, Metered: true}
	cases := map[string]struct {
		change func(*Submit)
		kind   pawl.Kind
		fate   Fate
		audits int
	}{
		"no credit":          {func(*Submit) {}, pawl.PaymentRequired, Refused, 1},
		"other currency":     {func(c *Submit) { c.Price.Currency = "EUR" }, pawl.Unprocessable, Dropped, 0},
		"no account":         {func(c *Submit) { c.Tenant = "poor" }, pawl.Unprocessable, Dropped, 0},
		"another's account":  {func(c *Submit) { c.Account = pawl.NewID(start, 9) }, pawl.NotFound, Dropped, 0},
		"a price below zero": {func(c *Submit) { c.Price.Amount = -1 }, pawl.Invalid, Dropped, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := stage(t)
			w.do(EnsureTenant{Name: "poor"})
			was := len(w.audits)
			cmd := base
			c.change(&cmd)
			out := w.do(cmd)
			expect(t, "kind", out.Err.Kind, c.kind)
			expect(t, "fate", out.Fate, c.fate)
			expect(t, "audits", len(w.audits)-was, c.audits)
			expect(t, "operations", len(w.ops), 0)
			expect(t, "keys", len(w.idem), 0)
			expect(t, "reserved", w.account().Reserved, 0)
			w.sound()
		})
	}
	w := stage(t)
	w.do(base)
	w.do(Credit{Account: w.account().ID, Amount: 1, Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: "c", Window: time.Hour}})
	expect(t, "after a 402 the key is free", w.do(base).Err == nil, true)
	second := base
	second.Key, second.Price.Amount = "l", 1
	expect(t, "what is reserved is not there for another", w.do(second).Err.Kind, pawl.PaymentRequired)
	w.sound()
}

// TestOneBatch: identical submits in one batch make one operation (A5).
func TestOneBatch(t *testing.T) {
	w := stage(t)
	c := Submit{Tenant: tenant, APIKey: apiKey, Key: "k", Fingerprint: digest("f"), Window: time.Hour, Up: upstream(), Deadline: deadline,
		Price: pawl.Money{Amount: 10, Currency: "USD"}, Metered: true}
	commands := make([]Command, 100)
	for i := range commands {
		commands[i] = c
	}
	outs := w.batch(commands...)
	for _, out := range outs {
		expect(t, "operation", out.Value.(Submitted).Operation.ID, outs[0].Value.(Submitted).Operation.ID)
	}
	expect(t, "operations", len(w.ops), 1)
	expect(t, "reserved", w.account().Reserved, 10)
	w.sound()
}

// TestWindows: what earlier commands of a batch have done to a queue is seen,
// and rows beyond what was loaded are a miss, never a guess.
func TestWindows(t *testing.T) {
	up := upstream()
	w := stage(t)
	for i := range 7 {
		w.submit(up, string(rune('a'+i)), 0)
		w.tick(time.Second)
	}
	q := WorkQueueID(SubmitQueue, "s", tenant)
	lease := LeaseWork{Queue: q, Limit: 2, Up: up}
	seen := map[pawl.ID]bool{}
	last := pawl.Time(0)
	for _, out := range w.batch(lease, lease, lease, lease, lease) {
		for _, l := range out.Value.([]Lease) {
			if seen[l.Operation.ID] || l.Operation.CreatedAt < last {
				t.Errorf("leased twice or out of turn: %s", l.Operation.ID.Text("op"))
			}
			seen[l.Operation.ID], last = true, l.Operation.CreatedAt
		}
	}
	expect(t, "leased", len(seen), 7)
	expect(t, "next due", w.queues[q].NextDue, w.now.Add(up.Timeout+LeaseMargin))
	w.sound()

	rows := new(Rows)
	rows.Queues.Loaded(q, Queue{ID: q}, true)
	rows.Queues.Loaded(GateID("s"), Queue{}, false)
	rows.DueWorkLoaded(Window{q, 1}, []Operation{{ID: pawl.NewID(1, 1), DueAt: 1, Queue: SubmitQueue, Upstream: "s", Tenant: tenant, State: pawl.Pending}, {ID: pawl.NewID(2, 2), DueAt: 2, Queue: SubmitQueue, Upstream: "s", Tenant: tenant, State: pawl.Pending}})
	d := NewDraft(rows)
	one := LeaseWork{Queue: q, Limit: 1, Up: up}
	if _, miss := d.Run(one, 10); miss != nil {
		t.Fatal("the first misses")
	}
	if _, miss := d.Run(one, 10); miss == nil || len(miss.Keys.DueWork) != 1 {
		t.Error("the second must ask for the window anew: more rows may be due")
	}
}

// broken is a command with a fault.
type broken struct{ Header }

func (c broken) Head() Header { return c.Header }
func (c broken) Keys(k *Keys) { k.Tenants = add(k.Tenants, tenant) }
func (c broken) Decide(d *Draft) Outcome {
	d.Tenants.Put(tenant, Tenant{Name: "broken"})
	d.keep(pawl.NewID(1, 1), InputPayload, "x")
	d.audit(tenant, "broken", "", "")
	panic("secret")
}

// TestPanicsLeaveNothing: a fault is that command's error alone.
func TestPanicsLeaveNothing(t *testing.T) {
	rows := new(Rows)
	rows.Tenants.Loaded(tenant, Tenant{Name: tenant}, true)
	d := NewDraft(rows)
	out, miss := d.Run(broken{}, start)
	if miss != nil || out.Err == nil || out.Err.Kind != pawl.Internal {
		t.Errorf("outcome %+v", out)
	}
	if _, ok := out.Value.(Panic); !ok {
		t.Error("nothing for the log")
	}
	for range rows.Tenants.Changes() {
		t.Error("a change was left")
	}
	expect(t, "payloads", len(rows.Payloads), 0)
	expect(t, "audits", len(rows.Audits), 0)
	out, _ = d.Run(EnsureTenant{Name: tenant}, start)
	expect(t, "the next command", out.Reason, "exists")
	expect(t, "audits", len(rows.Audits), 0)
}

// TestDeterministic: the same command on the same rows decides the same.
func TestDeterministic(t *testing.T) {
	run := func() []part {
		w := stage(t)
		op := w.running(upstream(), "a", 10)
		w.event(upstream(), op.ID, "e1", obs("task-a", pawl.Succeeded))
		w.attempt(w.leaseDelivery(hookID), 500)
		return w.dump()
	}
	a, b := run(), run()
	if d := firstDifference(a, b); d != "" {
		t.Error(d)
	}
}

// TestOrderOfEndpoints: what a decision makes does not depend on the order in
// which its batch happened to load endpoints.
func TestOrderOfEndpoints(t *testing.T) {
	one, two := pawl.NewID(start, 11), pawl.NewID(start, 12)
	made := func(ids ...pawl.ID) *Rows {
		rows := new(Rows)
		rows.EndpointSetLoaded(tenant)
		for _, id := range ids {
			rows.Endpoints.Loaded(id, Endpoint{ID: id, Tenant: tenant, Kind: WebhookEndpoint}, true)
			rows.Queues.Loaded(DeliveryQueueID(id), Queue{}, false)
		}
		d := NewDraft(rows)
		d.Header = seed(1)
		d.emit(&Operation{ID: one, Tenant: tenant, Version: 1}, pawl.TypeRunning)
		d.apply()
		return rows
	}
	a, b := made(one, two), made(two, one)
	for id, row := range a.Deliveries.All() {
		other, _ := b.Deliveries.Get(id)
		expect(t, "delivery", other, row)
	}
}

// TestKeysAndTenants: administration twice changes nothing.
func TestKeysAndTenants(t *testing.T) {
	w := stage(t)
	key := APIKey{ID: apiKey, Tenant: "new", Hash: digest("s"), Scopes: ScopeSubmit}
	expect(t, "created", w.do(CreateKey{Key: key}).Reason, "created")
	expect(t, "tenant", w.tenants["new"].Name, "new")
	expect(t, "another tenant's", w.do(RevokeKey{Tenant: tenant, ID: apiKey}).Err.Kind, pawl.NotFound)
	w.do(RevokeKey{Tenant: "new", ID: apiKey})
	key.Hash = digest("t")
	expect(t, "replaced", w.once(CreateKey{Key: key}).Reason, "replaced")
	expect(t, "lives again", w.apiKeys[apiKey].RevokedAt, 0)
	kept := w.apiKeys[apiKey]
	key.Hash = digest("u")
	out := w.once(CreateKey{Key: key, Keep: true})
	expect(t, "kept", out.Reason, "exists")
	expect(t, "the one in force", out.Value.(APIKey), kept)
	expect(t, "unchanged", w.apiKeys[apiKey], kept)
	w.do(EnsureTenant{Name: tenant, Currency: "USD", Opening: 50})
	expect(t, "the opening credit is booked once", w.account().Credited, 100)
	w.sound()
}
