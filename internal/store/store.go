// Package store makes decisions durable. A [Driver] runs one transaction for a
// batch of commands; the [Committer] above it gathers commands into batches,
// once for all drivers; a [Reader] serves lists and sweeps on connections of
// its own.
package store

import (
	"context"
	"errors"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// The errors of a store that callers act on.
var (
	// ErrBusy: the committer's queue is full; answer 503 and try again.
	ErrBusy = errors.New("store: too many commands are waiting")
	// ErrClosed: the store is shutting down.
	ErrClosed = errors.New("store: closed")
	// ErrUnavailable: the database could not take the batch.
	ErrUnavailable = errors.New("store: the database is not available")
	// ErrOvertaken: a driver found a claim, and another transaction removed it before
	// it was locked. The batch has left nothing and is decided anew.
	ErrOvertaken = errors.New("store: overtaken by another transaction")
	// ErrNewerSchema: the ledger was written by a newer version.
	ErrNewerSchema = errors.New("store: the ledger has a newer schema than this program knows")
)

// Driver is one kind of database. Its methods are safe for concurrent use.
type Driver interface {
	Reader
	// Update runs fn in one transaction that also records the batch's id, and
	// commits if fn returns nil. Whatever fn returns as an error comes back
	// after a rollback. An error wrapped in [CommitError] means that the commit
	// itself failed and its outcome is unknown.
	Update(ctx context.Context, batch pawl.ID, fn func(Tx) error) error
	// Committed reports whether the batch's transaction took effect.
	Committed(ctx context.Context, batch pawl.ID) (bool, error)
	// Close waits for what is under way and releases everything.
	Close() error
}

// CommitError wraps an error of the commit itself: the batch may have taken
// effect, and [Driver.Committed] tells.
type CommitError struct{ Err error }

// Error is the cause's text.
func (e *CommitError) Error() string { return "store: commit: " + e.Err.Error() }

// Unwrap is the cause.
func (e *CommitError) Unwrap() error { return e.Err }

// Tx is one transaction. It is used by one goroutine.
type Tx interface {
	// Now is the moment at which the batch is decided: by the database's clock
	// where several nodes share one, and after the latest Load.
	Now() pawl.Time
	// Load adds the wanted rows that rows does not hold yet, stage by stage,
	// following [ledger.Rows.Follow] between the stages, and locks them in that
	// order. Absent rows are recorded as absent.
	Load(keys *ledger.Keys, rows *ledger.Rows) error
	// Save writes every changed row and everything added.
	Save(rows *ledger.Rows) error
}

// Reader reads committed rows, each call in one snapshot. Lists come newest
// first unless said otherwise and are paged by key, never by offset.
type Reader interface {
	// Load is [Tx.Load] without locks.
	Load(ctx context.Context, keys *ledger.Keys, rows *ledger.Rows) error
	// Payloads returns those of the wanted payloads that exist.
	Payloads(ctx context.Context, ids ...ledger.PayloadID) (map[ledger.PayloadID]string, error)
	Lists
	Replays
	Seals
	Logs
	Facts
	Due
}

// Due is what finds the work that is to be done.
type Due interface {
	Sweeps
	Work
	Captures
	Aging
	Deadlines
}

// Deadlines find what is late and no queue tells of.
type Deadlines interface {
	// Late are pending operations of an upstream whose deadlines have passed by a
	// moment, those first that are late the longest.
	Late(ctx context.Context, upstream string, by pawl.Time, limit int) ([]ledger.Operation, error)
}

// Aging finds what holds content that may be old enough to be removed. Each list
// goes by ids, which begin with the time that something was made at: after that
// of the page, and below another.
type Aging interface {
	// KeptOperations are those that hold something of exactly these classes.
	KeptOperations(ctx context.Context, kept ledger.Kept, before pawl.ID, p Page) ([]ledger.Operation, error)
	// KeptEvents are those of no operation that hold anything.
	KeptEvents(ctx context.Context, before pawl.ID, p Page) ([]ledger.Event, error)
	// OldKeys are idempotency keys, by the ids of what they stand for.
	OldKeys(ctx context.Context, before pawl.ID, p Page) ([]ledger.IdempotencyKey, error)
}

// Page is where a list goes on and how much is wanted. The zero After starts
// at the beginning.
type Page struct {
	After pawl.ID
	Limit int
	// Oldest asks for the oldest first, where the list is one of events, deliveries
	// or audits.
	Oldest bool
	// Look, where it is not nil, bounds the work of a list that is filtered by what
	// no index knows.
	Look *Look
}

// Look says how many rows a page may be looked for among.
type Look struct {
	// Most is how many; 0 is as many as it takes.
	Most int
	// End is set to the last row that was looked at where more follow and the page
	// is not full: the list goes on after it. It is zero otherwise.
	End pawl.ID
}

// Stop is where a page of n rows goes on that is not the last one, zero where the
// list has ended. Without a look, one that is not full is the last one.
func (p Page) Stop(n int) pawl.ID {
	if p.Look == nil || n >= p.Limit {
		return pawl.ID{}
	}
	return p.Look.End
}

// Lists are the pages that people and programs look through.
type Lists interface {
	Operations(ctx context.Context, f OperationFilter, p Page) ([]ledger.Operation, error)
	Events(ctx context.Context, f EventFilter, p Page) ([]ledger.Event, error)
	Deliveries(ctx context.Context, f DeliveryFilter, p Page) ([]ledger.Delivery, error)
	Endpoints(ctx context.Context, f EndpointFilter, p Page) ([]ledger.Endpoint, error)
	Reviews(ctx context.Context, f ReviewFilter, p Page) ([]ledger.Review, error)
	Accounts(ctx context.Context, tenant string, p Page) ([]ledger.Account, error)
	APIKeys(ctx context.Context, f APIKeyFilter, p Page) ([]ledger.APIKey, error)
	Tenants(ctx context.Context) ([]ledger.Tenant, error)
}

// Logs are what is only ever added.
type Logs interface {
	// History is an operation's timeline, oldest first.
	History(ctx context.Context, operation pawl.ID) ([]ledger.History, error)
	// Attempts are a delivery's, oldest first.
	Attempts(ctx context.Context, delivery pawl.ID) ([]ledger.Attempt, error)
	// Story is what happened to an operation before a moment: of each kind the
	// latest rows, newest first, at most limit of them. The attempts are those of
	// the deliveries that it has.
	Story(ctx context.Context, operation pawl.ID, before pawl.Time, limit int) (Story, error)
	// Entries are an account's journal.
	Entries(ctx context.Context, account pawl.ID, p Page) ([]ledger.Entry, error)
	// Feed is an endpoint's stream from after a sequence on, in its order, at most
	// limit deliveries: what has no sequence yet is not part of it.
	Feed(ctx context.Context, endpoint pawl.ID, after int64, limit int) ([]ledger.Delivery, error)
	// Audits are what was changed by whom.
	Audits(ctx context.Context, f AuditFilter, p Page) ([]ledger.Audit, error)
}

// Story is what happened to one operation.
type Story struct {
	History    []ledger.History
	Entries    []ledger.Entry
	Deliveries []ledger.Delivery
	Attempts   []ledger.Attempt
}

// OperationFilter restricts a list of operations; zero fields do not.
type OperationFilter struct {
	Tenant        string
	State         pawl.State
	Unfinished    bool
	Upstream      string
	Task          string
	CorrelationID string
	// RequestID is ours of the submit, UpstreamRequestID the provider's latest.
	RequestID, UpstreamRequestID string
	// MetadataKey and MetadataValue match one member of the metadata: a text, or
	// a number or boolean as it was written.
	MetadataKey, MetadataValue string
}

// EventFilter restricts a list of events; zero fields do not.
type EventFilter struct {
	Tenant    string
	Direction ledger.Direction
	Source    string
	Verdict   pawl.Verdict
	Task      string
	Type      string
	// ExternalID is the id that its sender gave it.
	ExternalID string
	Operation  pawl.ID
	Inbox      pawl.InboxState
	// From and Until bound when it was received or made: from the one, itself
	// included, until before the other.
	From, Until pawl.Time
}

// DeliveryFilter restricts a list of deliveries; zero fields do not.
type DeliveryFilter struct {
	Tenant    string
	State     pawl.DeliveryState
	Endpoint  pawl.ID
	Event     pawl.ID
	Operation pawl.ID
	// From and Until bound when it was made: from the one, itself included, until
	// before the other.
	From, Until pawl.Time
}

// EndpointFilter restricts a list of endpoints; zero fields do not. Deleted
// endpoints are left out.
type EndpointFilter struct {
	Tenant string
	Kind   ledger.EndpointKind
	// APIKey and URL find the callback endpoint of a key and address.
	APIKey pawl.ID
	URL    string
}

// ReviewFilter restricts a list of reviews; zero fields do not.
type ReviewFilter struct {
	Tenant    string
	Open      bool
	Reason    pawl.Reason
	Operation pawl.ID
}

// APIKeyFilter restricts a list of API keys; zero fields do not.
type APIKeyFilter struct {
	Tenant string
	// Hash is that of a key's secret, the present or the former one.
	Hash ledger.Digest
}

// AuditFilter restricts a list of audits; zero fields do not.
type AuditFilter struct {
	Tenant, Actor, Action, Subject string
	// From and Until bound when it was done: from the one, itself included, until
	// before the other.
	From, Until pawl.Time
}

// Sweeps find what is due, and what was left lying.
type Sweeps interface {
	// Ready returns the queues of a kind and upstream that are ready by a moment,
	// those longest ready first. Queues of deliveries have no upstream.
	Ready(ctx context.Context, kind ledger.QueueKind, upstream string, by pawl.Time, limit int) ([]ledger.Queue, error)
	// LeasedOperations and LeasedDeliveries list what is leased now, by id
	// after the given one.
	LeasedOperations(ctx context.Context, p Page) ([]ledger.Operation, error)
	LeasedDeliveries(ctx context.Context, p Page) ([]ledger.Delivery, error)
	// Parked lists parked events received before a moment that have no review.
	Parked(ctx context.Context, before pawl.Time, limit int) ([]ledger.Event, error)
	// Misqueued lists queues whose NextDue is later than their earliest due
	// row: it finds none unless something is broken.
	Misqueued(ctx context.Context, limit int) ([]ledger.Queue, error)
	// WaitedFor names the upstreams that have an operation which is due at some
	// time: those that a node must know to finish what was begun.
	WaitedFor(ctx context.Context) ([]string, error)
	// Versions are the versions of those of the operations that exist: what
	// those who wait for a change ask for together.
	Versions(ctx context.Context, operations ...pawl.ID) (map[pawl.ID]int64, error)
	// Stats are the figures of the metrics page, none by a scan of everything.
	Stats(ctx context.Context) (Stats, error)
}

// DueFilter says which due artifacts are looked for.
type DueFilter struct {
	// By is the moment by which they are due.
	By pawl.Time
	// EndsBy leaves those out whose links end later, Host those of other hosts;
	// zero leaves none out.
	EndsBy pawl.Time
	Host   string
	// WithoutHosts and WithoutTenants leave those of some out.
	WithoutHosts, WithoutTenants []string
}

// Captures find the result files that are to be captured.
type Captures interface {
	// DueArtifacts are due by a moment, those first whose links end first.
	DueArtifacts(ctx context.Context, f DueFilter, limit int) ([]ledger.Artifact, error)
	// LeasedArtifacts lists what is leased now, by id after the given one.
	LeasedArtifacts(ctx context.Context, p Page) ([]ledger.Artifact, error)
}

// Stats are figures over the whole ledger.
type Stats struct {
	OldestUnfinished pawl.Time
	Unfinished       map[pawl.State]int64
	OpenReviews      map[pawl.Reason]int64
	// Work counts the operations that have something to be done, now or later, by
	// the kind of queue that holds them.
	Work              map[ledger.QueueKind]int64
	DeliveriesWaiting int64
	// WorkDue, DeliveryDue and ArtifactDue are when the first of what is counted
	// beside them is due; Never, or no entry, where nothing is.
	WorkDue                  map[ledger.QueueKind]pawl.Time
	DeliveryDue, ArtifactDue pawl.Time
	DeliveriesDead           int64
	Parked                   int64
	// ArtifactsWaiting counts those that are yet to be captured, and FirstLinkEnd
	// is when the first of their links ends, 0 if none waits.
	ArtifactsWaiting int64
	FirstLinkEnd     pawl.Time
	// Disabled counts the endpoints that nothing is sent to.
	Disabled int64
}

// Facts are what the check of the ledger reads: everything, in bounded pieces.
type Facts interface {
	// OperationFacts returns everything about operations after the given one,
	// in the order of their ids.
	OperationFacts(ctx context.Context, p Page) ([]ledger.Facts, error)
	// AccountFacts returns each account with the sums of its journal.
	AccountFacts(ctx context.Context) ([]ledger.AccountFacts, error)
	// BudgetFacts returns each budget with what its operations come to.
	BudgetFacts(ctx context.Context) ([]ledger.BudgetFacts, error)
	// EndpointFacts returns each endpoint's numbers.
	EndpointFacts(ctx context.Context) ([]ledger.EndpointFacts, error)
	// LooseFacts returns rows that hang on nothing they should hang on.
	LooseFacts(ctx context.Context) (ledger.LooseFacts, error)
}
