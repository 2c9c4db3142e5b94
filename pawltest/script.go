package pawltest

import (
	"encoding/json"
	"time"

	"github.com/pawlhq/pawl"
)

// Telling is how the upstream tells that a task has ended.
type Telling uint8

// The ways of telling. A read of the task always says how it is.
const (
	// TellOnce: one callback.
	TellOnce Telling = iota
	// TellTwice: the same callback two times.
	TellTwice
	// TellLate: the end, and after it the callback that the task has begun.
	TellLate
	// TellNever: no callback; the node must ask.
	TellNever
)

// Script is what the upstream does with a job. The zero value succeeds at once,
// costs nothing, has no result, and is told once.
type Script struct {
	// Refuse, where set, is the create's refusal: there is no task.
	Refuse pawl.FailureCode
	// LoseAnswer makes the task and cuts the connection in place of an answer.
	LoseAnswer bool
	// Takes is how long the task runs. Hold keeps it running until
	// [Upstream.Finish], or a cancel.
	Takes time.Duration
	Hold  bool
	// End is the state that it ends in; Succeeded if zero.
	End pawl.State
	// Result is any value that can be written as JSON, for a success.
	Result any
	// Cost is a decimal in USD, at most what was reserved.
	Cost string
	// Code and Message are the provider's word and text for a failure.
	Code, Message string
	// Tell is how the end is told.
	Tell Telling
}

func (s Script) end() pawl.State {
	if s.End == 0 {
		return pawl.Succeeded
	}
	return s.End
}

// Task is what the upstream was given, and what became of it there.
type Task struct {
	ID, Model string
	Input     json.RawMessage
	// State is running, or how it ended.
	State pawl.State
	// Callbacks counts those that were answered 2xx, Reads the status reads.
	Callbacks, Reads int
}
