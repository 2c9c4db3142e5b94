package upstream

import (
	"errors"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/webhook"
)

// Callback is a verified event that can be applied.
type Callback struct {
	// EventID is the deduplication key (7-rules R17).
	EventID string
	// Type is the event's type, "" for a provider without types.
	Type string
	// Observation is what the event says of its task.
	Observation ledger.Observation
}

// RejectKind is why a callback cannot be applied.
type RejectKind uint8

// The kinds of rejections, with the receiver's answer (2-contracts §1).
const (
	// RejectSignature: nobody knows who sent it (401).
	RejectSignature RejectKind = iota + 1
	// RejectStale: its timestamp is too far from now (401).
	RejectStale
	// RejectMalformed: verified, and not usable (400, verdict rejected).
	RejectMalformed
	// RejectUnknownState: verified, with a word outside the table (400).
	RejectUnknownState
	// RejectUnknownType: verified, of a type outside the table (202).
	RejectUnknownType
)

// Verified reports whether the event came from the provider, so that it is
// stored as evidence.
func (k RejectKind) Verified() bool { return k >= RejectMalformed }

// Rejection is a callback that cannot be applied. Of a verified one it carries
// what could be read.
type Rejection struct {
	Kind RejectKind
	// Reason is a stable word, such as "payload_version" or "no_match".
	Reason string
	// EventID, Type, Task and Word may each be empty.
	EventID, Type, Task, Word string
}

// The reasons for which nothing is verified at all.
const (
	// ReasonNoCallbacks: the provider does not call back, or no key is configured.
	ReasonNoCallbacks = "no_callbacks"
	// ReasonNoActiveKey: there are keys, and by their dates none is active.
	ReasonNoActiveKey = "no_active_key"
)

// ParseCallback verifies a callback over its raw body, received at now, and
// then reads it. Nothing of the body is looked at before the signature is known
// to be good, except what its scheme signs (1-product C1). Exactly one of the
// results counts: the rejection, unless it is nil.
//
// The body of a hint is not known to be anybody's, whatever the rejection's kind
// says: nothing of it is to be stored.
func (u Upstream) ParseCallback(header http.Header, body []byte, now time.Time) (Callback, *Rejection) {
	if u.hints() && len(u.keys) == 0 {
		return u.readCallback(header, body, "", TrustHint)
	}
	if u.spec.Callback == nil || len(u.keys) == 0 {
		return Callback{}, &Rejection{Kind: RejectSignature, Reason: ReasonNoCallbacks}
	}
	active := u.activeKeys(now)
	if len(active) == 0 {
		return Callback{}, &Rejection{Kind: RejectSignature, Reason: ReasonNoActiveKey}
	}
	verified, err := u.scheme.Verify(webhook.Request{Header: header, Body: body}, now, active...)
	// This one reason is the word of the real sender.
	otherVersion := errors.Is(err, webhook.ReasonPayloadVersion)
	if err != nil && !otherVersion {
		return Callback{}, unverified(err)
	}
	if u.hints() && !otherVersion {
		return u.readCallback(header, body, verified.ID, TrustHint)
	}
	return u.readVerified(header, body, verified.ID, otherVersion)
}

// readVerified reads the body of a callback that is known to be the provider's.
func (u Upstream) readVerified(header http.Header, body []byte, signed string, otherVersion bool) (Callback, *Rejection) {
	c, rejection := u.readCallback(header, body, signed, TrustSigned)
	if otherVersion {
		return Callback{}, &Rejection{Kind: RejectMalformed, Reason: ReasonPayloadVersion,
			EventID: c.EventID, Type: c.Type, Task: c.Observation.Task, Word: c.Observation.Word}
	}
	if rejection != nil {
		rejection.EventID, rejection.Type = c.EventID, c.Type
		rejection.Task, rejection.Word = c.Observation.Task, c.Observation.Word
		return Callback{}, rejection
	}
	return c, nil
}

func unverified(err error) *Rejection {
	r := &Rejection{Kind: RejectSignature, Reason: "signature"}
	var reason webhook.Reason
	if errors.As(err, &reason) {
		r.Reason = string(reason)
	}
	if reason == webhook.ReasonStaleTimestamp || reason == webhook.ReasonFutureTimestamp {
		r.Kind = RejectStale
	}
	return r
}

// readCallback reads a verified body in the order of 7-rules §1, line 4. An
// unknown type is found before missing ids: where they would be is not known
// of such an event. What could be read is returned beside a rejection. A hint
// needs no more than its description has places for.
func (u Upstream) readCallback(header http.Header, body []byte, signed string, trust Trust) (Callback, *Rejection) {
	spec := u.spec.Callback
	f := spec.Fields
	hint := trust == TrustHint
	d, err := readDocument(body, append(append(f.pointers(), spec.Type), spec.Event.From...)...)
	if err != nil {
		return Callback{}, malformed(ReasonMalformedJSON)
	}
	c := Callback{EventID: spec.Event.key(d, body, signed), Type: u.word(d.word(spec.Type), maxID)}
	o, reason := u.observe(d, f, header)
	c.Observation = o
	kind := EventState
	if spec.Type != "" {
		word := d.word(spec.Type)
		known := false
		if kind, known = spec.Types[word]; !known && word != "" {
			return c, &Rejection{Kind: RejectUnknownType, Reason: ReasonUnknownType}
		}
	}
	switch {
	case c.EventID == "" && !hint:
		return c, malformed(ReasonMissingEvent)
	case spec.Type != "" && c.Type == "":
		return c, malformed(ReasonMissingType)
	case o.Task == "" && !(hint && f.Task == ""):
		return c, malformed(ReasonMissingTask)
	case kind == EventProgress:
		c.Observation.ProgressOnly = true
	case hint && f.State == "":
	case o.Word == "":
		return c, malformed(ReasonMissingState)
	case o.State == 0:
		return c, &Rejection{Kind: RejectUnknownState, Reason: ReasonUnknownState}
	}
	if reason != "" && !hint {
		return c, malformed(reason)
	}
	return c, nil
}

func malformed(reason string) *Rejection { return &Rejection{Kind: RejectMalformed, Reason: reason} }
