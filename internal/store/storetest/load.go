package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// loadStep is how many operations go through their life together.
const loadStep = 200

// Load fills a ledger with n operations by its own commands, so that it keeps the
// rules: each is submitted, and all but the last of every two hundred are created
// and end by a callback, with money and with events that wait to be delivered.
func Load(ctx context.Context, commands store.Commands, n int) error {
	l := &loader{ctx: ctx, commands: commands, up: upstreams[0]}
	l.do(ledger.EnsureTenant{Header: store.NewHeader(""), Name: "t", Currency: "USD", Opening: pawl.Amount(n) * 1000})
	l.do(ledger.CreateEndpoint{Header: store.NewHeader(""), Endpoint: ledger.Endpoint{ID: store.NewID(), Tenant: "t", URL: "https://receiver.example/", Scheme: "standard-webhooks", Secret: "sealed"}})
	for first := 0; first < n && l.err == nil; first += loadStep {
		l.some(first, min(first+loadStep, n))
	}
	return l.err
}

type loader struct {
	ctx      context.Context
	commands store.Commands
	up       ledger.Upstream
	err      error
}

// do runs commands in one commit and gives their values.
func (l *loader) do(all ...ledger.Command) (values []any) {
	if l.err != nil || len(all) == 0 {
		return nil
	}
	for _, r := range l.commands.DoAll(l.ctx, all...) {
		if r.Err != nil || r.Outcome.Err != nil {
			l.err = errors.Join(l.err, r.Err)
			if r.Outcome.Err != nil {
				l.err = errors.Join(l.err, r.Outcome.Err)
			}
		}
		values = append(values, r.Outcome.Value)
	}
	return values
}

func (l *loader) some(first, end int) {
	var all []ledger.Command
	for i := first; i < end; i++ {
		input := fmt.Sprintf(`{"prompt":"a red kite, number %d"}`, i)
		all = append(all, ledger.Submit{
			Header: store.NewHeader(""), Tenant: "t", APIKey: keyOf("t"), Key: fmt.Sprint("load-", i), Fingerprint: sha256.Sum256([]byte(input)), Window: 24 * time.Hour,
			Up: l.up, Model: "kite", Input: input, Metadata: `{"order":"17"}`, Deadline: pawl.TimeOf(time.Now().Add(time.Hour)),
			Price: pawl.Money{Amount: 1000, Currency: "USD"}, Metered: true,
		})
	}
	l.do(all...)
	var leases []ledger.Lease
	queue := ledger.WorkQueueID(ledger.SubmitQueue, l.up.Name, "t")
	for _, v := range l.do(ledger.LeaseWork{Header: store.NewHeader(""), Queue: queue, Limit: end - first - 1, Up: l.up}) {
		leases, _ = v.([]ledger.Lease)
	}
	var creates, callbacks []ledger.Command
	for _, lease := range leases {
		task := lease.Operation.ID.Text("job")
		creates = append(creates, ledger.RecordCreate{Header: store.NewHeader(""), Up: l.up, Operation: lease.Operation.ID, Fence: lease.Fence, Outcome: ledger.CreateAccepted, Task: task})
		body := fmt.Sprintf(`{"data":{"taskId":%q,"state":"succeeded"}}`, task)
		callbacks = append(callbacks, ledger.ReceiveEvent{
			Header: store.NewHeader(""), Up: l.up, Token: lease.Operation.ID, Event: "end-" + task, Type: "task", Body: body, Digest: sha256.Sum256([]byte(body)),
			Obs: ledger.Observation{
				Task: task, Word: "succeeded", State: pawl.Succeeded, Progress: -1, Cost: 900, HasCost: true, CostText: "0.0000009", Currency: "USD",
				Settled: ledger.SettledYes, Result: `{"text":"a kite"}`,
			},
		})
	}
	l.do(creates...)
	l.do(callbacks...)
}
