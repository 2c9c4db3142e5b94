package storetest

import (
	"context"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// inbound is what upstreams send.
func inbound() []Generator {
	// A repeat is counted, and what leaves its key free is stored each time.
	repeated := []string{"event keys", "events", "payloads", "history", "sources", "unknown types"}
	return []Generator{
		{Name: "ReceiveEvent", Make: receiveEvent, Repeat: repeated},
		{Name: "ReceiveEvent", Make: receiveEvent, Repeat: repeated},
		{Name: "ReceiveEvent", Make: receiveEvent, Repeat: repeated},
		{Name: "ReceiveHint", Make: func(t *rapid.T, l Live) ledger.Command {
			c := ledger.ReceiveHint{Header: l.Header, Up: pick(t, "upstream", upstreams...), Task: pick(t, "task", "", drawTaskName(t))}
			if op, up, ok := l.operation(t); ok && rapid.Bool().Draw(t, "token") {
				c.Token, c.Up = op.ID, up
				c.Task = pick(t, "names", "", op.Task, c.Task)
			}
			return c
		}},
		{Name: "ReprocessEvent", Repeat: []string{"events", "history", "audits"}, Make: reprocessEvent},
		{Name: "OrphanOverdue", Make: func(t *rapid.T, l Live) ledger.Command {
			all, err := l.Parked(context.Background(), pawl.Never, 20)
			e, ok := pickRow(t, "parked", all, err)
			if !ok {
				return nil
			}
			return ledger.OrphanOverdue{Header: l.Header, Event: e.ID, Owner: "ops"}
		}},
	}
}

// reprocessEvent judges a stored event anew, often as a description reads it
// that was mended since.
func reprocessEvent(t *rapid.T, l Live) ledger.Command {
	all, err := l.Events(context.Background(), store.EventFilter{Direction: ledger.Inbound}, wide)
	e, ok := pickRow(t, "stored", all, err)
	if !ok {
		return nil
	}
	c := receiveEvent(t, l).(ledger.ReceiveEvent)
	c.Up, c.Token, c.Body, c.Headers, c.Digest = upstreamOf(e.Source), e.Operation, "", "", ledger.Digest{}
	c.Up.Confirm = rapid.Bool().Draw(t, "confirm")
	if rapid.Bool().Draw(t, "same ids") {
		c.Event, c.Obs.Task = e.ExternalID, e.Task
	}
	return ledger.ReprocessEvent{ReceiveEvent: c, Tenant: pick(t, "tenant", "", "", e.Tenant, "u"), ID: e.ID, Whose: e.Tenant}
}

func receiveEvent(t *rapid.T, l Live) ledger.Command {
	c := ledger.ReceiveEvent{
		Header: l.Header, Up: pick(t, "upstream", upstreams...), Event: pick(t, "event", "e0", "e1", "e2"), Type: "task.updated",
		Obs: observation(t, drawTaskName(t)), Body: "body", Headers: "h", Digest: ledger.Digest{pick[byte](t, "body", 1, 1, 2)},
		Traceparent: drawTraceparent(t),
	}
	if op, up, ok := l.operation(t); ok && rapid.Bool().Draw(t, "token") {
		c.Token, c.Up = op.ID, up
		if op.Task != "" && rapid.Bool().Draw(t, "own task") {
			c.Obs.Task = op.Task
		}
	}
	c.Up.Confirm = pick(t, "confirm", false, false, false, true)
	c.Preset = pick(t, "preset", 0, 0, 0, 0, 0, 0, pawl.UnknownType, pawl.UnknownState, pawl.Rejected)
	if c.Preset != 0 {
		c.Reason = c.Preset.String()
	}
	return c
}

// outbound is what goes to endpoints.
func outbound() []Generator {
	lease := Generator{Name: "LeaseDeliveries", Repeat: []string{"*"}, Make: func(t *rapid.T, l Live) ledger.Command {
		endpoint := id(200)
		if q, ok := readyQueue(t, l, ledger.DeliveryQueue); ok {
			endpoint = q.Endpoint
		}
		return ledger.LeaseDeliveries{Header: l.Header, Endpoint: endpoint, Limit: rapid.IntRange(1, 3).Draw(t, "limit"), Timeout: 15 * time.Second}
	}}
	record := Generator{Name: "RecordAttempt", Make: recordAttempt}
	return []Generator{
		lease, lease, record, record,
		{Name: "PublishEvent", Repeat: []string{"events", "payloads", "deliveries", "queues"}, Make: func(t *rapid.T, l Live) ledger.Command {
			tenant := drawTenant(t)
			c := ledger.PublishEvent{
				Header: l.Header, Tenant: tenant, ID: pick(t, "own id", "", "own0", "own1"), Type: pick(t, "own type", "x.y", "z"),
				Data: `{"n":1}`, Digest: ledger.Digest{pick[byte](t, "data", 1, 1, 2)}, Traceparent: drawTraceparent(t),
			}
			if rapid.Bool().Draw(t, "keyed") {
				c.Once = ledger.Once{APIKey: keyOf(tenant), KeyTenant: tenant, Key: drawKey(t), Window: time.Hour}
			}
			return c
		}},
		{Name: "CreateEndpoint", Make: func(t *rapid.T, l Live) ledger.Command {
			n := rapid.IntRange(0, 3).Draw(t, "endpoint")
			// The last one is the installation's.
			tenant := append(tenants, tenants[0], "")[n]
			return ledger.CreateEndpoint{Header: l.Header, Endpoint: ledger.Endpoint{
				ID: id(200 + n), Tenant: tenant, URL: pick(t, "url", "https://example.com/hook", "https://example.com/hook", ledger.FeedURL), Scheme: "standard", Secret: "s",
				Types: pick(t, "types", "", pawl.TypeSucceeded+","+pawl.TypeFailed, "gen.paid", pawl.TypeLooseReview), Owner: "ops",
				Content: pick(t, "content", "", ledger.OriginalContent), CompleteWithin: completeWithin(t),
			}}
		}},
		{Name: "ChangeEndpoint", Make: func(t *rapid.T, l Live) ledger.Command {
			n := rapid.IntRange(0, 2).Draw(t, "endpoint")
			c := ledger.ChangeEndpoint{Header: l.Header, Tenant: tenants[n%2], ID: id(200 + n), Action: "change"}
			disabled, types := rapid.Bool().Draw(t, "disabled"), pick(t, "types", "", pawl.TypeRunning)
			switch pick(t, "change", "disable", "types", "secret", "delete", "version") {
			case "disable":
				c.Change.Disabled, c.Change.DisabledReason = &disabled, "by hand"
			case "types":
				c.Change.Types = &types
			case "secret":
				c.Change.Secret, c.Change.FormerUntil = "s2", l.Now.Add(time.Hour)
				c.Change.PublicKey, c.Change.Scheme = pick(t, "public key", "", "p"), pick(t, "scheme", "", "standard-v1a")
			case "delete":
				c.Change.Delete = true
			case "version":
				c.IfVersion, c.Change.Types = 99, &types
			}
			return c
		}},
		{Name: "TestEndpoint", Repeat: []string{"events", "payloads", "deliveries", "queues", "audits"}, Make: func(t *rapid.T, l Live) ledger.Command {
			n := rapid.IntRange(0, 2).Draw(t, "endpoint")
			c := ledger.TestEndpoint{Header: l.Header, Tenant: tenants[n%2], Endpoint: id(200 + n), Type: pawl.TypeSucceeded, Data: `{"n":1}`}
			if rapid.Bool().Draw(t, "keyed") {
				c.Once = ledger.Once{APIKey: keyOf(c.Tenant), KeyTenant: c.Tenant, Key: drawKey(t), Window: time.Hour}
			}
			return c
		}},
		{Name: "RetryDelivery", Repeat: []string{"audits"}, Make: onDelivery(func(t *rapid.T, l Live, row ledger.Delivery) ledger.Command {
			return ledger.RetryDelivery{Header: l.Header, Tenant: row.Tenant, Delivery: row.ID, Endpoint: row.Endpoint, Force: rapid.Bool().Draw(t, "force")}
		})},
		{Name: "ReleaseDelivery", Make: onDelivery(func(t *rapid.T, l Live, row ledger.Delivery) ledger.Command {
			return ledger.ReleaseDelivery{Header: l.Header, Delivery: row.ID, Fence: fence(t, row.Lease)}
		})},
		{Name: "RepairQueue", Make: onDelivery(func(_ *rapid.T, l Live, row ledger.Delivery) ledger.Command {
			return ledger.RepairQueue{Header: l.Header, Queue: ledger.DeliveryQueueID(row.Endpoint)}
		})},
	}
}

func onDelivery(make func(*rapid.T, Live, ledger.Delivery) ledger.Command) func(*rapid.T, Live) ledger.Command {
	return func(t *rapid.T, l Live) ledger.Command {
		row, ok := l.delivery(t)
		if !ok {
			return nil
		}
		return make(t, l, row)
	}
}

var recordAttempt = onDelivery(func(t *rapid.T, l Live, row ledger.Delivery) ledger.Command {
	c := ledger.RecordAttempt{
		Header: l.Header, Delivery: row.ID, Endpoint: row.Endpoint, Fence: fence(t, row.Lease), At: l.Now, Duration: time.Second,
		Policy: pick(t, "policy", ledger.DefaultPolicy(), ledger.BodyTimestampPolicy()), Body: "sent",
		Status: pick[int32](t, "status", 200, 204, 500, 429, 400, 410, 0),
	}
	if row.Inbound && rapid.Bool().Draw(t, "event known") {
		c.Event = row.Event
	}
	if c.Status == 0 {
		c.Failure, c.Error = pick(t, "failure", ledger.NoAnswer, ledger.EgressRefused, ledger.Unsendable), "failed"
	}
	return c
})

// decisions are what people decide.
func decisions() []Generator {
	words := []string{pawl.DecideCreated, pawl.DecideNotCreated, pawl.DecideFailed, pawl.DecideExpired, pawl.DecideKeep, pawl.DecideRead, pawl.DecideRetry, pawl.DecideDiscard}
	return []Generator{
		{Name: "ResolveOperation", Make: onOperation(func(t *rapid.T, l Live, op ledger.Operation, up ledger.Upstream) ledger.Command {
			return ledger.ResolveOperation{
				Header: l.Header, Tenant: op.Tenant, Operation: op.ID, Up: up, Decision: pick(t, "decision", words[:4]...),
				Task: pick(t, "task", "", drawTaskName(t)),
			}
		})},
		{Name: "ResolveReview", Make: func(t *rapid.T, l Live) ledger.Command {
			all, err := l.Reviews(context.Background(), store.ReviewFilter{Open: true}, wide)
			r, ok := pickRow(t, "review", all, err)
			if !ok {
				return nil
			}
			up := upstreams[0]
			if ops, err := l.Operations(context.Background(), store.OperationFilter{Upstream: "down"}, wide); err == nil {
				for _, op := range ops {
					if op.ID == r.Operation {
						up = upstreams[1]
					}
				}
			}
			c := ledger.ResolveReview{
				Header: l.Header, Tenant: r.Tenant, Review: r.ID, Operation: r.Operation, Event: r.Event, Delivery: r.Delivery,
				Endpoint: r.Endpoint, Source: r.Source, Whose: r.Tenant, Up: up, Decision: pick(t, "decision", append(r.Reason.Rule().Decisions, words[0])...),
				Task: drawTaskName(t),
			}
			if r.Reason == pawl.ReviewOrphan {
				l.orphan(t, &c)
			}
			return c
		}},
	}
}
