package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
)

// Violation is one broken invariant of the ledger (3-architecture,
// "Simulation and proof").
type Violation struct {
	// Row is the text id of the row that is wrong.
	Row string
	// Rule is the broken invariant in words.
	Rule string
	// Detail says what was found.
	Detail string
}

// String is the violation in one line.
func (v Violation) String() string { return v.Row + ": " + v.Rule + ": " + v.Detail }

// Invariant is the number of the broken invariant in ARCHITECTURE.md, "What must
// hold".
func (v Violation) Invariant() int {
	switch v.Rule {
	case ruleCreate:
		return 2
	case ruleMoney:
		return 3
	case ruleEvent, ruleVersion:
		return 4
	case ruleDelivery:
		return 5
	}
	return 1
}

// The rules that the check names, in the words of whoever has to act on them:
// the invariants of 3-architecture, "Simulation and proof", in their order.
const (
	ruleEnd      = "an operation ends once, as its events say, or something is due or a person is asked"
	ruleCreate   = "a create is recorded before it is sent, and an operation has one task"
	ruleMoney    = "a reservation ends once, no charge is above it, and the sums agree"
	ruleEvent    = "an event changes an operation once and keeps its key"
	ruleVersion  = "versions have no gaps, and each has one event"
	ruleArtifact = "a file of a result is captured, still due, or given up and a person is asked"
	ruleKept     = "an operation knows what it holds, and an erased one holds nothing"
	ruleDelivery = "an event has a delivery for each endpoint that wants it, and sequences have no gaps"
)

// findings gathers violations.
type findings []Violation

func (f *findings) add(row, rule, format string, args ...any) {
	*f = append(*f, Violation{row, rule, fmt.Sprintf(format, args...)})
}

// CheckFacts finds what is wrong with one operation; nil if nothing is.
func CheckFacts(f Facts) []Violation {
	var found findings
	found.end(f)
	found.correlation(f)
	found.reviews(f)
	found.artifacts(f)
	found.creates(f)
	found.work(f)
	found.money(f)
	found.versions(f)
	found.inbound(f)
	found.deliveries(f)
	found.kept(f)
	return found
}

// corrections counts how often a person or a policy has corrected the end.
func (f Facts) corrections() int {
	n := 0
	for _, h := range f.History {
		if h.Kind == CorrectedLine {
			n++
		}
	}
	return n
}

// end: exactly one terminal state, or something is due, or a person is asked.
func (found *findings) end(f Facts) {
	op, row := f.Operation, f.Operation.ID.Text(pawl.PrefixOperation)
	asleep := op.DueAt == pawl.Never && op.Reviews == 0
	switch {
	case asleep && !op.State.Terminal():
		found.add(row, ruleEnd, "%s, with nothing due and no open review", op.State)
	case asleep && !op.Settled:
		found.add(row, ruleEnd, "%s with its money open, nothing due and no open review", op.State)
	case op.State.Terminal() && op.FinishedAt == 0:
		found.add(row, ruleEnd, "%s without a time", op.State)
	}
	found.moves(f)
}

// moves: each change of state has its event, and an end is left by a
// correction alone.
func (found *findings) moves(f Facts) {
	row := f.Operation.ID.Text(pawl.PrefixOperation)
	said, ends := pawl.Pending, 0
	for _, e := range sortedEvents(f.Outbound) {
		state, ok := stateOf[e.Type]
		if !ok {
			continue
		}
		if said = state; !state.Terminal() {
			continue
		}
		if ends++; ends > 1+f.corrections() {
			found.add(e.ID.Text(pawl.PrefixEvent), ruleEnd, "a second end of operation %s, without a correction", row)
			return
		}
	}
	if said != f.Operation.State {
		found.add(row, ruleEnd, "it is %s, and its events say %s", f.Operation.State, said)
	}
}

// correlation: an application's own id has one unfinished operation.
func (found *findings) correlation(f Facts) {
	op := f.Operation
	if op.CorrelationID != "" && !op.State.Terminal() && f.Correlation.Operation != op.ID {
		found.add(op.ID.Text(pawl.PrefixOperation), ruleEnd, "unfinished, and its correlation_id does not stand for it")
	}
}

// stateOf is the state that an event of a type tells of. A corrected operation
// is one that was found not to be created.
var stateOf = map[string]pawl.State{
	pawl.TypeCorrected: pawl.Pending, pawl.TypeUnconfirmed: pawl.Unconfirmed, pawl.TypeRunning: pawl.Running,
	pawl.TypeSucceeded: pawl.Succeeded, pawl.TypeFailed: pawl.Failed, pawl.TypeCanceled: pawl.Canceled, pawl.TypeExpired: pawl.Expired,
}

// reviews: an operation knows the open reviews about it.
func (found *findings) reviews(f Facts) {
	var open uint32
	for _, r := range f.Reviews {
		if r.ClosedAt == 0 {
			open |= 1 << r.Reason
		}
	}
	if open != f.Operation.Reviews {
		found.add(f.Operation.ID.Text(pawl.PrefixOperation), ruleEnd, "its set of open reviews is %b, and the open reviews are %b", f.Operation.Reviews, open)
	}
}

// creates: the intention was durable before the first byte went out.
func (found *findings) creates(f Facts) {
	op, row := f.Operation, f.Operation.ID.Text(pawl.PrefixOperation)
	claims, taught := 0, false
	for _, h := range f.History {
		switch {
		case h.Kind == CreateLine:
			claims++
		case h.Kind == RestoredLine,
			h.Kind == CallbackLine && (h.Verdict != pawl.Hint || strings.HasSuffix(h.Reason, reasonConfirm)),
			h.Kind == ResolvedLine && h.Reason == pawl.DecideCreated:
			taught = true
		}
	}
	has := op.Task != "" || op.SubmittedAt.IsSet() || len(f.Tasks) > 0
	if has && claims == 0 && !taught {
		found.add(row, ruleCreate, "it has a task, and neither a recorded claim to create it nor anything that taught it")
	}
	if sent := op.FormerCreates + op.Creates; int(sent) > claims {
		found.add(row, ruleCreate, "%d creates are counted and %d claims recorded", sent, claims)
	}
	for _, t := range f.Tasks {
		if t.ID != (TaskID{op.Upstream, op.Task}) {
			found.add(row, ruleCreate, "another task than its own is claimed for it")
		}
	}
	if op.Task != "" && len(f.Tasks) == 0 {
		found.add(row, ruleCreate, "its task is not claimed")
	}
}

// money: each reservation ended once, no charge above it. A correction reverses
// what was charged, reserves again and ends that once more, by entries that are
// linked to its line of the timeline (7-rules R9).
func (found *findings) money(f Facts) {
	op, row := f.Operation, f.Operation.ID.Text(pawl.PrefixOperation)
	lines := map[pawl.ID]bool{{}: true}
	for _, h := range f.History {
		lines[h.ID] = lines[h.ID] || h.Kind == CorrectedLine
	}
	type place struct {
		correction pawl.ID
		kind       string
	}
	count := make(map[place]int)
	reservations, ends := 0, make(map[pawl.ID]bool)
	var reserved, spent pawl.Amount
	for _, e := range slices.SortedFunc(slices.Values(f.Entries), func(a, b Entry) int { return a.ID.Compare(b.ID) }) {
		id := e.ID.Text(pawl.PrefixEntry)
		reserved += e.into(Reserving)
		spent += e.into(Spent)
		at := place{e.Correction, e.Kind}
		count[at]++
		switch {
		case op.Money == Unmetered:
			found.add(id, ruleMoney, "a %s of operation %s, which has no price", e.Kind, row)
		case !lines[e.Correction] || e.Kind == "reversal" && e.Correction.IsZero():
			found.add(id, ruleMoney, "a %s of operation %s, linked to no correction of it", e.Kind, row)
		case e.Kind != "adjustment" && count[at] > 1:
			found.add(id, ruleMoney, "%s number %d of operation %s", e.Kind, count[at], row)
		case e.Amount < 0 || e.Account != op.Account:
			found.add(id, ruleMoney, "an amount below zero, or another account than operation %s has", row)
		}
		if e.Kind == "reserve" {
			reservations++
		}
		if e.Kind == "charge" || e.Kind == "release" {
			ends[e.Correction] = true
		}
	}
	held, open := pawl.Amount(0), 0
	if op.Money == Held {
		held, open = op.Reserved, 1
	}
	if reserved != held {
		found.add(row, ruleMoney, "its entries leave %s reserved, and %s is held", reserved, held)
	}
	if op.Money != Unmetered && reservations != len(ends)+open {
		found.add(row, ruleMoney, "%d reservations, %d of them ended and %d held", reservations, len(ends), open)
	}
	if op.Money != Unmetered && reservations == 0 {
		found.add(row, ruleMoney, "metered, and nothing was ever reserved")
	}
	found.charge(op, spent)
	found.budgets(f)
}

// budgets: those that count an operation exist; what they count is compared by
// [CheckBudget].
func (found *findings) budgets(f Facts) {
	for _, id := range f.Operation.Budgets() {
		kept := slices.ContainsFunc(f.Budgets, func(b Budget) bool { return b.ID == id })
		if !kept && f.Operation.Counted() != 0 {
			found.add(f.Operation.ID.Text(pawl.PrefixOperation), ruleMoney, "the budget of %s that counts it does not exist", id.Name)
		}
	}
}

func (found *findings) charge(op Operation, spent pawl.Amount) {
	row := op.ID.Text(pawl.PrefixOperation)
	if spent != op.Charged {
		found.add(row, ruleMoney, "its entries spend %s, and %s is charged", spent, op.Charged)
	}
	if op.Charged > op.Reserved || op.Charged < 0 {
		found.add(row, ruleMoney, "charged %s of a reservation of %s", op.Charged, op.Reserved)
	}
	nothing := op.State == pawl.Failed || op.State == pawl.Expired
	if nothing && (op.Money == Held || op.Charged != 0) {
		found.add(row, ruleMoney, "%s, and its reservation is held or charged", op.State)
	}
	if op.Money == Held && op.Settled {
		found.add(row, ruleMoney, "settled, and its reservation is held")
	}
}

// into is what an entry brings into a bucket; negative if it takes out.
func (e Entry) into(b Bucket) (sum pawl.Amount) {
	if e.To == b {
		sum += e.Amount
	}
	if e.From == b {
		sum -= e.Amount
	}
	return sum
}

// versions: creation is 1, each later one has exactly one event, in order.
func (found *findings) versions(f Facts) {
	last, at := int64(1), pawl.Time(0)
	for _, e := range sortedEvents(f.Outbound) {
		row := e.ID.Text(pawl.PrefixEvent)
		if e.At <= at {
			found.add(row, ruleVersion, "not later than an event of a lower version")
		}
		at = e.At
		switch {
		case e.Type == pawl.TypeProgress:
			continue
		case e.Version == last:
			found.add(row, ruleVersion, "a second event of version %d", last)
		case e.Version != last+1:
			found.add(row, ruleVersion, "version %d follows version %d", e.Version, last)
		}
		last = e.Version
	}
	if last != f.Operation.Version {
		found.add(f.Operation.ID.Text(pawl.PrefixOperation), ruleVersion, "at version %d, and its latest event is of version %d", f.Operation.Version, last)
	}
}

func sortedEvents(events []Event) []Event {
	return slices.SortedFunc(slices.Values(events), func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.At, b.At), a.ID.Compare(b.ID))
	})
}

// inbound: no event counted twice, and none lost that was judged.
func (found *findings) inbound(f Facts) {
	first, kept := make(map[EventKeyID]pawl.ID), make(map[pawl.ID]bool)
	for _, e := range f.Inbound {
		kept[e.ID] = true
		key := EventKeyID{e.Source, e.Task, e.ExternalID}
		if _, taken := first[key]; taken && e.HoldsKey() {
			found.add(e.ID.Text(pawl.PrefixEvent), ruleEvent, "the key of event %s was taken again", first[key].Text(pawl.PrefixEvent))
		} else if e.HoldsKey() {
			first[key] = e.ID
		}
	}
	applied := make(map[pawl.ID]bool)
	for _, h := range f.History {
		// A duplicate's line names the first one, which may be nobody's, and a
		// hint is not stored.
		if h.Kind == CallbackLine && h.Verdict != pawl.Duplicate && h.Verdict != pawl.Hint && !kept[h.Event] {
			found.add(h.Event.Text(pawl.PrefixEvent), ruleEvent, "operation %s has judged it, and it does not exist", f.Operation.ID.Text(pawl.PrefixOperation))
		}
		if h.Kind != CallbackLine || h.Verdict != pawl.Applied {
			continue
		}
		if applied[h.Event] {
			found.add(h.Event.Text(pawl.PrefixEvent), ruleEvent, "applied twice to operation %s", f.Operation.ID.Text(pawl.PrefixOperation))
		}
		applied[h.Event] = true
	}
}

// deliveries: every event has a delivery for each endpoint that wanted it, and
// each is delivered, dead, skipped with a reason, or still due.
func (found *findings) deliveries(f Facts) {
	type pair struct{ event, endpoint pawl.ID }
	have := make(map[pair]bool)
	for _, row := range f.Deliveries {
		id := row.ID.Text(pawl.PrefixDelivery)
		if have[pair{row.Event, row.Endpoint}] {
			found.add(id, ruleDelivery, "a second delivery of event %s for one endpoint", row.Event.Text(pawl.PrefixEvent))
		}
		have[pair{row.Event, row.Endpoint}] = true
		waiting := row.State == pawl.DeliveryPending || row.State == pawl.DeliveryDelivering
		if waiting && row.DueAt == pawl.Never {
			found.add(id, ruleDelivery, "%s, and never due", row.State)
		}
		if (row.State == pawl.DeliveryDead || row.State == pawl.DeliverySkipped) && row.Reason == "" {
			found.add(id, ruleDelivery, "%s without a reason", row.State)
		}
	}
	for _, e := range f.Outbound {
		for _, ep := range f.Endpoints {
			if owed(f.Operation, ep, e) && !have[pair{e.ID, ep.ID}] {
				found.add(e.ID.Text(pawl.PrefixEvent), ruleDelivery, "endpoint %s wanted it and has no delivery", ep.ID.Text(pawl.PrefixEndpoint))
			}
		}
	}
}

// owed reports whether it is certain that an endpoint wanted an event when it
// was emitted: it lived then, and its types are those of then. What happened at
// the very moment of the event, or before the endpoint was last changed, is
// not certain.
func owed(op Operation, ep Endpoint, e Event) bool {
	if ep.ID != op.Callback && (ep.Kind != WebhookEndpoint || ep.Tenant != op.Tenant) {
		return false
	}
	since := ep.CreatedAt
	if ep.Kind == WebhookEndpoint {
		since = max(since, ep.UpdatedAt)
	}
	decided := madeAt(e.ID)
	return since < decided && (ep.DeletedAt == 0 || decided < ep.DeletedAt) && wants(ep, e.Type) && e.Type != pawl.TypeProgress
}

// madeAt is the moment of the decision that made an id, which it carries to
// the microsecond; an event's own time may be later.
func madeAt(id pawl.ID) pawl.Time {
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return pawl.Time(ms*1000 + (int64(id[6]&0x0f)<<8|int64(id[7]))>>2)
}

// CheckAccount compares an account with the sums of its journal.
func CheckAccount(f AccountFacts) []Violation {
	var found findings
	a, row := f.Account, f.Account.ID.Text(pawl.PrefixAccount)
	for _, sum := range [...]struct {
		what          string
		held, journal pawl.Amount
	}{
		{"credited", a.Credited, f.Funded},
		{"charged", a.Charged, f.Spent},
		{"reserved", a.Reserved, f.Reserved},
	} {
		if sum.held != sum.journal {
			found.add(row, ruleMoney, "%s is %s, and the journal says %s", sum.what, sum.held, sum.journal)
		}
	}
	if a.Reserved != f.Held {
		found.add(row, ruleMoney, "reserved is %s, and its operations hold %s", a.Reserved, f.Held)
	}
	if a.available() < 0 {
		found.add(row, ruleMoney, "available is %s", a.available())
	}
	return found
}

// CheckBudget compares a budget with the operations that it counts.
func CheckBudget(f BudgetFacts) []Violation {
	var found findings
	if id := f.Budget.ID; f.Budget.Used != f.Counted {
		found.add(id.Name, ruleMoney, "its budget in %s has used %s, and its operations come to %s", id.Currency, f.Budget.Used, f.Counted)
	}
	return found
}

// CheckEndpoint finds gaps and repeats in an endpoint's stream (7-rules §3).
func CheckEndpoint(f EndpointFacts) []Violation {
	var found findings
	row := f.Endpoint.ID.Text(pawl.PrefixEndpoint)
	if f.FirstGap != 0 {
		found.add(row, ruleDelivery, "no delivery has sequence %d", f.FirstGap)
	}
	if f.Distinct != f.Numbered {
		found.add(row, ruleDelivery, "%d deliveries share %d sequences", f.Numbered, f.Distinct)
	}
	if f.FirstGap == 0 && f.Highest != f.Distinct {
		found.add(row, ruleDelivery, "the highest sequence is %d of %d given", f.Highest, f.Distinct)
	}
	if f.Highest != f.Queue.Sequence {
		found.add(row, ruleDelivery, "the highest sequence is %d, and %d were given out", f.Highest, f.Queue.Sequence)
	}
	return found
}

// CheckLoose names the rows that hang on nothing they should hang on.
func CheckLoose(f LooseFacts) []Violation {
	var found findings
	for _, e := range f.EventsWithoutKey {
		found.add(e.ID.Text(pawl.PrefixEvent), ruleEvent, "%s, and its key is not taken", cmp.Or(e.Judged().String(), "published"))
	}
	for _, e := range f.EventsMiscounted {
		found.add(e.ID.Text(pawl.PrefixEvent), ruleDelivery, "%s, with %d waiting, %d in trouble and %d handled, and its deliveries say otherwise", e.Inbox, e.Waiting, e.Troubled, e.Handled)
	}
	for _, e := range f.ParkedWithOperation {
		found.add(e.ID.Text(pawl.PrefixEvent), ruleEnd, "parked, although the operation of its task is known")
	}
	for _, t := range f.TasksWithoutOperation {
		found.add(t.Operation.Text(pawl.PrefixOperation), ruleCreate, "a task of upstream %s is claimed for it, and it does not exist", t.ID.Upstream)
	}
	for _, d := range f.DeliveriesWithoutEvent {
		found.add(d.ID.Text(pawl.PrefixDelivery), ruleDelivery, "its event does not exist")
	}
	for _, e := range f.EntriesWithoutAccount {
		found.add(e.ID.Text(pawl.PrefixEntry), ruleMoney, "its account does not exist")
	}
	for _, k := range f.KeysWithoutOperation {
		found.add(k.Operation.Text(pawl.PrefixOperation), ruleEnd, "an idempotency key of tenant %s stands for it, and it does not exist", k.ID.Tenant)
	}
	return found
}
