package sim

import "github.com/pawlhq/pawl"

// Dialect is the wire language of one of the server's upstreams.
type Dialect string

// The dialects of a [Server].
const (
	// Native: creates are not idempotent, a lookup by client reference exists.
	Native Dialect = "native"
	// MediaV2 is 2-contracts §2: creates are idempotent by key for 24 h.
	MediaV2 Dialect = "media-v2"
	// BodyTimestamp is 2-contracts §3: versions, no prices, no idempotency.
	BodyTimestamp Dialect = "body-timestamp"
)

// Dialects lists all dialects.
func Dialects() []Dialect { return []Dialect{Native, MediaV2, BodyTimestamp} }

// Idempotent reports whether a create may be repeated with the same key.
func (d Dialect) Idempotent() bool { return d == MediaV2 }

// Priced reports whether the dialect's answers carry a cost.
func (d Dialect) Priced() bool { return d != BodyTimestamp }

// Scheme is the name of the signature scheme of the dialect's callbacks.
func (d Dialect) Scheme() string {
	if d == Native {
		return "standard-webhooks"
	}
	return string(d)
}

// word is the dialect's name of a task state; Pending is a task that waits.
func (d Dialect) word(s pawl.State) string {
	switch {
	case d == BodyTimestamp:
		return s.String()
	case s == pawl.Pending:
		return "queued"
	case s == pawl.Running:
		return "processing"
	}
	return s.String()
}

// outcome is one end of a task with its share in percent.
type outcome struct {
	state pawl.State
	share int
}

// outcomes are the ends that the dialect has a word for; shares add up to 100.
func (d Dialect) outcomes() []outcome {
	switch d {
	case MediaV2:
		return []outcome{{pawl.Succeeded, 80}, {pawl.Failed, 13}, {pawl.Expired, 7}}
	case BodyTimestamp:
		return []outcome{{pawl.Succeeded, 80}, {pawl.Failed, 13}, {pawl.Canceled, 7}}
	default:
		return []outcome{{pawl.Succeeded, 76}, {pawl.Failed, 12}, {pawl.Canceled, 6}, {pawl.Expired, 6}}
	}
}
