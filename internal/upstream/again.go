package upstream

import (
	"encoding/json"
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Arrival is the command that takes a verified callback, as far as its body
// goes: what is known of it, or the verdict of one that cannot be applied.
func (u Upstream) Arrival(c Callback, bad *Rejection) ledger.ReceiveEvent {
	e := ledger.ReceiveEvent{Up: u.Policy(), Event: c.EventID, Type: c.Type, Obs: c.Observation}
	if bad == nil {
		return e
	}
	e.Event, e.Type, e.Reason = bad.EventID, bad.Type, bad.Reason
	e.Obs = ledger.Observation{Task: bad.Task, Word: bad.Word, Progress: -1}
	switch bad.Kind {
	case RejectUnknownState:
		e.Preset = pawl.UnknownState
	case RejectUnknownType:
		e.Preset = pawl.UnknownType
	default:
		e.Preset = pawl.Rejected
	}
	return e
}

// Reread reads a stored callback as the description of today has it. It was
// verified at its receipt, and its signature, which is not kept, and its age are
// not asked for again (1-product C10); what it declares beside the signature is.
func (u Upstream) Reread(e ledger.Event, body []byte) ledger.ReceiveEvent {
	if u.spec.Callback == nil {
		return u.Arrival(Callback{}, malformed(ReasonNoCallbacks))
	}
	header := storedHeader(e.Headers)
	signed := header.Get(u.scheme.IDHeader())
	if from := u.spec.Callback.Event.From; len(from) == 1 && from[0] == signedID && e.ExternalID != "" {
		signed = e.ExternalID
	}
	return u.Arrival(u.readVerified(header, body, signed, u.scheme.CheckDeclared(header) != nil))
}

// storedHeader is the header of a stored event; names are kept in lower case.
func storedHeader(text string) http.Header {
	var kept map[string]string
	if text == "" || json.Unmarshal([]byte(text), &kept) != nil {
		return http.Header{}
	}
	h := make(http.Header, len(kept))
	for name, value := range kept {
		h.Set(name, value)
	}
	return h
}
