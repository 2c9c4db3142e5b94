package pawl

import "errors"

// State is the state of an operation. What moves between states: [CanMove].
type State uint8

// The states of an operation (1-product D1).
const (
	// Pending: not created at the provider, or safe to try again.
	Pending State = iota + 1
	// Unconfirmed: a create may have reached the provider.
	Unconfirmed
	// Running: the provider accepted it, whatever its own word for waiting is.
	Running
	// Succeeded, Failed, Canceled and Expired are terminal.
	Succeeded
	Failed
	Canceled
	Expired
)

var stateNames = [...]string{
	Pending: "pending", Unconfirmed: "unconfirmed", Running: "running",
	Succeeded: "succeeded", Failed: "failed", Canceled: "canceled", Expired: "expired",
}

// String is the state's word in JSON, SQL and on screens.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return ""
}

// MarshalText writes the state's word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseState reads a state's word.
func ParseState(word string) (State, bool) {
	for s := Pending; s <= Expired; s++ {
		if stateNames[s] == word {
			return s, true
		}
	}
	return 0, false
}

// Terminal reports whether nothing but an operator's correction leaves the
// state.
func (s State) Terminal() bool { return s >= Succeeded }

// Cause is what moves a state.
type Cause uint8

// The causes of a move (7-rules §1).
const (
	// BySubmit: the submission itself and what its create attempt showed.
	BySubmit Cause = iota + 1
	// ByObservation: a verified callback or the answer of a read.
	ByObservation
	// ByCancel: a cancel of what was never created, or has no worker.
	ByCancel
	// ByDeadline: our own clock.
	ByDeadline
	// ByOperator: a person's decision.
	ByOperator
	// ByLease: an own worker leased it, or was never heard of again.
	ByLease
)

// moves is the state table of 7-rules §1: which causes allow which move.
// Whatever is not in it is a verdict, never a write.
var moves = map[[2]State][]Cause{
	{Pending, Unconfirmed}: {BySubmit},
	{Pending, Running}:     {BySubmit, ByObservation, ByLease},
	{Pending, Succeeded}:   {ByObservation},
	{Pending, Failed}:      {BySubmit, ByObservation},
	{Pending, Canceled}:    {ByObservation, ByCancel},
	{Pending, Expired}:     {ByObservation, ByDeadline},

	{Unconfirmed, Running}:   {BySubmit, ByObservation, ByOperator},
	{Unconfirmed, Succeeded}: {ByObservation},
	{Unconfirmed, Failed}:    {ByObservation, ByOperator},
	{Unconfirmed, Canceled}:  {ByObservation},
	{Unconfirmed, Expired}:   {ByObservation},
	{Unconfirmed, Pending}:   {ByOperator},

	{Running, Succeeded}: {ByObservation},
	{Running, Failed}:    {ByObservation, ByLease},
	{Running, Canceled}:  {ByObservation, ByCancel, ByLease},
	{Running, Expired}:   {ByObservation, ByDeadline},
}

// CanMove reports whether cause may move an operation from one state to
// another. A terminal state is left only by an operator's correction to
// another terminal state (7-rules R9).
func CanMove(from, to State, cause Cause) bool {
	if from.Terminal() {
		return to.Terminal() && to != from && cause == ByOperator
	}
	for _, c := range moves[[2]State{from, to}] {
		if c == cause {
			return true
		}
	}
	return false
}

// Rank orders states by how far the work has come; an observation without a
// version never moves an operation to a lower rank (1-product D2).
func (s State) Rank() int {
	switch s {
	case Pending:
		return 0
	case Unconfirmed:
		return 1
	case Running:
		return 2
	default:
		return 3
	}
}

// UnmarshalText reads a state's word; the empty one is the zero State, as
// [State.MarshalText] writes it.
func (s *State) UnmarshalText(text []byte) error {
	v, ok := ParseState(string(text))
	if !ok && len(text) > 0 {
		return errors.New("not a state of an operation")
	}
	*s = v
	return nil
}
