package simulate

import (
	"slices"

	"github.com/pawlhq/pawl/internal/sim"
)

// Fault is one kind of misbehaviour. The faults of providers and receivers have
// the words of package sim.
type Fault = sim.Fault

// The faults of the program's own side.
const (
	// NodeCrash: a node dies between two steps; NodeCrashCommit at a commit,
	// before or after it took effect.
	NodeCrash       Fault = "node_crash"
	NodeCrashCommit Fault = "node_crash_commit"
	// NodeFreeze: a node stands still for a while and then goes on.
	NodeFreeze Fault = "node_freeze"
	// NodeDrain: a node is stopped in order and started again.
	NodeDrain Fault = "node_drain"
	// LateStart: a leased action waits in the node's queue, perhaps until its
	// lease has run out.
	LateStart Fault = "late_start"
	// LateRecord: what an action came to is recorded late.
	LateRecord Fault = "late_record"
	// CommitLost: a commit fails and took no effect. CommitHidden: it fails and
	// took effect. CommitUnknown: it took effect and its caller is told that
	// nobody knows.
	CommitLost    Fault = "commit_lost"
	CommitHidden  Fault = "commit_hidden"
	CommitUnknown Fault = "commit_unknown"
	// StoreError: the database refuses to load or save once. StoreDown: for a while.
	StoreError Fault = "store_error"
	StoreDown  Fault = "store_down"
	// ClockForward and ClockBack: the database's clock, or all, jump.
	ClockForward Fault = "clock_forward"
	ClockBack    Fault = "clock_back"
	// NodeSkew: a node's clock is off.
	NodeSkew Fault = "node_skew"
)

// The faults of a provider beside those of package sim.
const (
	// CreateUnsent: no connection. CreateGone: the request is lost on its way.
	// CreateCut: half an answer. CreateNoTask: a 2xx without an id.
	CreateUnsent Fault = "create_unsent"
	CreateGone   Fault = "create_gone"
	CreateCut    Fault = "create_cut"
	CreateNoTask Fault = "create_no_task"
	// CallbackUnanswered: our answer is lost on its way back.
	CallbackUnanswered Fault = "callback_unanswered"
	// CallbackUnknownType: well signed, of a type outside the vocabulary.
	CallbackUnknownType Fault = "callback_unknown_type"
	// CallbackProgressEnds: an event that only shows progress names an end.
	CallbackProgressEnds Fault = "callback_progress_names_end"
	// CallbackOtherBody: the same event id with another end.
	CallbackOtherBody Fault = "callback_other_body"
	// ReadLost: a read without an answer. ReadNotFound: the provider has lost the
	// task for a while. ReadUnknownState: a word outside the vocabulary.
	ReadLost         Fault = "read_lost"
	ReadNotFound     Fault = "read_not_found"
	ReadUnknownState Fault = "read_unknown_state"
	// ProviderDown, ProviderUnauthorized: for a while.
	ProviderDown         Fault = "provider_down"
	ProviderUnauthorized Fault = "provider_unauthorized"
	// TaskSlow: it runs past the deadline. TaskStuck: it never ends.
	TaskSlow  Fault = "task_slow"
	TaskStuck Fault = "task_stuck"
	// NoResult: a success without a result. CostAbove: more than was reserved.
	// CostCurrency: in another currency. CostRaised: a higher total after the end.
	NoResult     Fault = "no_result"
	CostAbove    Fault = "cost_above"
	CostCurrency Fault = "cost_currency"
	CostRaised   Fault = "cost_raised"
	// ReceiverRefuses: 400. ReceiverDown: no connection for a while.
	ReceiverRefuses Fault = "receiver_refuses"
	ReceiverDown    Fault = "receiver_down"
)

// The faults of people.
const (
	// AnswerLost: the answer to an application is lost, which asks again.
	AnswerLost Fault = "answer_lost"
	// WrongDecision: an operator names a task that is another's, or none.
	WrongDecision Fault = "wrong_decision"
)

// Faults lists every fault in the order of tables.
func Faults() []Fault {
	return []Fault{
		NodeCrash, NodeCrashCommit, NodeFreeze, NodeDrain, LateStart, LateRecord,
		CommitLost, CommitHidden, CommitUnknown, StoreError, StoreDown, ClockForward, ClockBack, NodeSkew,
		sim.CreateLost, sim.CreateSlow, sim.CreateRefused, sim.CreateLimited, sim.CreateFailedBefore, sim.CreateFailedAfter,
		CreateUnsent, CreateGone, CreateCut, CreateNoTask,
		sim.CallbackDuplicate, sim.CallbackDelayed, sim.CallbackReordered, sim.CallbackDropped, sim.CallbackEarly, sim.CallbackCorrupted,
		sim.CallbackBadSignature, sim.CallbackStale, sim.CallbackWrongTask, sim.CallbackUnknownTask, sim.CallbackUnknownState,
		sim.CallbackLate, sim.CallbackConflict, CallbackUnanswered, CallbackUnknownType, CallbackProgressEnds, CallbackOtherBody,
		sim.ReadFailed, sim.ReadFlapping, sim.ReadWrongTask, ReadLost, ReadNotFound, ReadUnknownState,
		ProviderDown, ProviderUnauthorized, TaskSlow, TaskStuck, sim.SettleLater, sim.SettleByRead,
		NoResult, CostAbove, CostCurrency, CostRaised,
		sim.ReceiverFailed, sim.ReceiverSlow, sim.ReceiverCut, sim.ReceiverLimited, sim.ReceiverGone, ReceiverRefuses, ReceiverDown,
		AnswerLost, WrongDecision,
	}
}

// mood says how often each fault of a run happens, in percent of what its place
// says: a run has some faults and not others, some often and some rarely, since
// all at once would hide each other.
type mood map[Fault]int

// newMood draws the mood of a seed. Given faults are those that may happen; the
// shares of those that remain stay what they are without the others.
func newMood(seed uint64, given []Fault) mood {
	m := mood{}
	calm := newDice(seed, "calm").percent(4)
	for _, f := range Faults() {
		d := newDice(seed, "mood "+string(f))
		on, share := d.percent(55), pick(d, 30, 100, 100, 300)
		if given != nil {
			on, calm = slices.Contains(given, f), false
		}
		if on && !calm {
			m[f] = share
		}
	}
	return m
}

// faults are those that may happen, in the order of tables.
func (m mood) faults() []Fault {
	on := []Fault{}
	for _, f := range Faults() {
		if m[f] > 0 {
			on = append(on, f)
		}
	}
	return on
}

// hit draws whether a fault strikes, perMille of the time in an ordinary mood.
func (w *world) hit(f Fault, perMille int) bool { return w.hitBy(w.dice, f, perMille) }

// hitBy is [world.hit] with dice of its own.
func (w *world) hitBy(d dice, f Fault, perMille int) bool {
	roll := d.IntN(100_000)
	if w.calm || roll >= perMille*w.mood[f] {
		return false
	}
	w.struck[f]++
	return true
}
