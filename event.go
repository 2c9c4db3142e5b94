package pawl

import "strings"

// Verdict is what became of one received event (1-product C4).
type Verdict uint8

// The verdicts. The first five take the event's key, so that a repeat is a
// duplicate; the others leave it free (7-rules §2).
const (
	// Applied: it changed the operation, or a generic source's event was stored.
	Applied Verdict = iota + 1
	// Duplicate: its key was taken before.
	Duplicate
	// Stale: older than what is known, or nothing new.
	Stale
	// Conflict: another end than the one already recorded.
	Conflict
	// Orphan: verified, but no operation is known for its task yet.
	Orphan
	// Hint: proves nothing itself; a read was made due.
	Hint
	// UnknownType: verified, of a type that the source's description lacks.
	UnknownType
	// UnknownState: verified, with a state word outside the vocabulary.
	UnknownState
	// Rejected: verified but unusable, such as a body without ids.
	Rejected
)

var verdictNames = [...]string{
	Applied: "applied", Duplicate: "duplicate", Stale: "stale", Conflict: "conflict", Orphan: "orphan",
	Hint: "hint", UnknownType: "unknown_type", UnknownState: "unknown_state", Rejected: "rejected",
}

// String is the verdict's word; "" for none.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return ""
}

// MarshalText writes the verdict's word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// ParseVerdict reads a verdict's word.
func ParseVerdict(word string) (Verdict, bool) {
	for v := Applied; v <= Rejected; v++ {
		if verdictNames[v] == word {
			return v, true
		}
	}
	return 0, false
}

// TakesKey reports whether an event with this verdict uses up its key.
func (v Verdict) TakesKey() bool { return v >= Applied && v <= Orphan }

// InboxState is how far an event of a generic source has come (7-rules R21).
type InboxState uint8

// The states of such an event.
const (
	// InboxReceived: stored, and no endpoint wanted it.
	InboxReceived InboxState = iota + 1
	// InboxWaiting: at least one endpoint is not finished with it.
	InboxWaiting
	// InboxDone: delivered to all, and reported done where that is required.
	InboxDone
	// InboxReview: a person must look: dead, overdue twice, or of an unknown type.
	InboxReview
)

var inboxNames = [...]string{InboxReceived: "received", InboxWaiting: "waiting", InboxDone: "done", InboxReview: "review"}

// String is the state's word; "" for none.
func (s InboxState) String() string {
	if int(s) < len(inboxNames) {
		return inboxNames[s]
	}
	return ""
}

// MarshalText writes the state's word.
func (s InboxState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseInboxState reads a state's word.
func ParseInboxState(word string) (InboxState, bool) {
	for s := InboxReceived; s <= InboxReview; s++ {
		if inboxNames[s] == word {
			return s, true
		}
	}
	return 0, false
}

// The types of outbound events (7-rules §3).
const (
	TypeRunning      = "operation.running"
	TypeUnconfirmed  = "operation.unconfirmed"
	TypeSucceeded    = "operation.succeeded"
	TypeFailed       = "operation.failed"
	TypeCanceled     = "operation.canceled"
	TypeExpired      = "operation.expired"
	TypeSettled      = "operation.settled"
	TypeReviewOpened = "operation.review.opened"
	TypeReviewClosed = "operation.review.closed"
	TypeReleased     = "operation.released"
	TypeArtifacts    = "operation.artifacts.ready"
	TypeNoArtifacts  = "operation.artifacts.failed"
	TypeCorrected    = "operation.corrected"
	TypeProgress     = "operation.progress"
)

// The types of outbound events about the installation, which belong to no
// operation (7-rules §3).
const (
	TypeLooseReview      = "review.opened"
	TypeUpstreamPaused   = "upstream.paused"
	TypeEndpointDisabled = "endpoint.disabled"
	TypeDeliveryDead     = "delivery.dead"
)

// The bounds of what callers name themselves, in bytes.
const (
	// MaxOwnID is for the id of an own event (7-rules R49).
	MaxOwnID = 255
	// MaxOwnType is for its type.
	MaxOwnType = 128
	// MaxWantedType is for a type that an endpoint asks for: a sender's, behind
	// the name of its source.
	MaxWantedType = 255
)

// ValidOwnID reports whether an event of a tenant's own may have that id, which
// becomes the webhook-id of its deliveries: 1 to 255 of [A-Za-z0-9_-] (7-rules
// R49).
func ValidOwnID(id string) bool {
	return id != "" && len(id) <= MaxOwnID && !strings.ContainsFunc(id, notOwn)
}

// ValidOwnType reports whether an event of a tenant's own may have that type:
// words of [A-Za-z0-9_-] joined by single full stops, which is none of ours
// (7-rules R49).
func ValidOwnType(kind string) bool {
	if len(kind) > MaxOwnType || ReservedType(kind) {
		return false
	}
	for word := range strings.SplitSeq(kind, ".") {
		if word == "" || strings.ContainsFunc(word, notOwn) {
			return false
		}
	}
	return true
}

// ReservedType reports whether only Pawl may give an event that type: all that
// begin with "operation.", and those about the installation (7-rules R49).
func ReservedType(kind string) bool {
	return InstallationType(kind) || strings.HasPrefix(kind, "operation.")
}

// InstallationType reports whether a type is one of the events about the
// installation, which go to its own endpoints alone (1-product I2).
func InstallationType(kind string) bool {
	switch kind {
	case TypeLooseReview, TypeUpstreamPaused, TypeEndpointDisabled, TypeDeliveryDead:
		return true
	}
	return false
}

// ValidWantedType reports whether an endpoint may ask for a type that is not
// Pawl's own: whatever a sender may call its events (1-product C9), which is
// visible ASCII, but for the comma that separates types and for the asterisk,
// which would promise a pattern and match nothing. It takes more than
// [ValidOwnType], since senders have words such as orders/create.
func ValidWantedType(kind string) bool {
	return kind != "" && len(kind) <= MaxWantedType && !ReservedType(kind) &&
		!strings.ContainsFunc(kind, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' || r == '*' })
}

func notOwn(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// TypeOf is the type of the event that a change to state s emits.
func TypeOf(s State) string { return "operation." + s.String() }
