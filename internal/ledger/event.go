package ledger

import "github.com/pawlhq/pawl"

// Direction says whether an event came in or goes out.
type Direction uint8

// The directions.
const (
	Inbound Direction = iota + 1
	Outbound
)

// Event is one immutable fact; only an inbound event's verdict may be judged
// again.
type Event struct {
	ID        pawl.ID
	Direction Direction
	Tenant    string
	Operation pawl.ID
	Type      string
	At        pawl.Time

	// Inbound: who sent it, for which task and under which id and key. An
	// event of a tenant's own has its id in ExternalID too.
	Source     string
	Task       string
	ExternalID string
	Word       string
	Verdict    pawl.Verdict
	Reason     string
	Digest     Digest
	// Headers are the request's as a JSON object, without credentials.
	Headers string
	// Parked says that it waits for its task to be known.
	Parked bool
	// Review is its own open review.
	Review pawl.ID
	// Rejudged is what it came to when it was judged anew (1-product C10).
	Rejudged Rejudgment
	// Inbox is how far an event of a generic source has come (7-rules R21), 0 for
	// all others. It follows from the counts of its deliveries: Waiting are not
	// finished, Troubled need a person, Handled are over.
	Inbox                      pawl.InboxState
	Waiting, Troubled, Handled int32
	// NudgedAt is when a repeat last made its work due (7-rules R22).
	NudgedAt pawl.Time
	// Reads says that its source, a generic one, had the current record read when
	// the event was judged (1-product C9): without it, it is not handed over.
	Reads bool

	// Version is an outbound event's version of the operation. Snapshot is the
	// operation as of that version, or a parked event's observation.
	Version  int64
	Snapshot string
	// Result names the payload of an outbound event's result.
	Result pawl.ID

	// Traceparent is the trace context in W3C form that its deliveries belong to,
	// empty for none: that of its operation's submission, else of the request that
	// brought it (TR-06).
	Traceparent string

	// RemovedAt is when what it holds was removed: body, headers, snapshot, data.
	// The fact stays.
	RemovedAt pawl.Time
}

// Rejudgment is the latest judgment of a stored event that was judged anew,
// beside its first verdict; zero if it never was.
type Rejudgment struct {
	At      pawl.Time
	Verdict pawl.Verdict
	Reason  string
	Actor   string
}

// Judged is what an inbound event has come to by now.
func (e Event) Judged() pawl.Verdict {
	if e.Rejudged.Verdict != 0 {
		return e.Rejudged.Verdict
	}
	return e.Verdict
}

// HoldsKey reports whether the key of an event stands for it: of an inbound one
// that its verdict takes, of an outbound one that its tenant named. A duplicate
// is stored only if it was judged anew, and another has its key.
func (e Event) HoldsKey() bool {
	if e.Direction == Outbound {
		return e.ExternalID != ""
	}
	return e.Judged().TakesKey() && e.Judged() != pawl.Duplicate
}

// Open reports whether judging an inbound event anew may change anything: it
// left its key free, is of a task that nobody knew, or of a generic source and
// no endpoint has wanted it so far. What it holds must still be kept.
func (e Event) Open() bool {
	return e.RemovedAt == 0 && (!e.Judged().TakesKey() || e.Judged() == pawl.Orphan && e.Operation.IsZero() || e.Inbox == pawl.InboxReceived)
}
