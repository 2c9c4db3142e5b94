package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Effect is something to be done outside the database because of an event:
// send a message, call another service.
type Effect struct {
	// ID is stable: it follows from the event, the kind and its place among the
	// effects of that kind. Give it to whoever carries the effect out as the
	// idempotency key.
	ID string
	// Kind says what is to be done, in the caller's words.
	Kind    string
	Payload []byte
	// Source and Event name the event it comes from.
	Source, Event string
	// Attempt counts from 1.
	Attempt int
}

// Effects collects the effects of one event while its work runs.
type Effects struct {
	event Event
	added []Effect
}

// Add has an effect carried out after the commit, and gives its id.
func (f *Effects) Add(kind string, payload []byte) (id string) {
	n := 0
	for _, effect := range f.added {
		if effect.Kind == kind {
			n++
		}
	}
	h := sha256.New()
	// Lengths keep apart what could be split in two ways.
	for _, part := range [...]string{f.event.Source, f.event.ID, kind, strconv.Itoa(n)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	id = "eff_" + hex.EncodeToString(h.Sum(nil)[:16])
	f.added = append(f.added, Effect{ID: id, Kind: kind, Payload: payload, Source: f.event.Source, Event: f.event.ID})
	return id
}

// drainMost is how many effects or events one turn looks at.
const drainMost = 100

// Drain carries out the effects that are due and returns how many attempts it
// made. do is called outside any transaction, and again with the same id after
// an error or a crash. Call it in a loop; several processes may. An error is
// the database's, not do's.
func (in *Inbox[T]) Drain(ctx context.Context, do func(context.Context, Effect) error) (attempts int, err error) {
	due, err := in.dueEffects(ctx)
	for _, effect := range due {
		if err != nil || ctx.Err() != nil {
			break
		}
		var mine bool
		if mine, err = in.claimEffect(ctx, &effect); err != nil || !mine {
			continue
		}
		attempts++
		err = in.recordEffect(ctx, effect, do(ctx, effect))
	}
	return attempts, err
}

func (in *Inbox[T]) dueEffects(ctx context.Context) (due []Effect, err error) {
	err = in.db.in(ctx, func(t tx[T]) error {
		return t.each(ctx, func(scan func(...any) error) error {
			var e Effect
			err := scan(&e.ID, &e.Source, &e.Event, &e.Kind, &e.Payload, &e.Attempt)
			due = append(due, e)
			return err
		}, `SELECT id, source, event, kind, payload, attempts FROM inbox_effects
			WHERE due_at > 0 AND due_at <= ? ORDER BY due_at, id LIMIT ?`, micros(in.now()), drainMost)
	})
	return due, err
}

// claimEffect counts the attempt before it is made, so that an effect that
// kills the process runs out of attempts too: then it goes to review. The count
// is the fence.
func (in *Inbox[T]) claimEffect(ctx context.Context, e *Effect) (mine bool, err error) {
	err = in.db.in(ctx, func(t tx[T]) error {
		if e.Attempt >= in.opts.Attempts {
			return in.giveUp(ctx, t, *e)
		}
		n, err := t.exec(ctx, `UPDATE inbox_effects SET attempts = attempts + 1, due_at = ?
			WHERE id = ? AND attempts = ? AND due_at > 0 AND due_at <= ?`,
			micros(in.now().Add(in.opts.Lease)), e.ID, e.Attempt, micros(in.now()))
		mine = n == 1
		return err
	})
	e.Attempt++
	return mine, err
}

// giveUp has a person look at an effect of whose last attempt nobody has told,
// and at its event.
func (in *Inbox[T]) giveUp(ctx context.Context, t tx[T], e Effect) error {
	n, err := t.exec(ctx, `UPDATE inbox_effects SET state = 'review', due_at = 0
		WHERE id = ? AND attempts = ? AND due_at > 0 AND due_at <= ?`, e.ID, e.Attempt, micros(in.now()))
	if err != nil || n == 0 {
		return err
	}
	_, err = t.exec(ctx, `UPDATE inbox_events SET state = 'review' WHERE source = ? AND id = ?`, e.Source, e.Event)
	return err
}

// recordEffect marks an effect done, or says when it is tried again. What was
// done counts even if somebody else has begun it meanwhile.
func (in *Inbox[T]) recordEffect(ctx context.Context, e Effect, failed error) error {
	// What has happened outside must be marked even if we were told to stop.
	ctx = context.WithoutCancel(ctx)
	now := in.now()
	return in.db.in(ctx, func(t tx[T]) error {
		if failed != nil {
			return in.effectFailed(ctx, t, e, failed)
		}
		n, err := t.exec(ctx, `UPDATE inbox_effects SET state = 'done', due_at = 0, finished_at = ?, last_error = ''
			WHERE id = ? AND state <> 'done'`, micros(now), e.ID)
		if err != nil || n == 0 {
			return err
		}
		_, err = t.exec(ctx, `UPDATE inbox_events SET effects = effects - 1 WHERE source = ? AND id = ?`, e.Source, e.Event)
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, `UPDATE inbox_events SET state = 'done', last_error = '', finished_at = ?
			WHERE source = ? AND id = ? AND effects = 0 AND due_at = 0`, micros(now), e.Source, e.Event)
		return err
	})
}

func (in *Inbox[T]) effectFailed(ctx context.Context, t tx[T], e Effect, failed error) error {
	state, due := Waiting, micros(in.now().Add(in.opts.wait(e.Attempt)))
	if e.Attempt >= in.opts.Attempts {
		state, due = Review, 0
	}
	text := excerpt(failed)
	n, err := t.exec(ctx, `UPDATE inbox_effects SET state = ?, due_at = ?, last_error = ?
		WHERE id = ? AND attempts = ? AND state = 'waiting'`, string(state), due, text, e.ID, e.Attempt)
	if err != nil || n == 0 {
		return err
	}
	// Another effect of the event may be in review already: then it stays there.
	_, err = t.exec(ctx, `UPDATE inbox_events SET state = CASE WHEN state = 'review' THEN state ELSE ? END, last_error = ?
		WHERE source = ? AND id = ?`, string(state), text, e.Source, e.Event)
	return err
}

// excerpt bounds what is kept of an error. Databases differ in what they take for
// text, and an error that cannot be kept would never be counted: what no database
// takes is dropped.
func excerpt(err error) string {
	const most = 500
	text := err.Error()
	text = storable(text[:min(len(text), most)])
	if text == "" {
		text = "failed"
	}
	return text
}

// storable is a text without what PostgreSQL takes in no text: the zero byte, and
// what is no UTF-8.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}
