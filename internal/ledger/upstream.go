package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// Upstream is what decisions need to know of an upstream: a snapshot of its
// description and settings, handed in with each command.
type Upstream struct {
	// Name is the upstream's name in the configuration and that of its source.
	Name string
	// Adapter is the preset and its version, such as "media-v2/1".
	Adapter string
	// Worker says that the platform team's own workers do the work, who lease
	// operations for WorkLease at a time, and for SubmitAttempts times at most
	// (2-contracts §1). Nothing is sent anywhere.
	Worker    bool
	WorkLease time.Duration
	// Idempotent says that a create may be repeated with the same key for
	// IdempotencyWindow after the first one, under the same credential
	// (1-product B2). Credential is a digest of the credential in use.
	Idempotent        bool
	IdempotencyWindow time.Duration
	Credential        [8]byte
	// Callbacks says that the provider calls back, Reads that a task's status
	// can be read, Lookups that a task can be found by our reference, Cancels
	// that it can be cancelled. Of a generic source, Reads says that the current
	// record is read before an event is handed over.
	Callbacks, Reads, Lookups, Cancels bool
	// ReadFirst, ReadMax and ReadFactor (in thousandths) are the schedule of
	// reads; ReadSpacing is the least time between two (7-rules R23).
	ReadFirst, ReadMax time.Duration
	ReadFactor         int64
	ReadSpacing        time.Duration
	// Concurrency bounds actions under way per node.
	Concurrency int
	// CreateSpacing is the least time between two creates, zero for none
	// (1-product B5).
	CreateSpacing time.Duration
	// SpendPerDay is what operations submitted on one UTC day may hold and cost
	// in all, zero for no limit; SpendCurrency is its currency, and empty lets
	// it hold for each currency by itself.
	SpendPerDay   pawl.Amount
	SpendCurrency string
	// Timeout is how long one action may take; a lease lasts 15 s longer.
	Timeout time.Duration
	// SubmitAttempts bounds creates of one operation, or leases by own workers.
	SubmitAttempts int32
	// SettleWithin is how long after the end a final cost may take.
	SettleWithin time.Duration
	// ParkOrphans says that a verified event of an unknown task is stored
	// and matched later (C5); OrphanGrace is the time until it becomes a
	// review, OrphanLimit how many may be parked (7-rules R18).
	ParkOrphans bool
	OrphanGrace time.Duration
	OrphanLimit int64
	// Confirm says that an end which a callback names is not applied but read
	// (1-product C6, "confirm: poll").
	Confirm bool
	// Generic says that it is no upstream but a generic source: its events are
	// about no task and go to the handlers of Tenant (1-product C9).
	Generic bool
	// LinkLifetime is how long the links in its results work, zero if that is not
	// known.
	LinkLifetime time.Duration
	// Owner answers for it; shown in reviews.
	Owner string
	// Tenant is the tenant that its unmatched events belong to; "" for none.
	Tenant string
	// AcceptLateSuccess: a success after expiry becomes an audited correction
	// instead of a review (1-product D4).
	AcceptLateSuccess bool
}
