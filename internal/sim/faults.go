package sim

// Fault is one kind of misbehaviour, as a word for tables and JSON. The empty
// Fault is none.
type Fault string

// The faults of a create.
const (
	// CreateLost: the task is made, then the connection is closed unanswered.
	CreateLost Fault = "create_lost"
	// CreateSlow: the task is made, the answer comes after the client gave up.
	CreateSlow Fault = "create_slow"
	// CreateRefused: 400, no task, however often it is asked.
	CreateRefused Fault = "create_refused"
	// CreateLimited: 429 with Retry-After and no task, then it works.
	CreateLimited Fault = "create_limited"
	// CreateFailedBefore: 503 and no task.
	CreateFailedBefore Fault = "create_failed_before"
	// CreateFailedAfter: 503 although the task is made.
	CreateFailedAfter Fault = "create_failed_after"
)

// The faults of a callback. Each has one [Callback] in the script.
const (
	// CallbackDuplicate: the same event, byte for byte, once more.
	CallbackDuplicate Fault = "callback_duplicate"
	// CallbackDelayed: seconds late.
	CallbackDelayed Fault = "callback_delayed"
	// CallbackReordered: news of a running task after its end.
	CallbackReordered Fault = "callback_reordered"
	// CallbackDropped: never sent.
	CallbackDropped Fault = "callback_dropped"
	// CallbackEarly: sent before the create is answered.
	CallbackEarly Fault = "callback_early"
	// CallbackCorrupted: one byte differs on the first attempt; the repeats are good.
	CallbackCorrupted Fault = "callback_corrupted"
	// CallbackBadSignature: the end's own event id, another end, a forger's key.
	CallbackBadSignature Fault = "callback_bad_signature"
	// CallbackStale: the end's own event, well signed an hour ago.
	CallbackStale Fault = "callback_stale_timestamp"
	// CallbackWrongTask: well signed, names a task of another operation.
	CallbackWrongTask Fault = "callback_wrong_task"
	// CallbackUnknownTask: well signed, names a task that nobody made.
	CallbackUnknownTask Fault = "callback_unknown_task"
	// CallbackUnknownState: well signed, with a state word outside the vocabulary.
	CallbackUnknownState Fault = "callback_unknown_state"
	// CallbackLate: a new event that says "running", after the end was acknowledged.
	CallbackLate Fault = "callback_late"
	// CallbackConflict: a new event with another end, after the first was acknowledged.
	CallbackConflict Fault = "callback_conflict"
)

// The faults of reads, and the two ways to settle after the end.
const (
	// ReadFailed: the first reads answer 500.
	ReadFailed Fault = "read_failed"
	// ReadFlapping: every other one of the first reads shows an earlier state.
	ReadFlapping Fault = "read_flapping"
	// ReadWrongTask: the first read answers for another task.
	ReadWrongTask Fault = "read_wrong_task"
	// SettleLater: the final charge comes by a callback of its own.
	SettleLater Fault = "settle_later"
	// SettleByRead: the final charge comes by no callback; it must be asked for.
	SettleByRead Fault = "settle_by_read"
)

// The faults of a [Receiver].
const (
	// ReceiverFailed: the first one to three attempts of an event get 500.
	ReceiverFailed Fault = "receiver_failed"
	// ReceiverSlow: the first answer takes [ReceiverConfig.Hold].
	ReceiverSlow Fault = "receiver_slow"
	// ReceiverCut: the first attempt is read and accepted, its answer never comes.
	ReceiverCut Fault = "receiver_cut"
	// ReceiverLimited: the first attempt gets 429 with Retry-After.
	ReceiverLimited Fault = "receiver_limited"
	// ReceiverGone: 410, every time.
	ReceiverGone Fault = "receiver_gone"
)

// Faults lists what a [Plan] can inject, in the order of the closing table.
func Faults() []Fault {
	return []Fault{
		CreateLost, CreateSlow, CreateRefused, CreateLimited, CreateFailedBefore, CreateFailedAfter,
		CallbackDuplicate, CallbackDelayed, CallbackReordered, CallbackDropped, CallbackEarly, CallbackCorrupted,
		CallbackBadSignature, CallbackStale, CallbackWrongTask, CallbackUnknownTask, CallbackUnknownState,
		CallbackLate, CallbackConflict,
		ReadFailed, ReadFlapping, ReadWrongTask, SettleLater, SettleByRead,
	}
}

// genuine reports whether a callback with this fault is still the provider's
// own word about the course of the task.
func (f Fault) genuine() bool {
	switch f {
	case "", CallbackDuplicate, CallbackDelayed, CallbackReordered, CallbackEarly, CallbackCorrupted, CallbackNoToken:
		return true
	}
	return false
}

// Honest reports whether a callback with this fault is its provider's own word,
// under an id of its own, about a task that it made: whoever answers it 2xx
// must have it.
func (f Fault) Honest() bool { return f.retried() }

// made reports whether a create with this fault leaves a task behind.
func (f Fault) made() bool {
	switch f {
	case CreateRefused, CreateLimited, CreateFailedBefore:
		return false
	}
	return true
}

// unclear reports whether the client cannot tell from the answer whether the
// create happened (1-product B4).
func (f Fault) unclear() bool {
	switch f {
	case CreateLost, CreateSlow, CreateFailedBefore, CreateFailedAfter:
		return true
	}
	return false
}
