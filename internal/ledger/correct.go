package ledger

import (
	"encoding/json"
	"strings"

	"github.com/pawlhq/pawl"
)

// CorrectionJSON is what the event of a correction tells beside the operation
// (7-rules R9).
type CorrectionJSON struct {
	From   pawl.State `json:"from"`
	Actor  string     `json:"actor"`
	Reason string     `json:"reason"`
}

// correction is why an operation that has ended is given another end.
type correction struct {
	// word is the reason as a stable word, note what a person wrote.
	word, note string
	event      pawl.ID
}

// Report is what a provider said of an operation that has ended otherwise, kept
// with the review for whoever may accept it.
type Report struct {
	Observation
	// HasResult says that there was a result: it is kept under the review's id.
	HasResult bool
	// Taken are the links that were in the result.
	Taken resultLinks
}

// Report is what a review's provider reported; false where a review has none.
func (r Review) Report() (rep Report, ok bool) {
	if r.Reported == "" {
		return rep, false
	}
	if err := json.Unmarshal([]byte(r.Reported), &rep); err != nil {
		panic(err)
	}
	return rep, true
}

// begin takes the operation to its other end and links what is booked from here
// on to the timeline's line of the correction.
func (c correction) begin(d *Draft, op *Operation, to pawl.State) CorrectionJSON {
	told := CorrectionJSON{From: op.State, Actor: d.Actor, Reason: c.word}
	if told.Actor == "" {
		told.Actor = "system"
	}
	if c.note != "" {
		told.Reason = c.note
	}
	op.State = to
	line := d.line(*op, History{Kind: CorrectedLine, Reason: c.word, Event: c.event, Version: op.Version, Detail: c.note})
	d.history = append(d.history, line)
	op.Correction = line.ID
	d.audit(op.Tenant, "operation.correct", op.ID.Text(pawl.PrefixOperation), told.From.String()+" to "+to.String()+": "+c.word)
	return told
}

// end tells of a correction and closes the reviews that it answers. The caller
// has made the change and saves the operation.
func (c correction) end(d *Draft, up Upstream, op *Operation, told CorrectionJSON) {
	if op.State != pawl.Succeeded {
		if op.Held() {
			d.drop(op.Result, ResultPayload) // No event ever showed it.
		}
		op.Result = pawl.ID{}
		d.dropArtifacts(op)
	}
	op.FinishedAt = d.Now
	d.rest(up, op)
	d.tell(op, pawl.TypeOf(op.State), &told)
	answered := []pawl.Reason{pawl.ReviewConflict, pawl.ReviewLateSuccess}
	if op.State != pawl.Succeeded {
		answered = append(answered, pawl.ReviewNoResult, pawl.ReviewCapture, pawl.ReviewRelease)
	}
	for _, reason := range answered {
		d.closeOpen(op, reason, DecidedBySystem)
	}
	d.finished(op)
}

// rebook gives an operation that has ended the charge of its other end: what
// was charged is reversed and what is charged now is reserved again, or all of
// its price where the final figure is yet to come. Entries are added, none is
// changed (7-rules R9). Without the credit for it there is no correction.
func (d *Draft) rebook(op *Operation, b bill) *Outcome {
	switch {
	case !d.affords(*op, b):
		out := dropped(pawl.PaymentRequired, "insufficient_credit", "the account's available credit is below what the correction would reserve again; add credit and repeat the decision")
		return &out
	case op.Money == Unmetered:
		op.Settled = b.end
		return nil
	case op.Money == Held && b.end:
		d.endReservation(op, b.charge)
		return nil
	case op.Money == Held, b.end && b.charge == op.Charged:
		return nil
	}
	again := b.again(*op)
	acct, _ := d.Accounts.Get(op.Account)
	if op.Charged > 0 {
		d.entry(*op, "reversal", Spent, Available, op.Charged)
		acct.Charged -= op.Charged
		op.Charged = 0
	}
	switch {
	case !b.end:
		op.Settled = false
		d.reserve(op, acct)
		return nil
	case again > 0:
		d.entry(*op, "reserve", Available, Reserving, again)
		d.entry(*op, "charge", Reserving, Spent, again)
		acct.Charged += again
		op.Charged = again
	}
	d.Accounts.Put(acct.ID, acct)
	return nil
}

// again is what is reserved again for a bill after a correction.
func (b bill) again(op Operation) pawl.Amount {
	if b.end {
		return b.charge
	}
	return op.Reserved
}

// affords reports whether the account's credit is enough for a bill after a
// correction.
func (d *Draft) affords(op Operation, b bill) bool {
	if op.Money != Ended || b.end && b.charge == op.Charged {
		return true
	}
	acct, ok := d.Accounts.Get(op.Account)
	return ok && acct.available()+op.Charged >= b.again(op)
}

// correctTo takes a finished operation to the end that its provider reported
// after all, with the money and the result of that end.
func (d *Draft) correctTo(up Upstream, op *Operation, rep Report, kept pawl.ID, c correction) *Outcome {
	o := rep.Observation
	told := c.begin(d, op, o.State)
	b := billFor(*op, o)
	if refusal := d.rebook(op, b); refusal != nil {
		return refusal
	}
	noteCost(op, o)
	op.ByHand = false
	op.Kept |= KeptResult
	if op.Result = kept; kept.IsZero() {
		d.keepResult(up, op, o)
	} else {
		d.addArtifacts(up, op, rep.Taken)
	}
	op.fault(o)
	c.end(d, up, op, told)
	d.doubts(up, op, o, c.event, b.review)
	return nil
}

// acceptLate corrects an expired operation to the success that was reported
// after all, if credit allows (1-product D4); else it changes nothing.
func (d *Draft) acceptLate(up Upstream, op *Operation, o Observation, event pawl.ID) bool {
	after := *op
	after.State = o.State
	if !d.affords(*op, billFor(after, o)) {
		return false
	}
	return d.correctTo(up, op, Report{Observation: o}, pawl.ID{}, correction{word: pawl.ReviewLateSuccess.String(), event: event}) == nil
}

// correct is a person's correction of an end (7-rules R9).
func (c ResolveOperation) correct(d *Draft, op *Operation) *Outcome {
	refuse := func(kind pawl.Kind, reason, message string) *Outcome {
		out := dropped(kind, reason, message)
		return &out
	}
	if op.ErasedAt.IsSet() {
		return refuse(pawl.Conflicting, "erased", "the operation's content was erased, and its end stays as it is")
	}
	if c.From != op.State {
		return refuse(pawl.Conflicting, "finished", "the operation has ended as "+op.State.String()+`; to correct that, say so with "from": "`+op.State.String()+`"`)
	}
	to, known := pawl.ParseState(c.Decision)
	if !known || !to.Terminal() {
		return refuse(pawl.Invalid, "unknown_decision", `a finished operation is corrected with "succeeded", "failed", "canceled" or "expired"; this one is `+op.State.String())
	}
	if strings.TrimSpace(c.Note) == "" {
		return refuse(pawl.Invalid, "note_missing", `a correction needs a "note" that says why`)
	}
	charge, refusal := c.charge(*op, to)
	if refusal != nil {
		return refusal
	}
	same := to == op.State && (!c.HasCharge || op.Money == Ended && charge == op.Charged)
	if same {
		return refuse(pawl.Conflicting, "nothing_to_correct", "the operation is "+to.String()+" already, at this charge")
	}
	why := correction{word: "by_operator", note: c.Note}
	told := why.begin(d, op, to)
	if refusal := d.rebook(op, bill{end: true, charge: charge}); refusal != nil {
		return refusal
	}
	op.Settled, op.ByHand = true, true
	fault := Observation{State: to, ErrorCode: op.ErrorCode, ErrorWord: op.ErrorWord, ErrorMessage: op.ErrorMessage}
	if fault.ErrorCode == "" {
		fault.ErrorMessage = "decided by an operator"
	}
	op.fault(fault)
	why.end(d, c.Up, op, told)
	return nil
}

// charge is what a corrected operation costs: what the person said, else for a
// success what the provider reported or, without that, its price, and nothing
// for every other end.
func (c ResolveOperation) charge(op Operation, to pawl.State) (pawl.Amount, *Outcome) {
	refuse := func(kind pawl.Kind, reason, message string) (pawl.Amount, *Outcome) {
		out := dropped(kind, reason, message)
		return 0, &out
	}
	free := to == pawl.Failed || to == pawl.Expired
	switch {
	case !c.HasCharge && (to != pawl.Succeeded || op.Money == Unmetered):
		return 0, nil
	case !c.HasCharge && op.CostText == "":
		return op.Reserved, nil
	case !c.HasCharge:
		return min(max(op.Cost, 0), op.Reserved), nil
	case op.Money == Unmetered:
		return refuse(pawl.Unprocessable, "unmetered", "the operation has no price, so that nothing can be charged for it")
	case free && c.Charge != 0:
		return refuse(pawl.Unprocessable, "charge_refused", "an operation that failed or expired costs nothing")
	case c.Charge < 0 || c.Charge > op.Reserved:
		return refuse(pawl.Unprocessable, "above_reservation", "the charge must lie between 0 and the operation's price, "+op.Reserved.String()+" "+op.Currency)
	}
	return c.Charge, nil
}
