package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Options bound the work of an inbox. The zero value takes every default.
type Options struct {
	// Attempts is how often the work of an event, or an effect, is begun before
	// it goes to review; 10 if zero.
	Attempts int
	// Lease is how long one attempt may take before another one is begun beside
	// it; a minute if zero. What takes longer is tried twice.
	Lease time.Duration
	// Backoff is the wait after the first failure, doubled after each further one
	// up to MaxBackoff; a second and an hour if zero.
	Backoff, MaxBackoff time.Duration
}

func (o Options) withDefaults() Options {
	if o.Attempts <= 0 {
		o.Attempts = 10
	}
	if o.Lease <= 0 {
		o.Lease = time.Minute
	}
	if o.Backoff <= 0 {
		o.Backoff = time.Second
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = time.Hour
	}
	return o
}

// wait is how long to wait after so many attempts.
func (o Options) wait(attempts int) time.Duration {
	wait := o.Backoff
	for ; attempts > 1 && wait < o.MaxBackoff; attempts-- {
		wait *= 2
	}
	return min(wait, o.MaxBackoff)
}

// Inbox applies events once. Make one with [New].
type Inbox[T any] struct {
	db   DB[T]
	opts Options
	now  func() time.Time
}

// New makes an inbox on the caller's database. Its tables must exist: see
// [Inbox.Migrate].
func New[T any](db DB[T], opts Options) *Inbox[T] {
	return &Inbox[T]{db: db, opts: opts.withDefaults(), now: time.Now}
}

// ErrInvalidEvent is returned for an event without source or id, or with one that
// is no text: it is not UTF-8 or has a zero byte.
var ErrInvalidEvent = errors.New("inbox: the event has no source or no id, or one that is no text")

// ErrUnknownEvent is returned for an event that is not stored.
var ErrUnknownEvent = errors.New("inbox: no such event")

// Func is the caller's work for an event. It uses only tx and effects for
// whatever must happen once, and returns what a repeat is answered with. It
// may be run again after an error, with everything it did rolled back.
type Func[T any] func(ctx context.Context, tx T, e Event, effects *Effects) (result []byte, err error)

// Apply inserts the event, runs fn in the same transaction and commits both. An
// error of fn rolls both back and is returned: answer the sender with an error,
// so that it sends again. A repeat runs nothing and gets the stored outcome.
func (in *Inbox[T]) Apply(ctx context.Context, e Event, fn Func[T]) (Outcome, error) {
	var out Outcome
	err := in.db.in(ctx, func(t tx[T]) (err error) {
		fresh, err := in.insert(ctx, t, e, 0)
		if err != nil {
			return err
		}
		if !fresh {
			out, err = in.repeat(ctx, t, e)
			return err
		}
		out, err = in.run(ctx, t, e, fn)
		return err
	})
	if err != nil {
		return Outcome{}, err
	}
	return out, nil
}

// Accept stores the event, to be worked on by [Inbox.Work]. When it returns
// without an error the event is durable and the sender can be told so. A
// repeat of an event whose work is unfinished makes that work due now.
func (in *Inbox[T]) Accept(ctx context.Context, e Event) (Outcome, error) {
	out := Outcome{State: Received}
	err := in.db.in(ctx, func(t tx[T]) error {
		fresh, err := in.insert(ctx, t, e, micros(in.now()))
		if err == nil && !fresh {
			out, err = in.repeat(ctx, t, e)
		}
		return err
	})
	if err != nil {
		return Outcome{}, err
	}
	return out, nil
}

// insert reports whether the event is new. Of two transactions that insert one
// event at the same time the second waits for the first.
func (in *Inbox[T]) insert(ctx context.Context, t tx[T], e Event, due int64) (fresh bool, err error) {
	if !e.usable() {
		return false, ErrInvalidEvent
	}
	n, err := t.exec(ctx, `INSERT INTO inbox_events
		(source, id, state, body, attempts, effects, received_at, due_at, finished_at, last_error)
		VALUES (?, ?, 'received', ?, 0, 0, ?, ?, 0, '') ON CONFLICT (source, id) DO NOTHING`,
		e.Source, e.ID, e.Body, micros(in.now()), due)
	return n == 1, err
}

// run runs the work of an event whose row this transaction holds.
func (in *Inbox[T]) run(ctx context.Context, t tx[T], e Event, fn Func[T]) (Outcome, error) {
	effects := &Effects{event: e}
	result, err := fn(ctx, t.native, e, effects)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{State: Done, Result: result}
	now := micros(in.now())
	finished := now
	if len(effects.added) > 0 {
		out.State, finished = Waiting, 0
	}
	for _, effect := range effects.added {
		_, err := t.exec(ctx, `INSERT INTO inbox_effects
			(id, source, event, kind, payload, state, attempts, due_at, finished_at, last_error)
			VALUES (?, ?, ?, ?, ?, 'waiting', 0, ?, 0, '')`,
			effect.ID, e.Source, e.ID, effect.Kind, effect.Payload, now)
		if err != nil {
			return Outcome{}, err
		}
	}
	_, err = t.exec(ctx, `UPDATE inbox_events SET state = ?, result = ?, effects = ?, due_at = 0, finished_at = ?, last_error = ''
		WHERE source = ? AND id = ?`, string(out.State), result, len(effects.added), finished, e.Source, e.ID)
	return out, err
}

// repeat answers for an event that is known, and makes its unfinished work due
// now, unless an attempt is under way.
func (in *Inbox[T]) repeat(ctx context.Context, t tx[T], e Event) (Outcome, error) {
	_, err := t.exec(ctx, `UPDATE inbox_events SET due_at = ?
		WHERE source = ? AND id = ? AND state = 'waiting' AND last_error <> '' AND due_at > ?`,
		micros(in.now()), e.Source, e.ID, micros(in.now()))
	if err != nil {
		return Outcome{}, err
	}
	out, found := Outcome{Duplicate: true}, false
	err = t.each(ctx, func(scan func(...any) error) error {
		found = true
		return scan((*string)(&out.State), &out.Result)
	}, `SELECT state, result FROM inbox_events WHERE source = ? AND id = ?`, e.Source, e.ID)
	if err == nil && !found {
		err = fmt.Errorf("%w: %s of %s", ErrUnknownEvent, e.ID, e.Source)
	}
	return out, err
}
