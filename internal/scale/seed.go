package scale

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Lives is how many operations are lived through before they are repeated.
const Lives = 400

// The names in a filled ledger. Creates at Closed are paused.
const (
	Studio = "studio"
	Lab    = "lab"
	Closed = "closed"
	Shop   = "shop"
)

// Tenants are those who own the operations: the first half of them, the last a
// single one of each copy.
var tenants = [...]string{"acme", "globex", "initech", "tiny"}

// The shares of what operations come to, by their number within a copy. All
// others succeed.
const (
	pendingUpTo     = 2
	canceledUpTo    = 6
	expiredUpTo     = 8
	runningUpTo     = 11
	unconfirmedUpTo = 12
	refusedUpTo     = 20
	failedUpTo      = 36
	conflictUpTo    = 44
)

// longAgo is long enough that no deadline and no read comes due in a filled
// ledger.
const longAgo = 2 * 365 * 24 * time.Hour

// policy is what decisions know of an upstream of a filled ledger.
func policy(name string) ledger.Upstream {
	return ledger.Upstream{
		Name: name, Adapter: "sim/1", Callbacks: true, Reads: true, ReadFirst: longAgo, ReadMax: longAgo, ReadFactor: 1500, Timeout: time.Second,
		SubmitAttempts: 3, SettleWithin: longAgo, ParkOrphans: true, OrphanLimit: 10_000, Owner: "the team", Cancels: true,
	}
}

// filler has commands decided, and keeps the first thing that went wrong.
type filler struct {
	ctx   context.Context
	store *store.Committer
	read  store.Reader
	keys  map[string]ledger.APIKey
	err   error
}

// do has commands decided together and gives what each answered with.
func (f *filler) do(commands ...ledger.Command) []any {
	values := make([]any, len(commands))
	if f.err != nil {
		return values
	}
	for i, r := range f.store.DoAll(f.ctx, commands...) {
		switch {
		case r.Err != nil:
			f.err = r.Err
		case r.Outcome.Err != nil:
			f.err = fmt.Errorf("%T: %w", commands[i], r.Outcome.Err)
		}
		values[i] = r.Outcome.Value
	}
	return values
}

// payload is 200 bytes of JSON.
func payload(n int) string {
	text := fmt.Sprintf(`{"number":%d,"prompt":""}`, n)
	return strings.Replace(text, `""`, `"`+strings.Repeat("p", 200-len(text))+`"`, 1)
}

func head() ledger.Header { return store.NewHeader("") }

// seed lives the lives.
func seed(ctx context.Context, d store.Driver) error {
	f := &filler{ctx: ctx, store: store.NewCommitter(d, store.Options{}), read: d, keys: make(map[string]ledger.APIKey)}
	f.owners()
	ops := f.submitted()
	f.created(ops)
	f.ended(ops)
	f.alone()
	f.delivered()
	return f.end()
}

func (f *filler) end() error {
	if err := f.store.Close(); f.err == nil {
		f.err = err
	}
	return f.err
}

// owners makes the tenants, each with a key and an endpoint; acme has another
// one that is disabled, and globex one that refuses everything.
func (f *filler) owners() {
	for _, t := range tenants {
		f.do(ledger.EnsureTenant{Header: head(), Name: t, Currency: "USD", Opening: 1_000_000_000 * pawl.AmountScale})
		key := ledger.APIKey{ID: store.NewID(), Tenant: t, Name: t, Hash: sha256.Sum256([]byte(t + store.NewID().String())), Scopes: ledger.ScopeAdmin}
		f.keys[t] = key
		f.do(ledger.CreateKey{Header: head(), Key: key}, f.endpoint(t, "in"))
	}
	off := true
	f.do(f.endpoint("globex", "refuses"))
	if down := f.do(f.endpoint("acme", "down"))[0]; f.err == nil {
		f.do(ledger.ChangeEndpoint{Header: head(), ID: down.(ledger.Endpoint).ID, Action: "endpoint.update", Change: ledger.EndpointChange{Disabled: &off, DisabledReason: "by_hand"}})
	}
	f.do(ledger.PauseUpstream{Header: head(), Upstream: Closed, Reason: "for ever"})
}

func (f *filler) endpoint(tenant, path string) ledger.Command {
	types := "operation.failed,operation.succeeded,task.updated"
	if path == "down" {
		types = "operation.failed"
	}
	return ledger.CreateEndpoint{Header: head(), Endpoint: ledger.Endpoint{
		ID: store.NewID(), Tenant: tenant, URL: "http://127.0.0.1:9/" + path, Scheme: "standard-webhooks", Description: path, Types: types,
	}}
}

func tenantOf(n int) string {
	switch {
	case n == Lives-1:
		return "tiny"
	case n%10 < 5:
		return "acme"
	case n%10 < 8:
		return "globex"
	}
	return "initech"
}

func upstreamOf(n int) string {
	switch {
	case n < expiredUpTo:
		return Closed
	case n%3 == 0:
		return Lab
	}
	return Studio
}

// submitted submits all operations.
func (f *filler) submitted() []ledger.Operation {
	commands := make([]ledger.Command, Lives)
	for n := range commands {
		t, up := tenantOf(n), upstreamOf(n)
		deadline := pawl.TimeOf(time.Now().Add(longAgo))
		if n >= canceledUpTo && n < expiredUpTo {
			deadline = pawl.TimeOf(time.Now())
		}
		commands[n] = ledger.Submit{
			Header: store.NewHeader(f.keys[t].ID.Text(pawl.PrefixKey)), Tenant: t, APIKey: f.keys[t].ID, Key: fmt.Sprint("key-", n), Window: 24 * time.Hour,
			Fingerprint: ledger.Digest{byte(n), byte(n >> 8)}, Up: policy(up), Model: fmt.Sprint("model-", n%4), RequestID: fmt.Sprint("req_", n),
			Input: payload(n), Metadata: fmt.Sprintf(`{"order":"o-%d","plan":"plan-%d"}`, n, n%7), CorrelationID: fmt.Sprint("order-", n), Owner: "the team",
			Deadline: deadline, Metered: true, Price: pawl.Money{Currency: "USD", Amount: 150_000_000},
		}
	}
	ops := make([]ledger.Operation, Lives)
	for n, value := range f.do(commands...) {
		if f.err == nil {
			ops[n] = value.(ledger.Submitted).Operation
		}
	}
	return ops
}

// created leases what is due and records how each create ended.
func (f *filler) created(ops []ledger.Operation) {
	number := make(map[pawl.ID]int)
	for n, op := range ops {
		number[op.ID] = n
	}
	var commands []ledger.Command
	for _, up := range []string{Studio, Lab} {
		for _, t := range tenants {
			leased := f.do(ledger.LeaseWork{Header: head(), Queue: ledger.WorkQueueID(ledger.SubmitQueue, up, t), Limit: Lives, Up: policy(up)})[0]
			leases, _ := leased.([]ledger.Lease)
			for _, l := range leases {
				n := number[l.Operation.ID]
				c := ledger.RecordCreate{
					Header: head(), Up: policy(up), Operation: l.Operation.ID, Fence: l.Fence, Outcome: ledger.CreateAccepted, Task: fmt.Sprint("task-", n), RequestID: fmt.Sprint("theirs-", n),
				}
				switch {
				case n >= runningUpTo && n < unconfirmedUpTo:
					c.Outcome, c.Task = ledger.CreateUnknown, ""
				case n >= unconfirmedUpTo && n < refusedUpTo:
					c.Outcome, c.Task, c.ErrorCode, c.ErrorMessage = ledger.CreateRefused, "", pawl.FailContentRejected, "the subject is not permitted"
				}
				commands = append(commands, c)
			}
		}
	}
	f.do(commands...)
}

// ended ends the operations: by callbacks, by a cancel, or by the clock.
func (f *filler) ended(ops []ledger.Operation) {
	var first, second []ledger.Command
	for n, op := range ops {
		up := policy(op.Upstream)
		switch {
		case n < pendingUpTo, n >= expiredUpTo && n < refusedUpTo:
		case n < canceledUpTo:
			first = append(first, ledger.Cancel{Header: head(), Operation: op.ID, Up: up})
		case n < expiredUpTo:
			first = append(first, ledger.EndLate{Header: head(), Up: up, Operation: op.ID})
		default:
			state := pawl.Succeeded
			if n < failedUpTo {
				state = pawl.Failed
			}
			if n%4 == 0 {
				first = append(first, f.callback(n, op, "progress", pawl.Running))
			}
			second = append(second, f.callback(n, op, "end", state))
			if n >= failedUpTo && n < conflictUpTo {
				second = append(second, f.callback(n, op, "other", pawl.Failed))
			}
			if n%25 == 0 {
				second = append(second, f.callback(n, op, "late", pawl.Running))
			}
		}
	}
	f.do(first...)
	f.do(second...)
	var looks []ledger.Command
	for n := 0; n < Lives; n += 4 {
		looks = append(looks, ledger.RecordAccess{
			Header: store.NewHeader(f.keys[tenantOf(n)].ID.Text(pawl.PrefixKey)), Tenant: tenantOf(n), Action: "operation.input", Subject: ops[n].ID.Text(pawl.PrefixOperation),
		})
	}
	f.do(looks...)
}

func (f *filler) callback(n int, op ledger.Operation, event string, state pawl.State) ledger.Command {
	obs := ledger.Observation{Task: fmt.Sprint("task-", n), Word: state.String(), State: state, Progress: -1}
	switch state {
	case pawl.Running:
		obs.Progress = 5000
	case pawl.Succeeded:
		obs.Result, obs.HasCost, obs.Cost, obs.CostText, obs.Settled = payload(n), true, 120_000_000, "0.12", ledger.SettledYes
	default:
		obs.ErrorCode, obs.ErrorWord, obs.ErrorMessage = pawl.FailGeneration, "broken", "the model gave up"
	}
	body := payload(n)
	return ledger.ReceiveEvent{
		Header: head(), Up: policy(op.Upstream), Token: op.ID, Event: fmt.Sprint(event, "-", n), Type: "task.updated", Obs: obs,
		Body: body, Headers: `{"content-type":"application/json"}`, Digest: sha256.Sum256([]byte(body)),
	}
}

// alone receives what belongs to no operation: an orphan, events that cannot be
// used, and those of a generic source.
func (f *filler) alone() {
	body := payload(0)
	of := func(up ledger.Upstream, event string) ledger.ReceiveEvent {
		return ledger.ReceiveEvent{Header: head(), Up: up, Event: event, Type: "task.updated", Body: body, Headers: `{}`, Digest: sha256.Sum256([]byte(body))}
	}
	orphan := of(policy(Studio), "orphan")
	orphan.Obs = ledger.Observation{Task: "task-orphan", Word: "succeeded", State: pawl.Succeeded, Progress: -1, Result: body}
	rejected := of(policy(Studio), "rejected")
	rejected.Obs.Task, rejected.Preset, rejected.Reason = "task-rejected", pawl.Rejected, "payload_version"
	word := of(policy(Lab), "word")
	word.Obs.Task, word.Preset, word.Reason = "task-word", pawl.UnknownState, "no such word"
	if value := f.do(orphan)[0]; f.err == nil {
		f.do(ledger.OrphanOverdue{Header: head(), Event: value.(ledger.Received).Event, Owner: "the team"})
	}
	// Such events are refused, and stored nevertheless.
	f.store.DoAll(f.ctx, rejected, word)
	shop := ledger.Upstream{Name: Shop, Generic: true, Tenant: "initech", Owner: "the shop"}
	for n := range 12 {
		f.do(of(shop, fmt.Sprint("paid-", n)))
	}
}

// delivered makes the due deliveries: globex's endpoint that refuses has dead
// letters, all others get what they want, some of it at the second try.
func (f *filler) delivered() {
	for round := range 3 {
		var commands []ledger.Command
		for _, ep := range f.endpoints() {
			leased := f.do(ledger.LeaseDeliveries{Header: head(), Endpoint: ep.ID, Limit: 20 * Lives, Timeout: time.Second})[0]
			rows, _ := leased.([]ledger.Delivery)
			for n, row := range rows {
				c := ledger.RecordAttempt{
					Header: head(), Delivery: row.ID, Endpoint: ep.ID, Fence: row.Lease, Policy: ledger.DefaultPolicy(), At: pawl.TimeOf(time.Now()), Duration: 20 * time.Millisecond,
					Status: 200, Excerpt: "ok", Target: "http://127.0.0.1:9", Body: payload(n),
				}
				if row.Inbound {
					c.Event = row.Event
				}
				switch {
				case ep.Description == "refuses" && n%8 == 0:
					c.Status, c.Excerpt = 400, "no such hook"
				case round == 0 && n%16 == 1:
					c.Status, c.Excerpt = 503, "busy"
					c.Policy.Schedule = []time.Duration{0, 0}
				}
				commands = append(commands, c)
			}
		}
		f.do(commands...)
	}
}

func (f *filler) endpoints() (all []ledger.Endpoint) {
	if f.err == nil {
		all, f.err = f.read.Endpoints(f.ctx, store.EndpointFilter{}, store.Page{Limit: 100})
	}
	return all
}
