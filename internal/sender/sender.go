// Package sender is generic sources as data: whoever sends webhooks that are
// about no operation (1-product C8, C9). It verifies and reads their events and
// answers their handshakes; it decides nothing and does no I/O.
package sender

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/webhook"
)

// Sender is a generic source as it is configured. Take it from [Build]. It prints
// as its name and scheme only.
type Sender struct {
	name     string
	settings config.Source
	scheme   webhook.Scheme
	keys     []webhook.Key // those of settings.Secrets, in their order
	places   places
	current  *address
}

// Set holds the generic sources of a configuration by name. It is read only.
type Set map[string]Sender

// Build makes the generic sources of a checked configuration. The error is a
// config.Problems that places each problem in the file.
func Build(c config.Config) (Set, error) {
	set := make(Set, len(c.Sources))
	var problems config.Problems
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		s, err := New(name, c.Sources[name])
		var wrong *settingError
		if errors.As(err, &wrong) {
			problems = append(problems, c.Problem("sources."+name+"."+wrong.key, wrong.what))
			continue
		}
		set[name] = s
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return set, nil
}

// settingError is a setting that does not fit the others.
type settingError struct{ key, what string }

// Error is "KEY: WHAT".
func (e *settingError) Error() string { return e.key + ": " + e.what }

// New joins the settings of one source, which must have been checked, with what
// is known of its scheme. The error names the setting that does not fit.
func New(name string, settings config.Source) (Sender, error) {
	s := Sender{name: name, settings: settings}
	var ok bool
	if s.scheme, ok = webhook.Lookup(settings.Scheme); !ok {
		return s, &settingError{"scheme", "must be one of " + strings.Join(webhook.Names(), ", ")}
	}
	if len(settings.Secrets) == 0 {
		return s, &settingError{"secrets", "is missing; give the secret that its events are verified with"}
	}
	for i, secret := range settings.Secrets {
		key, err := s.scheme.ForSecret(secret.Key.Reveal()).ParseKey(secret.Key.Reveal())
		if err != nil {
			return s, &settingError{fmt.Sprintf("secrets[%d]", i), err.Error()}
		}
		s.keys = append(s.keys, key)
	}
	s.places = placesOf(s.scheme.Name())
	if err := s.places.choose(settings, s.scheme); err != nil {
		return s, err
	}
	if h := settings.Handshake; h != nil && (h.Kind == config.HandshakeSlack || h.Kind == config.HandshakeZoom) && h.Kind != settings.Scheme {
		return s, &settingError{"handshake.kind", "is signed as scheme " + h.Kind + " has it; choose that scheme"}
	}
	if l := settings.List; l != nil {
		if err := s.checkList(*l); err != nil {
			return s, err
		}
	}
	if settings.Read != nil {
		at, err := parseAddress(*settings.Read)
		if err != nil {
			return s, &settingError{"read.url", err.Error()}
		}
		s.current = &at
	}
	return s, nil
}

// Name is the source's name in the configuration.
func (s Sender) Name() string { return s.name }

// Settings are what the configuration says of the source.
func (s Sender) Settings() config.Source { return s.settings }

// Format writes name and scheme for every verb, never a credential.
func (s Sender) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "source "+s.name+" ("+s.scheme.Name()+")")
}

// Policy is what decisions need to know of the source.
func (s Sender) Policy() ledger.Upstream {
	return ledger.Upstream{Name: s.name, Generic: true, Reads: s.current != nil, Tenant: s.settings.Tenant, Owner: s.settings.Owner}
}

// SchemeHeaders are the names of the headers that the source's scheme reads.
func (s Sender) SchemeHeaders() []string { return s.scheme.Headers() }

// KeptHeaders are the names of the headers that are stored as they are: what
// judging anew and handing over need.
func (s Sender) KeptHeaders() []string {
	names := []string{"Content-Type"}
	if id := s.scheme.IDHeader(); id != "" {
		names = append(names, id)
	}
	for _, name := range append(s.places.headers(), s.settings.Headers...) {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	return names
}

// Forwarded are the headers of a stored event that endpoints with the original
// content get beside its body, the content type among them.
func (s Sender) Forwarded(e ledger.Event) http.Header {
	stored, h := storedHeader(e.Headers), http.Header{}
	for _, name := range append([]string{"Content-Type"}, s.settings.Headers...) {
		if value := stored.Get(name); value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// ReasonNoActiveKey: by their dates none of the secrets is active.
const ReasonNoActiveKey = "no_active_key"

// Proof is what a good signature proved.
type Proof struct {
	// id is the event id that the signature covers, "" for none.
	id string
	// secret is the one that matched.
	secret config.Secret
	// otherVersion: the signature is good, and the payload is of a version that the
	// scheme does not take (7-rules R16).
	otherVersion bool
}

// Verify checks a request over its raw body, received at now, against the secrets
// that are active. Its URL is the one that was called, which some schemes sign. The
// reason is empty if it is the source's.
func (s Sender) Verify(r webhook.Request, now time.Time) (p Proof, reason string) {
	var active []webhook.Key
	var secrets []config.Secret
	for i, key := range s.keys {
		if secret := s.settings.Secrets[i]; secret.ActiveAt(now) {
			active, secrets = append(active, key), append(secrets, secret.Key)
		}
	}
	if len(active) == 0 {
		return p, ReasonNoActiveKey
	}
	verified, err := s.scheme.Verify(r, now, active...)
	switch {
	case errors.Is(err, webhook.ReasonPayloadVersion):
		return Proof{otherVersion: true}, ""
	case err != nil:
		var why webhook.Reason
		if !errors.As(err, &why) {
			return p, "signature"
		}
		return p, string(why)
	}
	return Proof{id: verified.ID, secret: secrets[verified.Key]}, ""
}

// Takes reports whether the source may send that content type; none counts as its
// own.
func (s Sender) Takes(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	if len(s.settings.ContentTypes) == 0 {
		return media == jsonType
	}
	return slices.Contains(s.settings.ContentTypes, media)
}

const jsonType = "application/json"

// isJSON reports whether the body is to be read as JSON by its content type.
func (s Sender) isJSON(contentType string) bool {
	if contentType == "" {
		return len(s.settings.ContentTypes) == 0 || slices.ContainsFunc(s.settings.ContentTypes, jsonMedia)
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && jsonMedia(media)
}

func jsonMedia(media string) bool { return media == jsonType || strings.HasSuffix(media, "+json") }

// values reads the body's values at pointers; none of a body that is no JSON.
func (s Sender) values(h http.Header, body []byte, pointers ...string) (map[string]strict.Value, error) {
	if !s.isJSON(h.Get("Content-Type")) {
		return nil, nil
	}
	pointers = slices.DeleteFunc(pointers, func(p string) bool { return !strings.HasPrefix(p, "/") })
	found, err := strict.Extract(body, pointers...)
	if err != nil {
		return nil, err
	}
	values := make(map[string]strict.Value, len(pointers))
	for i, p := range pointers {
		values[p] = found[i]
	}
	return values, nil
}
