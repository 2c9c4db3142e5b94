package inbox

import (
	"context"
	"time"
)

// Work runs fn for accepted events that are due and returns how many attempts
// it made. Each attempt is counted before it begins; fn and the mark that it is
// done are one transaction. Call it in a loop; several processes may. An error
// is the database's, not fn's, which is kept with the event.
func (in *Inbox[T]) Work(ctx context.Context, fn Func[T]) (attempts int, err error) {
	due, err := in.dueEvents(ctx)
	for _, r := range due {
		if err != nil || ctx.Err() != nil {
			break
		}
		var mine bool
		if mine, err = in.claimEvent(ctx, &r); err != nil || !mine {
			continue
		}
		attempts++
		if failed := in.attempt(ctx, r, fn); failed != nil {
			err = in.eventFailed(ctx, r, failed)
		}
	}
	return attempts, err
}

func (in *Inbox[T]) dueEvents(ctx context.Context) (due []Record, err error) {
	err = in.db.in(ctx, func(t tx[T]) error {
		return t.each(ctx, func(scan func(...any) error) error {
			var r Record
			err := scan(&r.Source, &r.ID, &r.Body, &r.Attempts)
			due = append(due, r)
			return err
		}, `SELECT source, id, body, attempts FROM inbox_events
			WHERE due_at > 0 AND due_at <= ? ORDER BY due_at, source, id LIMIT ?`, micros(in.now()), drainMost)
	})
	return due, err
}

// claimEvent counts an attempt and leases the event. Events whose attempts are
// used up, such as one that kills the process each time, go to review.
func (in *Inbox[T]) claimEvent(ctx context.Context, r *Record) (mine bool, err error) {
	err = in.db.in(ctx, func(t tx[T]) error {
		if r.Attempts >= in.opts.Attempts {
			_, err := t.exec(ctx, `UPDATE inbox_events SET state = 'review', due_at = 0
				WHERE source = ? AND id = ? AND attempts = ? AND due_at > 0`, r.Source, r.ID, r.Attempts)
			return err
		}
		n, err := t.exec(ctx, `UPDATE inbox_events SET attempts = attempts + 1, state = 'waiting', due_at = ?
			WHERE source = ? AND id = ? AND attempts = ? AND due_at > 0 AND due_at <= ?`,
			micros(in.now().Add(in.opts.Lease)), r.Source, r.ID, r.Attempts, micros(in.now()))
		mine = n == 1
		return err
	})
	r.Attempts++
	return mine, err
}

// attempt runs the work under the lease: whoever has begun later wins.
func (in *Inbox[T]) attempt(ctx context.Context, r Record, fn Func[T]) error {
	return in.db.in(ctx, func(t tx[T]) error {
		// The write comes first: it holds the row until the end.
		n, err := t.exec(ctx, `UPDATE inbox_events SET attempts = attempts
			WHERE source = ? AND id = ? AND attempts = ? AND due_at > 0`, r.Source, r.ID, r.Attempts)
		if err != nil || n == 0 {
			return err
		}
		_, err = in.run(ctx, t, r.Event, fn)
		return err
	})
}

func (in *Inbox[T]) eventFailed(ctx context.Context, r Record, failed error) error {
	ctx = context.WithoutCancel(ctx)
	state, due := Waiting, micros(in.now().Add(in.opts.wait(r.Attempts)))
	if r.Attempts >= in.opts.Attempts {
		state, due = Review, 0
	}
	return in.db.in(ctx, func(t tx[T]) error {
		_, err := t.exec(ctx, `UPDATE inbox_events SET state = ?, due_at = ?, last_error = ?
			WHERE source = ? AND id = ? AND attempts = ? AND due_at > 0`,
			string(state), due, excerpt(failed), r.Source, r.ID, r.Attempts)
		return err
	})
}

// Sweep lists up to limit events that were received at least age ago and are
// not done, oldest first: what was accepted and never finished. Run it now and
// then, and tell somebody of what it finds.
func (in *Inbox[T]) Sweep(ctx context.Context, age time.Duration, limit int) (open []Record, err error) {
	err = in.db.in(ctx, func(t tx[T]) error {
		return t.each(ctx, func(scan func(...any) error) error {
			r, err := scanRecord(scan)
			open = append(open, r)
			return err
		}, `SELECT source, id, state, body, attempts, effects, received_at, due_at, last_error FROM inbox_events
			WHERE state <> 'done' AND received_at <= ? ORDER BY received_at, source, id LIMIT ?`,
			micros(in.now().Add(-age)), limit)
	})
	return open, err
}

// Get is a stored event, or [ErrUnknownEvent].
func (in *Inbox[T]) Get(ctx context.Context, source, id string) (r Record, err error) {
	found := false
	err = in.db.in(ctx, func(t tx[T]) error {
		return t.each(ctx, func(scan func(...any) error) (err error) {
			found = true
			r, err = scanRecord(scan)
			return err
		}, `SELECT source, id, state, body, attempts, effects, received_at, due_at, last_error FROM inbox_events
			WHERE source = ? AND id = ?`, source, id)
	})
	if err == nil && !found {
		err = ErrUnknownEvent
	}
	return r, err
}

func scanRecord(scan func(...any) error) (Record, error) {
	var r Record
	var received, due int64
	err := scan(&r.Source, &r.ID, (*string)(&r.State), &r.Body, &r.Attempts, &r.Effects, &received, &due, &r.LastError)
	r.ReceivedAt, r.NextAttemptAt = timeOf(received), timeOf(due)
	return r, err
}

// Retry starts an event in review again, with all its attempts: its work, or
// those of its effects that were given up.
func (in *Inbox[T]) Retry(ctx context.Context, source, id string) error {
	now := micros(in.now())
	return in.db.in(ctx, func(t tx[T]) error {
		n, err := t.exec(ctx, `UPDATE inbox_events SET state = 'waiting', attempts = 0, due_at = CASE WHEN effects > 0 THEN 0 ELSE CAST(? AS BIGINT) END
			WHERE source = ? AND id = ? AND state = 'review'`, now, source, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return ErrUnknownEvent
		}
		_, err = t.exec(ctx, `UPDATE inbox_effects SET state = 'waiting', attempts = 0, due_at = ?
			WHERE source = ? AND event = ? AND state = 'review'`, now, source, id)
		return err
	})
}
