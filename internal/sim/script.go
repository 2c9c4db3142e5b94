package sim

import (
	"fmt"
	"io"
	"time"

	"github.com/pawlhq/pawl"
)

// Script is all that happens to one operation. Its durations are script time
// since the task was made; [Config.Speed] turns them into real time.
type Script struct {
	// N is the number of the operation, as in the input's "n".
	N int
	// Dialect is the upstream that the operation must be given to.
	Dialect Dialect
	// Final is the end that the provider gives the task. ErrorCode is its word
	// for a failure, sometimes outside the nine codes of 1-product D5.
	Final     pawl.State
	ErrorCode string
	// Price is what the client should reserve; Cost is the final charge, never
	// above it. A dialect without prices has Cost equal to Price on success.
	Price, Cost pawl.Amount
	// Create is met by the first CreateTimes creates (CreateRefused: by all).
	Create      Fault
	CreateTimes int
	// Lookup says whether a lost task can be found by the client's reference.
	Lookup bool
	// Start and End are when the task runs and ends; Settle is when its charge
	// is final, later than End only if Settles is SettleLater or SettleByRead.
	Start, End, Settle time.Duration
	Settles            Fault
	// Reads is met by the first ReadTimes reads.
	Reads     Fault
	ReadTimes int
	// Callbacks are in the order of their times.
	Callbacks []Callback
	Trouble
}

// CallbackKind is what a callback tells.
type CallbackKind string

// The kinds of callbacks.
const (
	// TellsRunning: the task has begun.
	TellsRunning CallbackKind = "running"
	// TellsProgress: for display only.
	TellsProgress CallbackKind = "progress"
	// TellsEnd: the task has ended; its charge may still be an estimate.
	TellsEnd CallbackKind = "end"
	// TellsSettled: the charge of an ended task is final.
	TellsSettled CallbackKind = "settled"
)

// Callback is one sending of one event.
type Callback struct {
	// Event names the event inside the script: equal names are the same event,
	// with the same id and, unless forged, the same bytes.
	Event string
	// Kind is what it tells, Fault what is wrong with it.
	Kind  CallbackKind
	Fault Fault
	// At is script time since the task was made.
	At time.Duration
}

// Learnable reports whether a client that never repeats an unclear create of a
// non-idempotent upstream (1-product B2) can still learn the outcome: from the
// create's answer, by lookup, or by a callback.
func (s Script) Learnable() bool {
	switch {
	case !s.Create.unclear(), s.Dialect.Idempotent():
		return true
	case s.Create == CreateFailedBefore:
		return false
	case s.Lookup:
		return true
	}
	for _, c := range s.Callbacks {
		if c.Fault.genuine() {
			return true
		}
	}
	return false
}

// Expected is the state and the charge that the client should end with, if it
// does not cancel: the provider's for what is learnable, else unconfirmed with
// nothing charged.
func (s Script) Expected() (pawl.State, pawl.Amount) {
	if !s.Learnable() {
		return pawl.Unconfirmed, 0
	}
	return s.Final, s.Cost
}

// faults calls yield for every fault that the script injects.
func (s Script) faults(yield func(Fault)) {
	for _, f := range []Fault{s.Create, s.Reads, s.Settles} {
		if f != "" {
			yield(f)
		}
	}
	for _, c := range s.Callbacks {
		if c.Fault != "" {
			yield(c.Fault)
		}
	}
}

// write writes the canonical text of the script, one line.
func (s Script) write(w io.Writer) {
	fmt.Fprintf(w, "%d %s %s %q price=%s cost=%s create=%s*%d lookup=%t at=%d,%d,%d settles=%s reads=%s*%d",
		s.N, s.Dialect, s.Final, s.ErrorCode, s.Price, s.Cost, s.Create, s.CreateTimes, s.Lookup,
		s.Start, s.End, s.Settle, s.Settles, s.Reads, s.ReadTimes)
	if s.Trouble != (Trouble{}) {
		fmt.Fprintf(w, " %v", s.Trouble)
	}
	for _, c := range s.Callbacks {
		fmt.Fprintf(w, " %s/%s/%s@%d", c.Event, c.Kind, c.Fault, c.At)
	}
	fmt.Fprintln(w)
}
