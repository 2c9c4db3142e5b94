package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// Digest is a SHA-256.
type Digest [32]byte

// IdempotencyKeyID names a caller's key within its tenant: all keys of a
// tenant share one space, so that a sibling's use is seen (1-product A4).
type IdempotencyKeyID struct{ Tenant, Value string }

// IdempotencyKey is the claim of an Idempotency-Key by one operation.
type IdempotencyKey struct {
	ID     IdempotencyKeyID
	APIKey pawl.ID
	// For says what was asked for: [ForOperation], [ForCredit], …
	For string
	// Operation is what the key stands for: an operation, or the review,
	// delivery, event or journal entry that was asked for.
	Operation   pawl.ID
	Fingerprint Digest
	ExpiresAt   pawl.Time
}

// CorrelationID names an application's own id within its tenant.
type CorrelationID struct{ Tenant, Value string }

// Correlation is the claim of an application's own id by the operation that
// has it. It holds for as long as that is unfinished (1-product A8).
type Correlation struct {
	ID        CorrelationID
	APIKey    pawl.ID
	Operation pawl.ID
	// Work is what the operation was asked to do, under whatever key.
	Work Digest
}

// EventKeyID names an event at its source; the task is empty for generic
// sources (1-product, "Words").
type EventKeyID struct{ Source, Task, Event string }

// EventKey is the claim of an event's key by the event that came first.
type EventKey struct {
	ID      EventKeyID
	Event   pawl.ID
	Digest  Digest
	Word    string
	Repeats int64
	Differs bool
}

// TaskID names a provider's task.
type TaskID struct{ Upstream, Task string }

// Task is the claim of a provider's task: by an operation, or by the first
// parked orphan where Operation is still empty.
type Task struct {
	ID        TaskID
	Operation pawl.ID
	// ClaimedAt is when it was claimed; while no operation has it, the time of
	// the latest parked event, which only rises.
	ClaimedAt pawl.Time
}

// Source holds what is counted per source.
type Source struct {
	Name   string
	Parked int64
	// UnknownTypes counts the stored events that are of none but unknown types
	// still, whosever they are; see [UnknownTypes].
	UnknownTypes int64
}

// Tenant owns operations, endpoints, accounts and API keys.
type Tenant struct {
	Name      string
	Account   pawl.ID
	CreatedAt pawl.Time
	// EraseBefore is set while all that was made before that moment is being
	// erased.
	EraseBefore pawl.Time
}

// Scopes is a set of what an API key may do.
type Scopes uint8

// The scopes (2-contracts §1).
const (
	ScopeSubmit Scopes = 1 << iota
	ScopeRead
	ScopeOperate
	ScopePayloads
	ScopeAdmin
)

// APIKey is a credential of one tenant; the secret itself is not stored.
type APIKey struct {
	ID     pawl.ID
	Tenant string
	Name   string
	Hash   Digest
	Scopes Scopes
	// WebhookSecret signs what is sent to this key's callback addresses;
	// FormerSecret overlaps it until FormerUntil.
	WebhookSecret, FormerSecret Sealed
	FormerUntil                 pawl.Time
	CreatedAt, ExpiresAt        pawl.Time
	RevokedAt                   pawl.Time
	// FormerHash is that of the secret before the last rotation, which is valid
	// until FormerHashUntil beside the present one.
	FormerHash      Digest
	FormerHashUntil pawl.Time
	// LastUsedAt is exact to about a minute.
	LastUsedAt pawl.Time
	// Version rises with each change by a person.
	Version int64
	Limits  KeyLimits
}

// KeyLimits are what an API key is limited to beside its scopes; the zero value
// limits nothing (1-product I7).
type KeyLimits struct {
	// Rate is how many calls a second it may make, in thousandths, and Burst
	// how many at once; 0 for no limit.
	Rate  int64
	Burst int32
	// Budget is what its operations may reserve and cost in all, in one
	// currency; no limit where that is empty.
	Budget   pawl.Amount
	Currency string
	// Upstreams are the only ones it may submit to, joined by commas; empty for
	// all.
	Upstreams string
}

// Account is what a tenant may spend: balance = Credited − Charged, available
// = balance − Reserved.
type Account struct {
	ID                          pawl.ID
	Tenant                      string
	Currency                    string
	Credited, Charged, Reserved pawl.Amount
	CreatedAt                   pawl.Time
}

// BudgetKind says whose money a budget counts.
type BudgetKind uint8

// The kinds of budgets.
const (
	// KeyBudget counts the operations of an API key, over its life.
	KeyBudget BudgetKind = iota + 1
	// UpstreamBudget counts those submitted for an upstream on one day.
	UpstreamBudget
)

// BudgetID names a budget: an API key's text id or an upstream's name, and for
// the latter the day (see [DayOf]).
type BudgetID struct {
	Kind     BudgetKind
	Name     string
	Currency string
	Day      int64
}

// Budget is what the operations that it counts hold and have cost.
type Budget struct {
	ID   BudgetID
	Used pawl.Amount
}

// EndpointKind says where an endpoint came from.
type EndpointKind uint8

// The kinds of endpoints.
const (
	// WebhookEndpoint was created by a tenant.
	WebhookEndpoint EndpointKind = iota + 1
	// CallbackEndpoint came from an operation's callback_url (7-rules R50).
	CallbackEndpoint
)

// Endpoint is a URL that a tenant wants events delivered to.
type Endpoint struct {
	ID     pawl.ID
	Tenant string
	Kind   EndpointKind
	// APIKey signs for endpoints of kind callback.
	APIKey pawl.ID
	URL    string
	// Types are the wanted event types joined by commas; empty for all but
	// progress.
	Types       string
	Scheme      string
	Description string
	Owner       string
	// Secret signs; FormerSecret overlaps it until FormerUntil.
	Secret, FormerSecret Sealed
	FormerUntil          pawl.Time
	// PublicKey verifies what Secret signs; empty where the scheme has none.
	PublicKey string
	// Policy is the JSON of the delivery policy; empty for the scheme's own.
	Policy string
	// Content says what generic events are sent as: [OriginalContent], or empty for
	// native. CompleteWithin is how long after a 2xx the receiver has to report
	// that it is done (1-product C9); 0 asks for no report.
	Content        string
	CompleteWithin time.Duration
	Version        int64
	Disabled       bool
	DisabledReason string
	// EnabledAt is when it was last enabled again: time spent disabled ages no
	// delivery (7-rules R35).
	EnabledAt pawl.Time
	// DeadLetter is the open review of dead letters.
	DeadLetter                      pawl.ID
	CreatedAt, UpdatedAt, DeletedAt pawl.Time
	// UnusedAt is when somebody began to look whether any operation still needs an
	// endpoint of kind callback; a submit that names it ends that.
	UnusedAt pawl.Time
}

// QueueKind says what a queue holds.
type QueueKind uint8

// The kinds of queues.
const (
	// SubmitQueue holds the operations of one upstream and tenant that are yet
	// to be created.
	SubmitQueue QueueKind = iota + 1
	// ReadQueue holds those whose task is known or may exist.
	ReadQueue
	// DeliveryQueue holds the deliveries of one endpoint.
	DeliveryQueue
)

// QueueID names a queue: upstream and tenant, or an endpoint.
type QueueID struct {
	Kind     QueueKind
	Upstream string
	Tenant   string
	Endpoint pawl.ID
}

// Queue is the small row by which due work is found: rows of a queue that is
// not ready are never touched.
type Queue struct {
	ID QueueID
	// NextDue is never later than the earliest due row; it may be earlier.
	NextDue pawl.Time
	// PausedUntil keeps the queue from being ready; Never pauses by hand.
	PausedUntil pawl.Time
	PauseReason string
	// Sequence is the last number given to an endpoint's event.
	Sequence int64
	// Failures counts failures in a row, for pauses that grow.
	Failures int32
}

// Ready is when the queue may be worked on next.
func (q Queue) Ready() pawl.Time { return max(q.NextDue, q.PausedUntil) }

// Delivery is one event for one endpoint.
type Delivery struct {
	ID        pawl.ID
	Event     pawl.ID
	Endpoint  pawl.ID
	Operation pawl.ID
	Tenant    string
	State     pawl.DeliveryState
	// Sequence is the position in the endpoint's stream, 0 until first leased.
	Sequence int64
	// Attempts counts recorded attempts of its life, Tries those of the
	// present schedule; Lease counts leases and is the fence.
	Attempts, Tries int32
	Lease           int64
	Leased          bool
	// DueAt is when the next attempt is due; while leased, when the lease ends;
	// Never when nothing is to be done.
	DueAt                             pawl.Time
	FirstDueAt, CreatedAt, FinishedAt pawl.Time
	LastStatus                        int32
	LastError                         string
	// Reason says why it is dead or skipped.
	Reason string
	// BodyKept says that the body of the first attempt is stored, to be
	// repeated byte for byte.
	BodyKept bool
	// Replay marks that the next attempt was asked for by hand, ReplayBy by whom.
	Replay   bool
	ReplayBy string
	// Forced says that the next attempt is made past the pause of a disabled
	// endpoint (7-rules R37).
	Forced bool
	// Inbound says that its event is one of a generic source.
	Inbound bool
	// CompleteBy is when the receiver, having taken it, must have reported it done;
	// 0 where it need not, or has not taken it. Overdue counts how often it let
	// that pass; Review is the open review of that.
	CompleteBy pawl.Time
	Overdue    int32
	Review     pawl.ID
	// CompletedAt and CompletedBy are the report.
	CompletedAt pawl.Time
	CompletedBy string
	// Discarded says that a person decided that nothing will be done with it.
	Discarded bool
}

// Review is something that a person must decide.
type Review struct {
	ID        pawl.ID
	Tenant    string
	Reason    pawl.Reason
	Operation pawl.ID
	Event     pawl.ID
	Endpoint  pawl.ID
	Delivery  pawl.ID
	Source    string
	Owner     string
	Detail    string
	// Reported is what the provider said that a decision may accept (see
	// [Review.Report]); empty where there is nothing to accept.
	Reported  string
	OpenedAt  pawl.Time
	ClosedAt  pawl.Time
	Decision  string
	Note      string
	DecidedBy string
	// Notes are what was remarked before the decision (see [Review.Remarks]).
	Notes string
}

// PayloadKind says what a payload is.
type PayloadKind uint8

// The kinds of payloads.
const (
	// InputPayload is an operation's input, as the bytes received.
	InputPayload PayloadKind = iota + 1
	// MetadataPayload is an operation's metadata object.
	MetadataPayload
	// ResultPayload is a result, under its own id.
	ResultPayload
	// BodyPayload is the raw body of an inbound event.
	BodyPayload
	// SentPayload is the body of a delivery as it was first sent.
	SentPayload
	// DataPayload is the data of an event that is about no operation.
	DataPayload
	// LinkPayload is a provider's link to a result file. Only the capture reads it,
	// and nothing shows it (1-product G2).
	LinkPayload
)

// PayloadID names a payload.
type PayloadID struct {
	Owner pawl.ID
	Kind  PayloadKind
}

// Payload is bytes kept beside the rows and never changed.
type Payload struct {
	ID   PayloadID
	Body string
}

// Kinds of lines that others look for: the check of the ledger, or a page.
const (
	// CreateLine is the durable claim that precedes a create (1-product B1).
	CreateLine = "create"
	// CallbackLine is an inbound event's judgment.
	CallbackLine = "callback"
	// ResolvedLine is an operator's decision about an unconfirmed operation.
	ResolvedLine = "resolve"
	// RestoredLine says that the ledger was restored, and that a create may have
	// begun which it knows nothing of.
	RestoredLine = "restored"
	// CaptureLine is the end of a try to capture a file, and CapturedReason the
	// reason of one that has succeeded.
	CaptureLine    = "capture"
	CapturedReason = "captured"
	// CorrectedLine is a correction of a terminal state (7-rules R9).
	CorrectedLine = "correct"
	// NoteLine is what somebody remarked on an open review, AssignLine who is to
	// decide it.
	NoteLine   = "review_note"
	AssignLine = "review_assigned"
)

// History is one line of an operation's timeline.
type History struct {
	Operation pawl.ID
	At        pawl.Time
	// ID orders lines of the same moment.
	ID      pawl.ID
	Kind    string
	Verdict pawl.Verdict
	Reason  string
	Event   pawl.ID
	Version int64
	State   pawl.State
	Actor   string
	Detail  string
	// Repeats counts what followed and was the same, LastAt is when it did last;
	// zero for none (see [ReadLine]).
	Repeats int64
	LastAt  pawl.Time
}

// Bucket is one side of a journal entry.
type Bucket string

// The buckets of an account's double entry.
const (
	Funding   Bucket = "funding"
	Available Bucket = "available"
	Reserving Bucket = "reserved"
	Spent     Bucket = "spent"
)

// Entry is one line of the journal: Amount moves from one bucket of the
// account to another. Entries are only ever added.
type Entry struct {
	ID        pawl.ID
	Account   pawl.ID
	Tenant    string
	Operation pawl.ID
	At        pawl.Time
	Kind      string
	From, To  Bucket
	Amount    pawl.Amount
	Actor     string
	Note      string
	// Correction links the entries of one correction: it is the line of the
	// timeline that tells of it, zero for what was booked before any.
	Correction pawl.ID
}

// Attempt is one try of a delivery.
type Attempt struct {
	ID       pawl.ID
	Delivery pawl.ID
	Number   int32
	At       pawl.Time
	Duration time.Duration
	Status   int32
	Error    string
	Excerpt  string
	Replay   bool
	Actor    string
	// Target is the scheme and host that it went to, TargetDigest the beginning
	// of the SHA-256 of the whole URL, in hex: paths may hold secrets.
	Target, TargetDigest string
}

// Audit is one act of a person or key that changed something.
type Audit struct {
	ID      pawl.ID
	Tenant  string
	At      pawl.Time
	Actor   string
	Action  string
	Subject string
	Detail  string
}
