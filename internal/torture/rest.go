package torture

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/sim"
)

// rest is what everybody holds once nothing happens any more.
type rest struct {
	operations map[string]client.Operation
	callbacks  []client.StoredEvent
	deliveries []client.Delivery
	account    client.Account
	provider   sim.Books
	receiver   sim.ReceiverBooks
	// open says what has not come to rest although it had the time.
	open []string
}

// rest waits until nothing is under way: every operation has ended and is
// settled, or nobody can know what became of it; no callback and no delivery
// waits. What does not come to rest in time is told in the result.
func (r *run) rest(ctx context.Context) (rest, error) {
	until, tell := time.Now().Add(r.o.Patience), time.Now()
	for quiet := 0; ; {
		open, err := r.open(ctx)
		if err != nil {
			return rest{}, err
		}
		if quiet++; len(open) > 0 {
			quiet = 0
		}
		if quiet == 3 || time.Now().After(until) {
			return r.gather(ctx, open)
		}
		if len(open) > 0 && time.Now().After(tell) {
			tell = time.Now().Add(5 * time.Second)
			r.tell("%d still under way, such as %s", len(open), open[0])
		}
		if err := pause(ctx, time.Second); err != nil {
			return rest{}, err
		}
	}
}

// open says what is still under way.
func (r *run) open(ctx context.Context) (open []string, err error) {
	known := r.knowable(r.sim.Snapshot())
	all, err := r.operations(ctx)
	if err != nil {
		return nil, err
	}
	for n, id := range r.load.answered {
		op, ok := all[id]
		ended := op.State.Terminal() && op.Cost != nil && op.Cost.Settled
		if ok && !ended && (op.State != pawl.Unconfirmed || known[n]) {
			open = append(open, fmt.Sprintf("operation %d, %s of %s, which is %s at version %d, next check %s", n, id, op.Upstream, op.State, op.Version, op.NextCheckAt))
		}
	}
	for _, state := range [...]string{"pending", "delivering"} {
		waiting, err := client.Collect(r.load.client.Deliveries(ctx, client.DeliveryFilter{State: state}), 0)
		if err != nil {
			return nil, err
		}
		for _, d := range waiting {
			open = append(open, fmt.Sprintf("delivery %s of %s, which is %s after %d attempts, next at %s: %d %s", d.ID, d.OperationID, d.State, d.Attempts, d.NextAttemptAt, d.LastStatus, d.LastError))
		}
	}
	soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if r.sim.Wait(soon) != nil {
		open = append(open, "a callback of the provider")
	}
	return open, ctx.Err()
}

func (r *run) operations(ctx context.Context) (map[string]client.Operation, error) {
	all := make(map[string]client.Operation)
	for op, err := range r.load.client.Operations(ctx, client.OperationFilter{}) {
		if err != nil {
			return nil, err
		}
		all[op.ID] = op
	}
	return all, nil
}

// gather reads what everybody holds.
func (r *run) gather(ctx context.Context, open []string) (at rest, err error) {
	at = rest{provider: r.sim.Snapshot(), receiver: r.sink.Snapshot(), open: open}
	if at.operations, err = r.operations(ctx); err != nil {
		return at, err
	}
	if at.callbacks, err = all(r.load.client.Events(ctx, client.EventFilter{Direction: "inbound"})); err != nil {
		return at, err
	}
	if at.deliveries, err = all(r.load.client.Deliveries(ctx, client.DeliveryFilter{})); err != nil {
		return at, err
	}
	accounts, err := all(r.load.client.Accounts(ctx))
	if err == nil && len(accounts) != 1 {
		err = fmt.Errorf("there are %d accounts", len(accounts))
	}
	if err == nil {
		at.account = accounts[0]
	}
	return at, err
}

func all[T any](rows iter.Seq2[T, error]) ([]T, error) { return client.Collect(rows, 0) }

// knowable says of which operations Pawl can know what became of them, by their
// numbers: their creates can be repeated, or the provider finds their task by
// our reference, or it has told of the task and was answered 2xx. A repeat that
// is refused says nothing of a create that was interrupted before it: that is
// held, after the last of some minutes of repeats.
func (r *run) knowable(books sim.Books) map[int]bool {
	known := make(map[int]bool)
	for n := range r.plan.Len() {
		script, _ := r.plan.Script(n)
		known[n] = script.Dialect.Idempotent() && script.Create != sim.CreateRefused
	}
	for _, op := range books.Operations {
		script, _ := r.plan.Script(op.N)
		for _, t := range op.Tasks {
			known[op.N] = known[op.N] || script.Lookup || t.Known
		}
	}
	return known
}
