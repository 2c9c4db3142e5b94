package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

// ReplayKind says what is done again.
type ReplayKind uint8

// The kinds of replays.
const (
	// ReplayDeliveries sends deliveries again, dead letters above all.
	ReplayDeliveries ReplayKind = iota + 1
	// ReplayEvents judges stored inbound events anew.
	ReplayEvents
)

// ReplayFilter says which rows a replay is about; zero fields do not restrict.
type ReplayFilter struct {
	// Endpoint, Event, Operation and State are of deliveries.
	Endpoint, Event, Operation pawl.ID
	State                      pawl.DeliveryState
	// Source, Verdict, Type and Task are of events.
	Source     string
	Verdict    pawl.Verdict
	Type, Task string
	// From and Until bound when a delivery was made, or an event received: from
	// the one, itself included, until before the other. Until is never later than
	// the replay itself.
	From, Until pawl.Time
}

// Replay does many things again, as a job of the installation (1-product H6,
// C10): it counts what it is about, then goes through it in bounded steps, in the
// order of the ids. Each step moves After in the transaction that does its work,
// so that a crash does nothing twice.
type Replay struct {
	ID pawl.ID
	// Tenant is whose rows it is about; empty for those of all.
	Tenant string
	// Actor asked for it.
	Actor  string
	Kind   ReplayKind
	Filter ReplayFilter
	// DryRun only counts. Force sends to disabled endpoints too (7-rules R37).
	DryRun, Force bool
	// Rate is how many rows it does a second at most.
	Rate  int32
	State pawl.ReplayState
	// Counted says that Total is known; After is the last row that was looked at.
	Counted     bool
	After       pawl.ID
	Total, Done int64
	// Outcomes are what the rows came to: words and counts, see [Replay.Counts].
	Outcomes string
	// DueAt is when it goes on; while leased, when the lease ends; Never when it
	// is paused or finished. Lease is the fence.
	DueAt                            pawl.Time
	Lease                            int64
	Leased                           bool
	CreatedAt, UpdatedAt, FinishedAt pawl.Time
}

// Counts are the outcomes of the rows that are done.
func (r Replay) Counts() map[string]int64 {
	counts := make(map[string]int64)
	for part := range strings.SplitSeq(r.Outcomes, ",") {
		if word, n, ok := strings.Cut(part, "="); ok {
			counts[word], _ = strconv.ParseInt(n, 10, 64)
		}
	}
	return counts
}

// count adds what rows have come to.
func (r *Replay) count(words ...string) {
	counts := r.Counts()
	for _, word := range words {
		counts[word]++
	}
	parts := make([]string, 0, len(counts))
	for word, n := range counts {
		parts = append(parts, fmt.Sprintf("%s=%d", word, n))
	}
	slices.Sort(parts)
	r.Outcomes = strings.Join(parts, ",")
	r.Done += int64(len(words))
}

// rest plans the next step after n rows, so that the rate is kept.
func (r *Replay) rest(now pawl.Time, n int) {
	r.Leased, r.UpdatedAt = false, now
	r.DueAt = now.Add(time.Duration(n) * time.Second / time.Duration(max(r.Rate, 1)))
}

// end finishes the replay.
func (r *Replay) end(now pawl.Time, state pawl.ReplayState) {
	r.State, r.FinishedAt, r.UpdatedAt, r.DueAt, r.Leased = state, now, now, pawl.Never, false
}

// CreateReplay begins a replay.
type CreateReplay struct {
	Header
	Once
	// Replay says what is meant: tenant, kind, filter, rate, dry run and force. The
	// caller has checked it.
	Replay Replay
}

// Head is the command's header.
func (c CreateReplay) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c CreateReplay) Keys(k *Keys) {
	c.needs(k)
	k.Endpoints = addSet(k.Endpoints, c.Replay.Filter.Endpoint)
}

// Decide adds the replay and answers with its id ([pawl.ID]).
func (c CreateReplay) Decide(d *Draft) Outcome {
	asked := ask(ForReplay, fmt.Sprintf("%+v", c.Replay))
	if out, repeated := d.repeated(c.Once, asked); repeated {
		return out
	}
	r := c.Replay
	if !r.Filter.Endpoint.IsZero() {
		ep, ok := d.Endpoints.Get(r.Filter.Endpoint)
		if !ok || ep.DeletedAt != 0 || r.Tenant != "" && ep.Tenant != r.Tenant {
			return dropped(pawl.NotFound, "not_found", "no such endpoint")
		}
		if refusal := ep.refuses(r.Force); refusal != nil && !r.DryRun {
			return *refusal
		}
	}
	r.ID, r.Actor, r.State = d.NewID(), d.Actor, pawl.ReplayRunning
	r.CreatedAt, r.UpdatedAt, r.DueAt = d.Now, d.Now, d.Now
	if r.Filter.Until == 0 || r.Filter.Until > d.Now+1 {
		// What is made later is none of its business, be it by the replay itself.
		r.Filter.Until = d.Now + 1
	}
	d.Replays.Put(r.ID, r)
	d.takeKey(c.Once, asked, r.ID)
	if !r.DryRun {
		d.audit(r.Tenant, "replay.create", r.ID.Text(pawl.PrefixReplay), "")
	}
	return done("created", r.ID)
}

// ChangeReplay pauses a replay, lets it go on, or ends it.
type ChangeReplay struct {
	Header
	Once
	Tenant string
	ID     pawl.ID
	// To is the state that is wanted: running, paused or canceled.
	To pawl.ReplayState
}

// Head is the command's header.
func (c ChangeReplay) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ChangeReplay) Keys(k *Keys) {
	k.Replays = add(k.Replays, c.ID)
	c.needs(k)
}

func (c ChangeReplay) asks() asked { return ask(ForReplayChange, string(c.ID[:]), c.To.String()) }

// Decide changes the state and answers with the [Replay]. What a step has begun
// when it is paused or canceled, that step finishes. A repeat of a request under
// the same key changes nothing: a replay that somebody has paused since does not
// go on by it.
func (c ChangeReplay) Decide(d *Draft) Outcome {
	r, ok := d.Replays.Get(c.ID)
	if !ok || c.Tenant != "" && r.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such replay")
	}
	if out, ok := d.repeated(c.Once, c.asks()); ok {
		if out.Err == nil {
			out.Value = r
		}
		return out
	}
	out := c.change(d, r)
	if out.Err == nil {
		d.takeKey(c.Once, c.asks(), c.ID)
	}
	return out
}

func (c ChangeReplay) change(d *Draft, r Replay) Outcome {
	switch {
	case r.State == c.To:
		return done("unchanged", r)
	case r.State.Finished():
		return dropped(pawl.Conflicting, "replay_finished", "the replay is "+r.State.String()+"; what it has done stays, and another one can be begun")
	}
	r.State, r.UpdatedAt = c.To, d.Now
	// Whoever holds it now is told by the fence that it is no longer theirs.
	r.Leased, r.Lease = false, r.Lease+1
	switch c.To {
	case pawl.ReplayRunning:
		r.DueAt = d.Now
	case pawl.ReplayPaused:
		r.DueAt = pawl.Never
	default:
		r.end(d.Now, c.To)
	}
	d.Replays.Put(r.ID, r)
	d.audit(r.Tenant, "replay."+replayActs[c.To], r.ID.Text(pawl.PrefixReplay), "")
	return done(c.To.String(), r)
}

var replayActs = map[pawl.ReplayState]string{pawl.ReplayRunning: "resume", pawl.ReplayPaused: "pause", pawl.ReplayCanceled: "cancel"}

// LeaseReplay takes a due replay for its next step.
type LeaseReplay struct {
	Header
	ID  pawl.ID
	For time.Duration
}

// Head is the command's header.
func (c LeaseReplay) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c LeaseReplay) Keys(k *Keys) { k.Replays = add(k.Replays, c.ID) }

// Decide leases the replay and answers with it; "not_due" without one where
// another node was quicker.
func (c LeaseReplay) Decide(d *Draft) Outcome {
	r, ok := d.Replays.Get(c.ID)
	if !ok || r.State != pawl.ReplayRunning || r.DueAt > d.Now {
		return done("not_due", nil)
	}
	r.Lease++
	r.Leased, r.DueAt = true, d.Now.Add(c.For)
	d.Replays.Put(r.ID, r)
	return done("leased", r)
}

// held is the replay that a step is about, if its lease still holds.
func (d *Draft) held(id pawl.ID, fence int64) (Replay, bool) {
	r, ok := d.Replays.Get(id)
	return r, ok && r.Leased && r.Lease == fence && r.State == pawl.ReplayRunning
}

// RestReplay ends a step: how far it has counted, or only looked, and how many
// rows it has done under the rate.
type RestReplay struct {
	Header
	ID    pawl.ID
	Fence int64
	// After is the last row looked at, End says that no more follow.
	After pawl.ID
	End   bool
	// Counted is how many rows were counted, Worked how many were worked through.
	Counted int64
	Worked  int
}

// Head is the command's header.
func (c RestReplay) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RestReplay) Keys(k *Keys) { k.Replays = add(k.Replays, c.ID) }

// Decide moves the replay on and answers with it.
func (c RestReplay) Decide(d *Draft) Outcome {
	r, ok := d.held(c.ID, c.Fence)
	if !ok {
		return done("old_lease", nil)
	}
	if c.After.Compare(r.After) > 0 {
		r.After = c.After
	}
	r.Total += c.Counted
	r.rest(d.Now, c.Worked)
	switch {
	case !c.End:
	case !r.Counted && !r.DryRun:
		r.Counted, r.After = true, pawl.ID{}
	default:
		r.Counted = true
		r.end(d.Now, pawl.ReplayDone)
	}
	d.Replays.Put(r.ID, r)
	return done("rested", r)
}

// ReplayRow is a delivery that a step is to send again, with what never changes
// about it, and its open review.
type ReplayRow struct{ Delivery, Endpoint, Event, Review pawl.ID }

// StepReplay sends the next deliveries of a replay again: they become due and the
// replay moves on in one decision.
type StepReplay struct {
	Header
	ID    pawl.ID
	Fence int64
	Rows  []ReplayRow
	// End says that no more follow.
	End bool
}

// Head is the command's header.
func (c StepReplay) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c StepReplay) Keys(k *Keys) {
	k.Replays = add(k.Replays, c.ID)
	for _, row := range c.Rows {
		k.Deliveries = add(k.Deliveries, row.Delivery)
		k.Endpoints = add(k.Endpoints, row.Endpoint)
		k.Events = addSet(k.Events, row.Event)
		k.Reviews = addSet(k.Reviews, row.Review)
	}
}

// Decide makes the deliveries due and answers with the [Replay]. One that is
// meanwhile in another state than was asked for is left alone.
func (c StepReplay) Decide(d *Draft) Outcome {
	r, ok := d.held(c.ID, c.Fence)
	if !ok {
		return done("old_lease", nil)
	}
	d.Actor = r.Actor
	var words []string
	for _, want := range c.Rows {
		if want.Delivery.Compare(r.After) <= 0 {
			continue // It was done by a step whose answer was lost.
		}
		r.After = want.Delivery
		row, ok := d.Deliveries.Get(want.Delivery)
		if !ok || row.State != r.Filter.State || r.Tenant != "" && row.Tenant != r.Tenant {
			words = append(words, "changed")
			continue
		}
		words = append(words, (RetryDelivery{Force: r.Force}).retry(d, row).Reason)
	}
	r.count(words...)
	r.rest(d.Now, len(words))
	if c.End {
		r.end(d.Now, pawl.ReplayDone)
	}
	d.Replays.Put(r.ID, r)
	return done("stepped", r)
}

// ReplayEvent judges the next event of a replay anew and moves the replay on, in
// one decision.
type ReplayEvent struct {
	ReprocessEvent
	Replay pawl.ID
	Fence  int64
	// Unread says why the event cannot be judged; empty where it can.
	Unread string
}

// Keys names the rows the command needs.
func (c ReplayEvent) Keys(k *Keys) {
	k.Replays = add(k.Replays, c.Replay)
	if c.Unread == "" {
		c.ReprocessEvent.Keys(k)
	}
}

// Decide judges the event and answers with the verdict, or the reason why there is
// none (string). What cannot be stored now is refused, and comes again.
func (c ReplayEvent) Decide(d *Draft) Outcome {
	r, ok := d.held(c.Replay, c.Fence)
	if !ok || c.ID.Compare(r.After) <= 0 {
		return done("old_lease", "")
	}
	d.Actor = r.Actor
	word := c.Unread
	if word == "" {
		out := c.ReprocessEvent.Decide(d)
		switch {
		case out.Err != nil && out.Err.Kind == pawl.Unavailable:
			return out
		case out.Fate == Dropped:
			// Nothing of the refused judgment stays but that it was tried.
			d.discard()
			word = cmp.Or(out.Reason, "refused")
		default:
			word = out.Value.(Received).Verdict.String()
		}
	}
	r.After = c.ID
	r.count(word)
	d.Replays.Put(r.ID, r)
	return done("judged", word)
}

// FreeReplay ends the lease of a holder that is known to be dead, or that stops.
type FreeReplay struct {
	Header
	ID    pawl.ID
	Fence int64
}

// Head is the command's header.
func (c FreeReplay) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c FreeReplay) Keys(k *Keys) { k.Replays = add(k.Replays, c.ID) }

// Decide makes the replay due now.
func (c FreeReplay) Decide(d *Draft) Outcome {
	r, ok := d.held(c.ID, c.Fence)
	if !ok {
		return done("not_leased", nil)
	}
	r.Leased, r.DueAt = false, d.Now
	d.Replays.Put(r.ID, r)
	return done("freed", nil)
}
