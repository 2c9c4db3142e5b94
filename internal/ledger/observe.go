package ledger

import (
	"github.com/pawlhq/pawl"
)

// judgment is what an observation came to.
type judgment struct {
	verdict pawl.Verdict
	reason  string
}

// observe runs an observation of a known operation through lines 8 to 12 of
// 7-rules §1 and applies it where it fits. A callback and a read come here
// alike. The caller saves the operation.
func (d *Draft) observe(up Upstream, op *Operation, o Observation, event pawl.ID) judgment {
	if op.ErasedAt.IsSet() {
		return judgment{pawl.Stale, reasonErased}
	}
	if op.State.Terminal() {
		return d.observeTerminal(up, op, o, event)
	}
	if o.HasVersion && o.Version <= op.UpstreamVersion {
		return judgment{pawl.Stale, "old_version"}
	}
	stateful := o.State != 0 && !o.ProgressOnly
	if stateful && !o.HasVersion && o.State.Rank() < op.State.Rank() {
		return judgment{pawl.Stale, "lower_rank"}
	}
	held := *op
	writeDown(op, o)
	moves := stateful && o.State != op.State && pawl.CanMove(op.State, o.State, pawl.ByObservation)
	if !moves && sameAs(held, *op) {
		return judgment{pawl.Stale, "nothing_new"}
	}
	if moves {
		d.move(up, op, o, event)
		return judgment{pawl.Applied, "state"}
	}
	op.UpdatedAt = d.Now
	d.delayRead(up, op)
	if op.Progress != held.Progress {
		d.emitProgress(op)
	}
	if o.ProgressOnly && o.State.Terminal() {
		return judgment{pawl.Applied, "progress_names_an_end"}
	}
	return judgment{pawl.Applied, "progress"}
}

// writeDown keeps what an observation says beside the state. The version of
// one that only shows progress is not held: what it announces is still to come.
func writeDown(op *Operation, o Observation) {
	if o.HasVersion && !o.ProgressOnly {
		op.UpstreamVersion = o.Version
	}
	if o.Word != "" && !o.ProgressOnly {
		op.UpstreamState = o.Word
	}
	if o.Progress >= 0 {
		op.Progress = o.Progress
	}
	noteCost(op, o)
	if o.RequestID != "" {
		op.UpstreamRequestID = o.RequestID
	}
}

// sameAs reports whether an observation brought nothing but perhaps a higher
// version of the same: same word, no progress, no cost.
func sameAs(a, b Operation) bool {
	return a.UpstreamState == b.UpstreamState && a.Progress == b.Progress && a.CostText == b.CostText
}

// delayRead puts off the next read after a callback that changed something: it
// is at least one interval away (7-rules R23), within the tolerance that the
// jitter has anyway, so that a stream of progress does not move it each time.
func (d *Draft) delayRead(up Upstream, op *Operation) {
	if op.Leased != NoAction || !up.Reads || op.DueAt == pawl.Never {
		return
	}
	if op.DueAt < d.Now.Add(op.ReadEvery-op.ReadEvery/10) {
		op.DueAt = d.Now.Add(op.ReadEvery)
		d.boundByDeadline(up, op)
	}
}

// move takes an unfinished operation to the observed state: state, money and
// the event in one decision.
func (d *Draft) move(up Upstream, op *Operation, o Observation, event pawl.ID) {
	op.State = o.State
	if !o.State.Terminal() {
		d.scheduleRead(up, op)
		d.emit(op, pawl.TypeOf(op.State))
		return
	}
	d.conclude(up, op, o, event)
}

// conclude carries out the end that an observation names, whose state the
// operation has taken.
func (d *Draft) conclude(up Upstream, op *Operation, o Observation, event pawl.ID) {
	op.FinishedAt = d.Now
	d.keepResult(up, op, o)
	op.fault(o)
	_, review := d.settleTerminal(op, o)
	d.rest(up, op)
	if !event.IsZero() && up.Reads && op.lacksResult() {
		// The callback may have left it out, as one does whose body grew too large.
		op.DueAt, op.DeadlineReads = d.Now.Add(d.jitter(up.ReadFirst)), 0
	}
	d.emit(op, pawl.TypeOf(op.State))
	d.finished(op)
	d.doubts(up, op, o, event, review)
}

// lacksResult reports whether a success has not brought what it was for.
func (op Operation) lacksResult() bool { return op.State == pawl.Succeeded && op.Result.IsZero() }

// doubts opens the reviews of an end: what its money asks for, a success without
// any result, and one whose result is held.
func (d *Draft) doubts(up Upstream, op *Operation, o Observation, event pawl.ID, review pawl.Reason) {
	d.openMoney(op, review, event, up.Owner, o)
	if op.State != pawl.Succeeded {
		return
	}
	if op.Result.IsZero() {
		d.openReview(op, pawl.ReviewNoResult, event, up.Owner, "")
	}
	if op.Held() {
		d.openReview(op, pawl.ReviewRelease, event, up.Owner, "")
	}
}

// fault keeps what a failure says of itself; every other end has none.
func (op *Operation) fault(o Observation) {
	op.ErrorCode, op.ErrorWord, op.ErrorMessage = "", "", ""
	if o.State != pawl.Failed {
		return
	}
	op.ErrorCode, op.ErrorWord, op.ErrorMessage = o.ErrorCode, o.ErrorWord, o.ErrorMessage
	if op.ErrorCode == "" {
		op.ErrorCode = pawl.FailUpstream
	}
}

func (d *Draft) keepResult(up Upstream, op *Operation, o Observation) {
	if o.State == pawl.Succeeded && o.Result != "" {
		op.Result = d.NewID()
		op.Kept |= KeptResult
		text, links := d.takeLinks(up, o)
		d.keep(op.Result, ResultPayload, text)
		d.addArtifacts(up, op, links)
	}
}

// rest leaves a terminal operation alone, or goes on reading for its final
// cost.
func (d *Draft) rest(up Upstream, op *Operation) {
	op.Leased, op.InFlight, op.WaitingAt = NoAction, false, 0
	op.CancelDueAt, op.Expiring = 0, false
	op.CancelConfirmed = op.CancelConfirmed || op.State == pawl.Canceled && op.CancelRequestedAt.IsSet()
	if op.Settled || !up.Reads {
		op.DueAt = pawl.Never
		if !op.Settled {
			op.DueAt = op.FinishedAt.Add(up.SettleWithin)
		}
		return
	}
	op.ReadEvery = max(op.ReadEvery, up.ReadFirst)
	d.scheduleRead(up, op)
}

// observeTerminal is line 8: the first end stays. A result that was missing is
// taken while a person is asked about it.
func (d *Draft) observeTerminal(up Upstream, op *Operation, o Observation, event pawl.ID) judgment {
	if o.ProgressOnly || !o.State.Terminal() {
		return judgment{pawl.Stale, "finished"}
	}
	if op.State == pawl.Expired && o.State == pawl.Canceled && op.CancelRequestedAt.IsSet() {
		// Our own cancel at the deadline has arrived: nothing contradicts.
		op.CancelConfirmed = true
		return judgment{pawl.Stale, "canceled_as_asked"}
	}
	if o.State != op.State {
		reason := pawl.ReviewConflict
		if op.State == pawl.Expired && o.State == pawl.Succeeded {
			reason = pawl.ReviewLateSuccess
			if up.AcceptLateSuccess && d.acceptLate(up, op, o, event) {
				return judgment{pawl.Applied, "late_success_accepted"}
			}
		}
		d.openReport(up, op, reason, event, o)
		return judgment{pawl.Conflict, reason.String()}
	}
	fresh := op.WantsLinks && o.State == pawl.Succeeded && d.takeFreshLinks(up, op, o)
	found := op.lacksResult() && op.Reviews&(1<<pawl.ReviewNoResult) != 0 && o.Result != ""
	if found {
		d.keepResult(up, op, o)
	}
	changed, review := d.settleTerminal(op, o)
	if changed {
		d.rest(up, op)
		d.emit(op, pawl.TypeSettled)
		d.finished(op)
	}
	if found {
		d.closeOpen(op, pawl.ReviewNoResult, DecidedBySystem)
	}
	d.openMoney(op, review, event, up.Owner, o)
	switch {
	case changed:
		return judgment{pawl.Applied, "settled"}
	case found:
		return judgment{pawl.Applied, "result"}
	case fresh:
		return judgment{pawl.Applied, "links"}
	case o.HasCost && op.Money != Unmetered && o.Currency != "" && o.Currency != op.Currency:
		return judgment{pawl.Stale, "other_currency"}
	case o.HasCost && op.ByHand && o.Cost != op.Charged:
		return judgment{pawl.Stale, "decided_by_hand"}
	}
	return judgment{pawl.Stale, "nothing_new"}
}
