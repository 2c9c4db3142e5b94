package sender

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/webhook"
)

// The places of an event id beside pointers into the body.
const (
	// signedID is the id that the signature covers.
	signedID = "signed-id"
	// digest stands for the SHA-256 of the body: of a source that signs no id.
	digest = "digest"
	// inHeader begins the place of a type that is in a header.
	inHeader = "header:"
)

// untyped is the type of an event whose source names none.
const untyped = "event"

// Bounds of what is read, in bytes.
const (
	maxID   = 255
	maxType = 128
)

// The reasons for which a verified event is not usable.
const (
	reasonMalformed    = "malformed_json"
	reasonMissingEvent = "missing_event_id"
	reasonMissingType  = "missing_type"
	reasonUnknownType  = "unknown_type"
	reasonVersion      = "payload_version"
)

// places say where the id and the type of an event are. mustType says that one
// without a type is not usable.
type places struct {
	event, kind string
	mustType    bool
}

// placesOf are the scheme's own. An id that is not signed is never one: whoever
// captured a request could send it again under another id (1-product C3).
func placesOf(scheme string) places {
	switch scheme {
	case "standard-webhooks", "standard-webhooks-v1a", "rfc9421":
		return places{event: signedID, kind: "/type"}
	case "stripe", "body-timestamp":
		return places{event: "/id", kind: "/type"}
	case "github":
		return places{event: digest, kind: inHeader + "X-GitHub-Event"}
	case "slack":
		return places{event: "/event_id", kind: "/event/type"}
	case "zoom":
		return places{event: digest, kind: "/event"}
	case "media-v2":
		return places{event: "/request_id"}
	}
	return places{event: digest}
}

var headerShape = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// choose takes what the settings say instead.
func (p *places) choose(s config.Source, scheme webhook.Scheme) error {
	if s.Event != "" {
		if s.Event != digest && s.Event != signedID && !pointer(s.Event) {
			return &settingError{"event", "must be a pointer into the body such as /id, or signed-id, or digest"}
		}
		if s.Event == signedID && scheme.IDHeader() == "" {
			return &settingError{"event", "cannot be signed-id: this scheme signs no id; name a pointer such as /id, or digest"}
		}
		p.event = s.Event
	}
	if s.Type != "" {
		name, header := strings.CutPrefix(s.Type, inHeader)
		if header && !headerShape.MatchString(name) || !header && !pointer(s.Type) {
			return &settingError{"type", "must be a pointer into the body such as /type, or header:NAME"}
		}
		p.kind = s.Type
	}
	p.mustType = s.Type != "" || len(s.Types) > 0
	return nil
}

func pointer(text string) bool { return text != "" && strict.CheckPointer(text) == nil }

// headers are the names of the headers that are read.
func (p places) headers() []string {
	if name, ok := strings.CutPrefix(p.kind, inHeader); ok {
		return []string{name}
	}
	return nil
}

// Event is the command that takes a verified event, as far as its body goes: what
// is known of it, or the verdict of one that cannot be used.
func (s Sender) Event(h http.Header, body []byte, p Proof) ledger.ReceiveEvent {
	c := ledger.ReceiveEvent{Up: s.Policy(), Obs: ledger.Observation{Progress: -1}}
	unusable := func(v pawl.Verdict, reason string) ledger.ReceiveEvent {
		c.Preset, c.Reason = v, reason
		return c
	}
	values, err := s.values(h, body, s.places.event, s.places.kind)
	if err != nil {
		return unusable(pawl.Rejected, reasonMalformed)
	}
	c.Event, c.Type = s.id(values, body, p), s.kind(values, h)
	switch {
	case p.otherVersion:
		return unusable(pawl.Rejected, reasonVersion)
	case c.Type == "" && s.places.mustType:
		return unusable(pawl.Rejected, reasonMissingType)
	case len(s.settings.Types) > 0 && !slices.Contains(s.settings.Types, c.Type):
		return unusable(pawl.UnknownType, reasonUnknownType)
	case c.Event == "":
		return unusable(pawl.Rejected, reasonMissingEvent)
	case c.Type == "":
		c.Type = untyped
	}
	return c
}

// id is the event's key, "" if there is none where it should be. A body that is no
// JSON has no places: its digest stands for it.
func (s Sender) id(values map[string]strict.Value, body []byte, p Proof) string {
	switch {
	case s.places.event == signedID:
		return p.id
	case s.places.event == digest || values == nil:
		sum := sha256.Sum256(body)
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	if id := word(values[s.places.event]); visible(id, maxID) {
		return id
	}
	return ""
}

func (s Sender) kind(values map[string]strict.Value, h http.Header) string {
	text := ""
	if name, ok := strings.CutPrefix(s.places.kind, inHeader); ok {
		if all := h.Values(name); len(all) == 1 {
			text = all[0]
		}
	} else {
		text = word(values[s.places.kind])
	}
	if !visible(text, maxType) || strings.Contains(text, ",") {
		return ""
	}
	return text
}

// word is a string, or a number as it is written; "" for all else.
func word(v strict.Value) string {
	if text, ok := v.Text(); ok {
		return text
	}
	if v.Kind() == '0' {
		return string(v.Raw)
	}
	return ""
}

func visible(text string, most int) bool {
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
}

// Reread reads a stored event as the settings of today have it. It was verified
// at its receipt, and its signature, which is not kept, and its age are not asked
// for again (1-product C10).
func (s Sender) Reread(e ledger.Event, body []byte) ledger.ReceiveEvent {
	h := storedHeader(e.Headers)
	p := Proof{id: h.Get(s.scheme.IDHeader()), otherVersion: errors.Is(s.scheme.CheckDeclared(h), webhook.ReasonPayloadVersion)}
	return s.Event(h, body, p)
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

// String describes a proof without what it proved.
func (p Proof) String() string { return fmt.Sprintf("proof (other version: %v)", p.otherVersion) }

// GoString is [Proof.String].
func (p Proof) GoString() string { return p.String() }
