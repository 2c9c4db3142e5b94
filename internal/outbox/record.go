package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// The pauses between two tries of a record.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Record stores what an attempt came to and gives its slot back. While the
// store fails it goes on trying until the context ends; then the lease runs out
// and the delivery is tried again. An attempt that the end of the context cut
// short is not recorded but handed back.
func (o *Outbox) Record(ctx context.Context, a Attempt) {
	if a.aborted {
		o.Release(ctx, a.job)
		return
	}
	// The wire is free; what is left is ours.
	o.slots.ended(a.job.delivery.Endpoint, a.command.Status >= 200 && a.command.Status <= 299)
	o.finish(a.job)
	o.o.Metrics.Attempts.Inc()
	o.o.Metrics.AttemptSeconds.Observe(a.command.Duration.Seconds())
	out, err := o.persist(ctx, a.command)
	o.Wake() // The delivery may be due before its lease would have run out.
	if err != nil {
		o.o.Log.Error("an attempt could not be recorded; it will be made again", a.attrs(slog.Any("error", err))...)
		return
	}
	row, ok := out.Value.(ledger.Delivery)
	if outcome := outcomeOf(out.Reason, row); ok && outcome != "" {
		o.o.Metrics.Deliveries.WithLabelValues(outcome).Inc()
	}
	level := slog.LevelDebug
	if out.Reason == "dead" {
		level = slog.LevelWarn
	}
	o.o.Log.Log(ctx, level, "delivery attempt", a.attrs(slog.String("outcome", out.Reason), slog.String("reason", row.Reason))...)
}

// Release hands a claimed job back unsent, so that another claim takes it, and
// gives its slot back. If the store fails, the lease runs out by itself.
func (o *Outbox) Release(ctx context.Context, j Job) {
	defer o.finish(j)
	_, err := o.do(ctx, ledger.ReleaseDelivery{Header: o.header(), Delivery: j.delivery.ID, Fence: j.delivery.Lease})
	if err != nil {
		o.o.Log.Warn("a delivery could not be handed back; its lease will run out", "delivery", j.String(), "error", err)
	}
}

// finish gives the slot back and lets the loop use it.
func (o *Outbox) finish(j Job) {
	o.slots.give(j.delivery.Endpoint, 1)
	o.Wake()
}

// persist repeats the command, which is safe to run twice, until it is decided.
func (o *Outbox) persist(ctx context.Context, c ledger.Command) (ledger.Outcome, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		out, err := o.do(ctx, c)
		var refusal *pawl.Error
		if err == nil || errors.Is(err, store.ErrClosed) || errors.As(err, &refusal) {
			return out, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return out, err
		}
	}
}

// do has a command decided even if the context has ended: what is known by
// then is worth one try.
func (o *Outbox) do(ctx context.Context, c ledger.Command) (ledger.Outcome, error) {
	out, err := o.o.Store.Do(context.WithoutCancel(ctx), c)
	if err == nil && out.Err != nil {
		err = out.Err
	}
	return out, err
}

// outcomeOf is the metric's word for what a record came to, empty for an
// attempt under an old lease.
func outcomeOf(reason string, row ledger.Delivery) string {
	switch {
	case reason == "delivered" || reason == "retried" || reason == "dead":
		return reason
	case reason == "recorded" && row.State == pawl.DeliverySkipped:
		return "skipped"
	case reason == "recorded":
		// A delivered one that was sent once more by hand stays delivered.
		return "delivered"
	default:
		return ""
	}
}

// attrs name the attempt by ids and numbers: no address, no payload.
func (a Attempt) attrs(more ...slog.Attr) []any {
	d := a.job.delivery
	all := []any{
		slog.String("delivery", d.ID.Text(pawl.PrefixDelivery)), slog.String("event", d.Event.Text(pawl.PrefixEvent)),
		slog.String("endpoint", d.Endpoint.Text(pawl.PrefixEndpoint)), slog.Int("attempt", int(d.Attempts)+1),
		slog.Int("status", int(a.command.Status)), slog.String("failure", a.command.Error),
	}
	for _, m := range more {
		all = append(all, m)
	}
	return all
}

// freeAtOnce is how many leases are looked up and handed back at a time.
const freeAtOnce = 200

// FreeLeases hands back every leased delivery. It is for the start of a node on
// a ledger that one node at a time can open: the file lock proves the holders
// dead (3-architecture, "Due work"). It must not run beside Run.
func (o *Outbox) FreeLeases(ctx context.Context) error {
	for after := (pawl.ID{}); ; {
		rows, err := o.o.Reader.LeasedDeliveries(ctx, store.Page{After: after, Limit: freeAtOnce})
		if err != nil {
			return fmt.Errorf("outbox: free leases: %w", err)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := o.free(ctx, rows); err != nil {
			return fmt.Errorf("outbox: free leases: %w", err)
		}
		after = rows[len(rows)-1].ID
	}
}

// free issues the commands at once, so that they share a commit, and goes on
// trying with those that failed.
func (o *Outbox) free(ctx context.Context, rows []ledger.Delivery) error {
	commands := make([]ledger.Command, len(rows))
	for i, d := range rows {
		commands[i] = ledger.ReleaseDelivery{Header: o.header(), Delivery: d.ID, Fence: d.Lease}
	}
	var errs []error
	for i, r := range o.o.Store.DoAll(context.WithoutCancel(ctx), commands...) {
		if failed(r) != nil {
			_, err := o.persist(ctx, commands[i])
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
