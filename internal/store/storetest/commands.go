package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Commands are generators of the ledger's commands, over few names, so that
// they meet, and mostly about what the ledger holds and has leased just then.
// Those in front are drawn more often.
func Commands() []Generator {
	return slices.Concat(work(), workers(), inbound(), inbox(), outbound(), decisions(), corrections(), accounts(), sealing(), artifactCommands(), removals(), replaying())
}

// The worlds that the commands move in: two upstreams that differ in all that
// decisions ask about, two tenants with one API key each.
var (
	upstreams = []ledger.Upstream{
		{
			Name: "up", Adapter: "media-v2/1", Idempotent: true, IdempotencyWindow: time.Hour, Callbacks: true, Reads: true,
			ReadFirst: 2 * time.Second, ReadMax: 15 * time.Second, ReadFactor: 1500, Timeout: 30 * time.Second, SubmitAttempts: 3,
			SettleWithin: time.Hour, ParkOrphans: true, OrphanGrace: time.Minute, OrphanLimit: 3, Owner: "ops",
			Cancels: true,
		},
		{
			Name: "down", Adapter: "plain/1", Reads: true, Lookups: true, ReadFirst: time.Second, ReadMax: time.Minute, ReadFactor: 2000,
			Timeout: 10 * time.Second, SubmitAttempts: 2, SettleWithin: time.Minute, AcceptLateSuccess: true, Tenant: "t",
		},
	}
	tenants = []string{"t", "u"}
)

func keyOf(tenant string) pawl.ID { return id(100 + slices.Index(tenants, tenant)) }

func pick[V any](t *rapid.T, label string, from ...V) V {
	return rapid.SampledFrom(from).Draw(t, label)
}

// pickRow is one of the rows that a list gives; false where there are none.
func pickRow[R any](t *rapid.T, label string, rows []R, err error) (row R, ok bool) {
	if err != nil {
		panic(err)
	}
	if len(rows) == 0 {
		return row, false
	}
	return rapid.SampledFrom(rows).Draw(t, label), true
}

var wide = store.Page{Limit: 50}

// operation is one of all operations, or, half of the time, of the leased.
func (l Live) operation(t *rapid.T) (ledger.Operation, ledger.Upstream, bool) {
	all, err := l.Operations(context.Background(), store.OperationFilter{}, wide)
	if leased, err := l.LeasedOperations(context.Background(), wide); err == nil && len(leased) > 0 && rapid.Bool().Draw(t, "leased") {
		all = leased
	}
	all = slices.DeleteFunc(all, func(o ledger.Operation) bool { return o.Upstream == hands.Name })
	op, ok := pickRow(t, "operation", all, err)
	return op, upstreamOf(op.Upstream), ok
}

func (l Live) delivery(t *rapid.T) (ledger.Delivery, bool) {
	all, err := l.Deliveries(context.Background(), store.DeliveryFilter{}, wide)
	if leased, err := l.LeasedDeliveries(context.Background(), wide); err == nil && len(leased) > 0 && rapid.Bool().Draw(t, "leased") {
		all = leased
	}
	return pickRow(t, "delivery", all, err)
}

func upstreamOf(name string) ledger.Upstream {
	switch name {
	case "down":
		return upstreams[1]
	case hands.Name:
		return hands
	}
	return upstreams[0]
}

// fence is the lease's own number, or an old one.
func fence(t *rapid.T, lease int64) int64 { return lease - pick[int64](t, "old", 0, 0, 0, 1) }

func drawTenant(t *rapid.T) string { return pick(t, "tenant", tenants...) }

func drawTaskName(t *rapid.T) string { return fmt.Sprint("task", rapid.IntRange(0, 4).Draw(t, "task")) }

func accounts() []Generator {
	return []Generator{
		{Name: "EnsureTenant", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.EnsureTenant{Header: l.Header, Name: drawTenant(t), Currency: pick(t, "currency", "USD", ""), Opening: 50}
		}},
		{Name: "Credit", Make: func(t *rapid.T, l Live) ledger.Command {
			tenant := drawTenant(t)
			all, err := l.Accounts(context.Background(), tenant, wide)
			account, ok := pickRow(t, "account", all, err)
			if !ok {
				return nil
			}
			return ledger.Credit{
				Header: l.Header, Tenant: tenant, Account: account.ID, Amount: pick[pawl.Amount](t, "amount", 20, -30),
				Once: ledger.Once{APIKey: keyOf(tenant), KeyTenant: tenant, Key: drawKey(t), Window: time.Hour},
			}
		}},
		{Name: "CreateKey", Make: func(t *rapid.T, l Live) ledger.Command {
			tenant := drawTenant(t)
			return ledger.CreateKey{Header: l.Header, Keep: rapid.Bool().Draw(t, "keep"), Key: ledger.APIKey{
				ID: keyOf(tenant), Tenant: tenant, Hash: ledger.Digest{pick[byte](t, "hash", 1, 2)}, Scopes: ledger.ScopeSubmit,
			}}
		}},
		{Name: "RotateKey", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.RotateKey{
				Header: l.Header, ID: keyOf(drawTenant(t)), Hash: ledger.Digest{pick[byte](t, "hash", 1, 2, 3)}, FormerUntil: l.Now.Add(time.Hour),
			}
		}},
		{Name: "RotateWebhookSecret", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.RotateWebhookSecret{
				Header: l.Header, ID: keyOf(drawTenant(t)), Secret: pick[ledger.Sealed](t, "secret", "a", "b"), FormerUntil: l.Now.Add(time.Hour),
			}
		}},
		{Name: "ChangeKey", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.ChangeKey{Header: l.Header, Tenant: drawTenant(t), ID: keyOf(drawTenant(t)), Limits: pick(t, "limits",
				&ledger.KeyLimits{}, &ledger.KeyLimits{Budget: 60, Currency: "USD"}, &ledger.KeyLimits{Budget: 5, Currency: "EUR"},
				&ledger.KeyLimits{Upstreams: "up"})}
		}},
		{Name: "UseKey", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.UseKey{Header: l.Header, ID: keyOf(drawTenant(t))}
		}},
		{Name: "PauseUpstream", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.PauseUpstream{Header: l.Header, Upstream: pick(t, "upstream", upstreamNames[1:]...), Reason: pick(t, "why", "a", "b")}
		}},
		{Name: "ResumeUpstream", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.ResumeUpstream{
				Header: l.Header, Upstream: pick(t, "upstream", upstreamNames[1:]...), Queues: []ledger.QueueID{drawWorkQueue(t)},
			}
		}},
		{Name: "RevokeKey", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.RevokeKey{Header: l.Header, Tenant: drawTenant(t), ID: keyOf(drawTenant(t))}
		}},
		{Name: "RecordAccess", Repeat: []string{"audits"}, Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.RecordAccess{Header: l.Header, Tenant: drawTenant(t), Action: "operation.input", Subject: "s"}
		}},
	}
}

func drawKey(t *rapid.T) string { return fmt.Sprint("key", rapid.IntRange(0, 5).Draw(t, "key")) }

// work is the way of an operation to its upstream.
func work() []Generator {
	return []Generator{
		// A refusal for want of credit is written into the audit each time.
		{Name: "Submit", Make: submit, Repeat: []string{"audits"}},
		{Name: "Submit", Make: submit, Repeat: []string{"audits"}},
		{Name: "LeaseWork", Make: leaseWork, Repeat: []string{"*"}},
		{Name: "LeaseWork", Make: leaseWork, Repeat: []string{"*"}},
		{Name: "RecordCreate", Make: recordCreate},
		{Name: "RecordCreate", Make: recordCreate},
		{Name: "RecordLookup", Make: onCreated(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
			return ledger.RecordLookup{Header: l.Header, Up: up, Operation: op.ID, Fence: fence(t, op.Lease), Task: pick(t, "found", "", drawTaskName(t))}
		})},
		// An answer about another task is written down each time.
		{Name: "ObserveStatus", Repeat: []string{"history"}, Make: onOperation(observeStatus)},
		{Name: "Advance", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
			return ledger.Advance{Header: l.Header, Up: up, Operation: op.ID, Fence: fence(t, op.Lease)}
		})},
		{Name: "ReleaseLease", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.Upstream) ledger.Command {
			return ledger.ReleaseLease{Header: l.Header, Operation: op.ID, Fence: fence(t, op.Lease)}
		})},
		{Name: "LoseLease", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.Upstream) ledger.Command {
			return ledger.LoseLease{Header: l.Header, Operation: op.ID, Fence: fence(t, op.Lease)}
		})},
		{Name: "ReadNow", Repeat: []string{"history"}, Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
			return ledger.ReadNow{Header: l.Header, Tenant: drawTenant(t), Operation: op.ID, Up: up}
		})},
		{Name: "ReadMissed", Repeat: []string{"history"}, Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
			read := ledger.ReadNow{Header: l.Header, Tenant: drawTenant(t), Operation: op.ID, Up: up}
			return ledger.ReadMissed{ReadNow: read, Event: "evt-missed", Reason: "end"}
		})},
		{Name: "RepairQueue", Make: func(t *rapid.T, l Live) ledger.Command {
			return ledger.RepairQueue{Header: l.Header, Queue: drawWorkQueue(t)}
		}},
	}
}

// onOperation makes commands about operations that exist.
func onOperation(make func(*rapid.T, Live, ledger.Operation, ledger.Upstream) ledger.Command) func(*rapid.T, Live) ledger.Command {
	return func(t *rapid.T, l Live) ledger.Command {
		op, up, ok := l.operation(t)
		if !ok {
			return nil
		}
		return make(t, l, op, up)
	}
}

// onCreated makes commands about operations that a create was leased for:
// nobody else has an answer to record.
func onCreated(make func(*rapid.T, Live, ledger.Operation, ledger.Upstream) ledger.Command) func(*rapid.T, Live) ledger.Command {
	return onOperation(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
		lines, err := l.History(context.Background(), op.ID)
		if err != nil {
			panic(err)
		}
		if !slices.ContainsFunc(lines, func(h ledger.History) bool { return h.Kind == ledger.CreateLine }) {
			return nil
		}
		return make(t, l, op, up)
	})
}

// drawTraceparent is no trace context, or the example of W3C Trace Context.
func drawTraceparent(t *rapid.T) string {
	return pick(t, "traceparent", "", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
}

func submit(t *rapid.T, l Live) ledger.Command {
	tenant := drawTenant(t)
	c := ledger.Submit{
		Header: l.Header, Tenant: tenant, APIKey: keyOf(tenant), Key: drawKey(t), Fingerprint: ledger.Digest{pick[byte](t, "request", 1, 1, 2)},
		Window: time.Hour, Up: pick(t, "upstream", upstreams...), Model: "m", Input: `{"prompt":"x"}`, Metadata: pick(t, "metadata", "", `{"a":"b"}`),
		Deadline: l.Now.Add(pick(t, "deadline", time.Minute, 2*time.Hour)), CallbackURL: pick(t, "callback", "", "https://example.com/cb"),
		CallbackScheme: "standard", Metered: rapid.Bool().Draw(t, "metered"), Price: pawl.Money{Amount: 30, Currency: "USD"},
		CorrelationID: pick(t, "correlation", "", "", "c1", "c2"), Day: ledger.DayOf(l.Now), Hold: pick(t, "hold", false, false, true),
		Traceparent: drawTraceparent(t),
	}
	if pick(t, "limit", false, false, true) {
		c.Up.SpendPerDay, c.Up.SpendCurrency = 70, pick(t, "in", "", "USD")
	}
	if op, _, ok := l.operation(t); ok && op.Tenant == tenant && pick(t, "retry", false, false, true) {
		c.Work, c.Fingerprint, c.RetryOf = c.Fingerprint, ledger.Digest{9}, op.ID
	}
	return c
}

func drawWorkQueue(t *rapid.T) ledger.QueueID {
	return ledger.WorkQueueID(pick(t, "queue", ledger.SubmitQueue, ledger.ReadQueue), pick(t, "upstream", upstreamNames[1:]...), drawTenant(t))
}

func leaseWork(t *rapid.T, l Live) ledger.Command {
	q := drawWorkQueue(t)
	if ready, ok := readyQueue(t, l, ledger.SubmitQueue, ledger.ReadQueue); ok {
		q = ready
	}
	return ledger.LeaseWork{Header: l.Header, Queue: q, Limit: rapid.IntRange(1, 3).Draw(t, "limit"), Up: upstreamOf(q.Upstream)}
}

func readyQueue(t *rapid.T, l Live, kinds ...ledger.QueueKind) (ledger.QueueID, bool) {
	var all []ledger.Queue
	for _, kind := range kinds {
		for _, upstream := range upstreamNames {
			ready, err := l.Ready(context.Background(), kind, upstream, l.Now, 20)
			if err != nil {
				panic(err)
			}
			all = append(all, ready...)
		}
	}
	q, ok := pickRow(t, "ready", all, nil)
	return q.ID, ok
}

var recordCreate = onCreated(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
	return ledger.RecordCreate{
		Header: l.Header, Up: up, Operation: op.ID, Fence: fence(t, op.Lease), Task: drawTaskName(t),
		Outcome: pick(t, "outcome", ledger.CreateAccepted, ledger.CreateAccepted, ledger.CreateAccepted, ledger.CreateRefused,
			ledger.CreateUnauthorized, ledger.CreateWait, ledger.CreateNotWritten, ledger.CreateUnknown),
		ErrorCode: pawl.FailInvalidRequest, ErrorWord: "w", ErrorMessage: "m", RetryAfter: pick(t, "after", 0, time.Minute),
	}
})

func observeStatus(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
	return ledger.ObserveStatus{
		Header: l.Header, Up: up, Operation: op.ID, Fence: fence(t, op.Lease), Obs: observation(t, pick(t, "of", op.Task, op.Task, "other")),
		Outcome: pick(t, "outcome", ledger.ReadObserved, ledger.ReadObserved, ledger.ReadObserved, ledger.ReadNotFound, ledger.ReadOtherTask,
			ledger.ReadUnknownState, ledger.ReadUnreachable, ledger.ReadUnauthorized),
	}
}

func observation(t *rapid.T, task string) ledger.Observation {
	state := pick(t, "state", 0, pawl.Running, pawl.Running, pawl.Succeeded, pawl.Failed, pawl.Canceled, pawl.Expired)
	o := ledger.Observation{
		Task: task, State: state, Word: "w-" + state.String(), Progress: pick[int32](t, "progress", -1, 10, 5000),
		HasVersion: rapid.Bool().Draw(t, "versioned"), ProgressOnly: pick(t, "progress only", false, false, false, true),
	}
	if o.HasVersion {
		o.Version = rapid.Int64Range(1, 4).Draw(t, "version")
	}
	if rapid.Bool().Draw(t, "cost") {
		o.HasCost, o.Cost = true, pick[pawl.Amount](t, "total", 0, 10, 20, 40)
		o.CostText, o.Settled = o.Cost.String(), pick(t, "settled", ledger.SettledUnsaid, ledger.SettledNo, ledger.SettledYes)
		o.Currency = pick(t, "currency", "USD", "", "EUR")
	}
	if state == pawl.Succeeded {
		o.Result = pick(t, "result", `{"url":"x"}`, "", `{"url":"https://h/a?Expires=1760000900","all":["https://h/b","https://h/a?Expires=1760000900"]}`)
	}
	if state == pawl.Failed {
		o.ErrorCode, o.ErrorWord = pawl.FailGeneration, "boom"
	}
	return o
}
