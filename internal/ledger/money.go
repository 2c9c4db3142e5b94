package ledger

import (
	"strings"

	"github.com/pawlhq/pawl"
)

// available is what the account may still spend.
func (a Account) available() pawl.Amount { return a.Credited - a.Charged - a.Reserved }

// reserve takes the price out of what the account may spend.
func (d *Draft) reserve(op *Operation, acct Account) {
	op.Money = Held
	acct.Reserved += op.Reserved
	d.Accounts.Put(acct.ID, acct)
	d.entry(*op, "reserve", Available, Reserving, op.Reserved)
}

// endReservation ends the reservation once: charge goes from reserved to
// spent, the rest back to available.
func (d *Draft) endReservation(op *Operation, charge pawl.Amount) {
	acct, _ := d.Accounts.Get(op.Account)
	acct.Reserved -= op.Reserved
	acct.Charged += charge
	d.Accounts.Put(acct.ID, acct)
	op.Money, op.Charged, op.Settled = Ended, charge, true
	if charge > 0 {
		d.entry(*op, "charge", Reserving, Spent, charge)
	}
	if rest := op.Reserved - charge; rest > 0 || charge == 0 {
		d.entry(*op, "release", Reserving, Available, rest)
	}
}

func (d *Draft) entry(op Operation, kind string, from, to Bucket, amount pawl.Amount) {
	d.entries = append(d.entries, Entry{
		ID: d.NewID(), Account: op.Account, Tenant: op.Tenant, Operation: op.ID, At: d.Now, Kind: kind,
		From: from, To: to, Amount: amount, Actor: d.Actor, Correction: op.Correction,
	})
}

// bill says what a terminal observation means for the money.
type bill struct {
	// end: the charge is final now.
	end    bool
	charge pawl.Amount
	// review opens a review beside whatever else happens; 0 for none.
	review pawl.Reason
}

// billFor decides the money of a terminal operation
// (1-product F2): failed and expired release in full; a charge is final when
// the provider says so, or at the terminal observation of a provider that has
// no such word; never above the reservation.
func billFor(op Operation, o Observation) bill {
	if op.State == pawl.Failed || op.State == pawl.Expired {
		return bill{end: true}
	}
	if op.Money == Unmetered {
		return bill{end: o.Settled != SettledNo}
	}
	if o.HasCost && o.Currency != "" && o.Currency != op.Currency {
		return bill{review: pawl.ReviewCurrency}
	}
	if o.Settled == SettledNo {
		return bill{}
	}
	b := bill{end: true, charge: o.Cost}
	if !o.HasCost && op.State == pawl.Succeeded {
		b.charge = op.Reserved
	}
	if b.charge < 0 {
		b.charge = 0
	}
	if b.charge > op.Reserved {
		b.charge, b.review = op.Reserved, pawl.ReviewOverReservation
	}
	return b
}

// settleTerminal applies what an observation of a terminal operation says of
// its money. It reports whether anything changed and which review to open.
func (d *Draft) settleTerminal(op *Operation, o Observation) (changed bool, review pawl.Reason) {
	risen := o.Cost > op.Cost
	noteCost(op, o)
	b := billFor(*op, o)
	switch op.Money {
	case Unmetered:
		was := op.Settled
		op.Settled = was || b.end
		return !was && op.Settled, 0
	case Held:
		if b.end {
			d.endReservation(op, b.charge)
		}
		return b.end, b.review
	default:
		changed, review = d.adjust(op, o)
		if !changed && !risen {
			return false, 0
		}
		if short := op.short(o); review == pawl.ReviewOverReservation && short > 0 {
			d.note(*op, History{Kind: "adjustment", Reason: "credit_short", Detail: "not booked: " + short.String() + " " + op.Currency, Version: op.Version})
		}
		return changed, review
	}
}

// noteCost keeps the latest total that the provider reported, as far as it can
// be compared with a reservation: one in another currency is no figure of the
// account's (7-rules R27). An estimate after the final figure is none.
func noteCost(op *Operation, o Observation) {
	switch {
	case !o.HasCost || op.State.Terminal() && op.Settled && o.Settled == SettledNo:
		return
	case op.Money == Unmetered && o.Currency != "":
		op.Currency = o.Currency
	case op.Money != Unmetered && o.Currency != "" && o.Currency != op.Currency:
		return
	}
	op.Cost, op.CostText = o.Cost, o.CostText
}

// adjust books a total that rose after the end: the difference only, never
// above the reservation; a falling or repeated total books nothing (R29), nor
// does any after a person has decided the charge.
func (d *Draft) adjust(op *Operation, o Observation) (changed bool, review pawl.Reason) {
	final := o.HasCost && o.Settled != SettledNo && (o.Currency == "" || o.Currency == op.Currency)
	charges := (op.State == pawl.Succeeded || op.State == pawl.Canceled) && !op.ByHand
	if !final || !charges {
		return false, 0
	}
	total := o.Cost
	if total > op.Reserved {
		total, review = op.Reserved, pawl.ReviewOverReservation
	}
	acct, _ := d.Accounts.Get(op.Account)
	rise := min(total-op.Charged, max(0, acct.available()))
	if rise < total-op.Charged {
		// The rest is booked if it is reported again when there is credit.
		review = pawl.ReviewOverReservation
	}
	if rise <= 0 { // a falling or repeated total books nothing
		return false, review
	}
	acct.Charged += rise
	d.Accounts.Put(acct.ID, acct)
	op.Charged += rise
	d.entry(*op, "adjustment", Available, Spent, rise)
	return true, review
}

// openMoney opens the review that a reported cost asks for; 0 for none. About a
// cost in another currency a person is asked once, and again for another one
// only: "keep" lasts until the final cost is overdue.
func (d *Draft) openMoney(op *Operation, review pawl.Reason, event pawl.ID, owner string, o Observation) {
	if review == 0 {
		return
	}
	detail := strings.TrimSpace("reported " + o.CostText + " " + o.Currency)
	if review == pawl.ReviewCurrency && op.Reviews&(1<<review) == 0 {
		foreign := o.Cost.String() + " " + o.Currency
		if foreign == op.Foreign {
			return
		}
		op.Foreign = foreign
	}
	if short := op.short(o); review == pawl.ReviewOverReservation && short > 0 {
		detail += ", of which " + short.String() + " is not booked: the credit was short"
	}
	d.openReview(op, review, event, owner, detail)
}

// short is what a total reported after the end is above what was charged, as
// far as the reservation covers it: the account's credit was short of it.
func (op Operation) short(o Observation) pawl.Amount {
	if op.Money != Ended {
		return 0
	}
	return max(0, min(o.Cost, op.Reserved)-op.Charged)
}

// settleByHand ends the money of an operation whose provider left it open.
func (d *Draft) settleByHand(up Upstream, op *Operation, charge pawl.Amount) {
	if !op.State.Terminal() || op.Settled {
		return
	}
	if op.Money == Held {
		d.endReservation(op, charge)
	}
	op.Settled, op.ByHand = true, true
	d.rest(up, op)
	d.emit(op, pawl.TypeSettled)
	d.finished(op)
}
