package ledger

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/pawlhq/pawl"
)

// attachment says how a task id was taken.
type attachment uint8

const (
	// attached: the operation has the task now, or had it before.
	attached attachment = iota + 1
	// secondTask: the operation has another task; the first stays.
	secondTask
	// foreignTask: the task belongs to another operation.
	foreignTask
)

// attach claims the task for the operation, observes the acceptance, then the
// events that were parked for the task, in the order received: one draft, so
// that a callback and a create answer each see the other (3-architecture, "The
// core"). The caller saves the operation.
func (d *Draft) attach(up Upstream, op *Operation, task, requestID string) attachment {
	id := TaskID{op.Upstream, task}
	claim, claimed := d.Tasks.Get(id)
	switch {
	case claimed && claim.Operation == op.ID:
		return attached
	case op.Task != "" && op.ErasedAt.IsSet():
		// Nobody is asked about what was erased, nor is it told what comes late.
		return secondTask
	case op.Task != "":
		d.openReview(op, pawl.ReviewSecondTask, pawl.ID{}, up.Owner, "task "+task+" was reported as well")
		return secondTask
	case claimed && !claim.Operation.IsZero():
		return foreignTask
	}
	d.Tasks.Put(id, Task{ID: id, Operation: op.ID, ClaimedAt: d.Now})
	op.Task, op.SubmittedAt, op.MayExist = task, d.Now, true
	if requestID != "" && !op.ErasedAt.IsSet() {
		op.UpstreamRequestID = requestID
	}
	op.InFlight = false
	if op.Leased == ActSubmit {
		op.Leased = NoAction
	}
	d.note(*op, History{Kind: "accepted", Detail: task})
	d.accept(up, op)
	if claimed {
		d.matchParked(up, op, id)
	}
	return attached
}

// accept is the observation that the provider has the task.
func (d *Draft) accept(up Upstream, op *Operation) {
	op.ReadEvery = up.ReadFirst
	if op.State.Terminal() {
		return
	}
	op.State = pawl.Running
	d.scheduleRead(up, op)
	d.cancelSoon(up, op)
	d.emit(op, pawl.TypeRunning)
	d.closeOpen(op, pawl.ReviewUnconfirmed, DecidedBySystem)
}

// matchParked judges the events that waited for the task.
func (d *Draft) matchParked(up Upstream, op *Operation, id TaskID) {
	if !d.rows.HasParked(id) {
		panic(Miss{Keys: Keys{Parked: []TaskID{id}}})
	}
	var waiting []Event
	for _, e := range d.Events.all() {
		if e.Parked && e.Source == id.Upstream && e.Task == id.Task {
			waiting = append(waiting, e)
		}
	}
	slices.SortFunc(waiting, func(a, b Event) int { return cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID)) })
	for _, e := range waiting {
		d.matchEvent(up, op, e)
	}
	d.parked(id.Upstream, -int64(len(waiting)))
}

func (d *Draft) matchEvent(up Upstream, op *Operation, e Event) {
	var o Observation
	if err := json.Unmarshal([]byte(e.Snapshot), &o); err != nil {
		panic(err)
	}
	var j judgment
	if up.mustConfirm(*op, o) {
		// It was given its key when it was parked, and keeps it.
		d.readSoon(up, op)
		j = judgment{pawl.Hint, reasonConfirm}
	} else {
		careful, o := up.restrained(*op, o)
		j = d.observe(careful, op, o, e.ID)
	}
	e.Operation, e.Tenant = op.ID, op.Tenant
	d.unpark(&e)
	if e.Rejudged.Verdict != 0 {
		e.Rejudged = Rejudgment{At: d.Now, Verdict: j.verdict, Reason: j.reason, Actor: d.Actor}
	} else {
		e.Verdict, e.Reason = j.verdict, j.reason
	}
	if op.ErasedAt.IsSet() {
		d.empty(e)
	} else {
		op.Kept |= KeptCallbacks
		d.Events.Put(e.ID, e)
	}
	d.note(*op, History{Kind: CallbackLine, Verdict: j.verdict, Reason: "matched: " + j.reason, Event: e.ID})
}

// park is the observation of an orphan, kept until its task is known.
func park(o Observation) string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(b)
}
