package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// MoneyState says how far an operation's money has come.
type MoneyState uint8

// The values of [MoneyState].
const (
	// Unmetered: no price, nothing is reserved or charged (1-product A7).
	Unmetered MoneyState = iota + 1
	// Held: the reservation is held.
	Held
	// Ended: charged, released, or both.
	Ended
)

// Operation is our own record of one intended piece of work, with the columns
// that schedule what is done for it next.
type Operation struct {
	ID       pawl.ID
	Tenant   string
	APIKey   pawl.ID
	Upstream string
	Model    string
	// AskedModel is the name that the caller of a front gave for both, empty for
	// operations of /v1.
	AskedModel string
	// RequestID is ours of the request that submitted it, as its answer told it.
	RequestID string
	// Traceparent is the trace context of the submission in W3C form, empty for
	// none: what is done for the operation later belongs to it (TR-06).
	Traceparent string
	Adapter     string
	Owner       string

	CorrelationID string
	CallbackURL   string
	// Callback is the endpoint of kind callback that CallbackURL became.
	Callback pawl.ID
	RetryOf  pawl.ID

	State   pawl.State
	Version int64
	// EventAt is the time of the latest emitted event: it only rises.
	EventAt pawl.Time

	Task          string
	UpstreamState string
	// UpstreamVersion is the highest version the sender gave, -1 for none.
	UpstreamVersion   int64
	UpstreamRequestID string
	// Progress is in hundredths of a percent, -1 for none.
	Progress int32
	// Result names the payload that holds the result.
	Result       pawl.ID
	ErrorCode    pawl.FailureCode
	ErrorWord    string
	ErrorMessage string

	Account  pawl.ID
	Currency string
	// Reserved is the price taken at submit; Cost the latest reported total;
	// Charged what was booked. CostText is Cost as the provider wrote it.
	Reserved, Cost, Charged pawl.Amount
	CostText                string
	// Foreign is the cost in another currency that a person was asked about last
	// (7-rules R27): they are asked again for another one only.
	Foreign string
	Money   MoneyState
	Settled bool

	CreatedAt, SubmittedAt, UpdatedAt, Deadline, FinishedAt pawl.Time

	// CancelRequestedAt is when it was first asked to be canceled, CancelConfirmed
	// says that the provider took the cancel, or that nothing was there to be
	// canceled. CancelDueAt is when the cancel is to be sent (next), 0 for never,
	// Cancels how often it was since it was asked for last.
	CancelRequestedAt pawl.Time
	CancelConfirmed   bool
	CancelDueAt       pawl.Time
	Cancels           int32
	// Expiring says that the deadline's read found it unfinished: it expires as
	// soon as the provider was told to stop (1-product D4).
	Expiring bool

	// Correction is the timeline's line of the latest correction, zero for none
	// (7-rules R9). ByHand says that a person decided the charge: what the
	// provider reports later books nothing.
	Correction pawl.ID
	ByHand     bool

	// KeyBudget says that the budget of its API key counts it, SpendDay that the
	// spending of its upstream on that day (see [DayOf]) does; 0 for none.
	KeyBudget bool
	SpendDay  int64

	// Reviews is the set of reasons with an open review, Review the latest one.
	Reviews uint32
	Review  pawl.ID

	// DueAt is when something must be done next; while leased, when the lease
	// ends. Lease counts leases and is the fence; Leased is the action under
	// way. Queue is the kind of queue that holds the operation: SubmitQueue
	// until its create is known to be done, then ReadQueue.
	DueAt  pawl.Time
	Queue  QueueKind
	Lease  int64
	Leased Action
	// Creates counts create attempts of the present schedule and FormerCreates
	// those before it, FirstCreateAt starts the window of an idempotent create and
	// CreateCredential is what it was made with.
	Creates          int32
	FormerCreates    int32
	FirstCreateAt    pawl.Time
	CreateCredential [8]byte
	// InFlight says that a create was claimed and nothing was recorded since;
	// MayExist that an attempt ended without telling whether it reached the
	// provider.
	InFlight, MayExist bool
	// Reads counts status reads, ReadEvery is the current interval.
	Reads     int32
	ReadEvery time.Duration
	// NotFound counts reads in a row that were answered 404 since NotFoundAt.
	NotFound   int32
	NotFoundAt pawl.Time
	// Unreached counts reads in a row without a usable answer.
	Unreached int32
	// DeadlineReads counts reads after the deadline, or for the result of a success
	// that has none; LastReadAt is the latest read.
	DeadlineReads int32
	LastReadAt    pawl.Time
	// ReadLine is the latest line of the timeline that a read has left.
	ReadLine ReadLine

	// WaitingAt is when an own worker may lease it, the oldest first, and 0 where
	// none may. Creates counts the leases of own workers: the last one is the fence.
	WaitingAt pawl.Time
	// WorkFailed is the set of an own worker's leases that ended by its word that
	// it had failed (bit n-1 for lease n), WorkDone says that the last one ended by
	// its word that the work was done: what is said twice is answered twice.
	// WorkReport is the digest of the last of these reports.
	WorkFailed int64
	WorkDone   bool
	WorkReport Digest
	// Artifacts counts the artifacts that its results ever had, Captures is how
	// far those of its present result are. WantsLinks says that a read is to bring
	// fresh links for some of them (1-product G3).
	Artifacts  int32
	Captures   Captures
	WantsLinks bool
	// Hold says that its result is withheld until ReleasedAt (1-product G4).
	Hold       bool
	ReleasedAt pawl.Time

	// Kept are the classes of data that it still holds anything of; ErasedAt is
	// when a person had its content erased, 0 if nobody did (1-product I8).
	Kept     Kept
	ErasedAt pawl.Time
}

// Action is what is done for an operation when it is due.
type Action uint8

// The actions.
const (
	// NoAction: nothing is leased.
	NoAction Action = iota
	// ActSubmit: create the task upstream.
	ActSubmit
	// ActRead: read the task's status.
	ActRead
	// ActLookup: find the task of an unconfirmed create by our reference.
	ActLookup
	// ActAdvance: decide what time alone decides: a lost create, a deadline.
	ActAdvance
	// ActCancel: ask the provider to stop the task.
	ActCancel
	// ActWork: an own worker has it.
	ActWork
)

// String is the action's word in logs and metrics.
func (a Action) String() string {
	return [...]string{"none", "submit", "read", "lookup", "advance", "cancel", "work"}[a]
}
