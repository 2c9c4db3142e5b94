package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// hands is the upstream of own workers.
var hands = ledger.Upstream{
	Name: "hands", Adapter: ledger.WorkerAdapter, Worker: true, WorkLease: time.Minute, Cancels: true, Timeout: time.Second, SubmitAttempts: 3,
	SettleWithin: time.Hour, Owner: "us",
}

// workers are what own workers do, and what is done for their operations.
func workers() []Generator {
	lease := Generator{Name: "LeaseForWorker", Repeat: []string{"*"}, Make: leaseForWorker}
	end := Generator{Name: "CompleteWork", Make: onWork(func(t *rapid.T, l Live, _ ledger.Operation, id ledger.WorkLeaseID) ledger.Command {
		c := ledger.CompleteWork{
			Header: l.Header, Tenant: drawTenant(t), Lease: id, Up: hands, Result: pick(t, "result", `{"url":"x"}`, ""), Canceled: pick(t, "canceled", false, false, true),
		}
		if c.HasCost = rapid.Bool().Draw(t, "cost"); c.HasCost {
			c.Cost, c.CostText, c.Currency = pick[pawl.Amount](t, "total", 10, 30, 40), "1", pick(t, "currency", "USD", "EUR")
		}
		return c
	})}
	return []Generator{
		{Name: "Submit for workers", Repeat: []string{"audits"}, Make: func(t *rapid.T, l Live) ledger.Command {
			c := submit(t, l).(ledger.Submit)
			c.Up, c.Model = hands, pick(t, "model", "m", "n")
			return c
		}},
		lease, lease, end,
		{Name: "FailWork", Make: onWork(func(t *rapid.T, l Live, _ ledger.Operation, id ledger.WorkLeaseID) ledger.Command {
			return ledger.FailWork{Header: l.Header, Lease: id, Up: hands, Code: pawl.FailGeneration, Message: "m", Retryable: rapid.Bool().Draw(t, "retryable")}
		})},
		{Name: "Heartbeat", Make: onWork(func(t *rapid.T, l Live, _ ledger.Operation, id ledger.WorkLeaseID) ledger.Command {
			return ledger.Heartbeat{Header: l.Header, Tenant: drawTenant(t), Lease: id, Up: hands}
		})},
		{Name: "ReportProgress", Make: onWork(func(t *rapid.T, l Live, _ ledger.Operation, id ledger.WorkLeaseID) ledger.Command {
			return ledger.ReportProgress{Header: l.Header, Lease: id, Progress: pick[int32](t, "progress", -1, 10, 5000), Message: pick(t, "message", "", "a", "b")}
		})},
		{Name: "ReturnWork", Make: onWork(func(_ *rapid.T, l Live, _ ledger.Operation, id ledger.WorkLeaseID) ledger.Command {
			return ledger.ReturnWork{Header: l.Header, Lease: id}
		})},
		{Name: "SpareWork", Make: onWork(func(_ *rapid.T, l Live, op ledger.Operation, _ ledger.WorkLeaseID) ledger.Command {
			return ledger.SpareWork{Header: l.Header, Operation: op.ID, Up: hands}
		})},
		{Name: "LeaseWork for workers", Repeat: []string{"*"}, Make: func(t *rapid.T, l Live) ledger.Command {
			q := ledger.WorkQueueID(pick(t, "queue", ledger.SubmitQueue, ledger.ReadQueue), hands.Name, drawTenant(t))
			return ledger.LeaseWork{Header: l.Header, Queue: q, Limit: 2, Up: hands}
		}},
		{Name: "Advance for workers", Make: onWork(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.WorkLeaseID) ledger.Command {
			return ledger.Advance{Header: l.Header, Up: hands, Operation: op.ID, Fence: fence(t, op.Lease)}
		})},
		{Name: "LoseLease for workers", Make: onWork(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.WorkLeaseID) ledger.Command {
			return ledger.LoseLease{Header: l.Header, Operation: op.ID, Fence: fence(t, op.Lease)}
		})},
		{Name: "Cancel for workers", Make: onWork(func(t *rapid.T, l Live, op ledger.Operation, _ ledger.WorkLeaseID) ledger.Command {
			return ledger.Cancel{Header: l.Header, Once: perhaps(t, op.Tenant), Tenant: op.Tenant, Operation: op.ID, Up: hands}
		})},
	}
}

// onWork makes commands about own workers' operations, under the latest lease
// or the one before.
func onWork(make func(*rapid.T, Live, ledger.Operation, ledger.WorkLeaseID) ledger.Command) func(*rapid.T, Live) ledger.Command {
	return func(t *rapid.T, l Live) ledger.Command {
		all, err := l.Operations(context.Background(), store.OperationFilter{Upstream: hands.Name}, wide)
		op, ok := pickRow(t, "operation", all, err)
		if !ok {
			return nil
		}
		return make(t, l, op, ledger.WorkLeaseID{Operation: op.ID, Attempt: op.Creates - pick[int32](t, "old", 0, 0, 0, 1)})
	}
}

func leaseForWorker(t *rapid.T, l Live) ledger.Command {
	lines, err := l.WorkLines(context.Background(), 50)
	line, ok := pickRow(t, "line", lines, err)
	if !ok {
		return nil
	}
	c := ledger.LeaseForWorker{Header: l.Header, Tenant: pick(t, "of", "", line.Tenant, drawTenant(t)), Limit: rapid.IntRange(1, 2).Draw(t, "limit")}
	waiting, err := l.WorkWaiting(context.Background(), line, pick(t, "by", l.Now, pawl.Never-1), 3)
	if err != nil {
		panic(err)
	}
	for _, id := range waiting {
		c.Offers = append(c.Offers, ledger.WorkOffer{Operation: id, Up: hands})
	}
	return c
}
