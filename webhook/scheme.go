package webhook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// Scheme describes one way of signing webhooks. It is immutable, cheap to copy
// and safe for concurrent use. Schemes come from [Lookup]; the zero value refuses
// everything.
type Scheme struct {
	name      string
	shares    string // what schemes whose signatures share one list have in common; empty: none does
	id        string // header of the event id; empty: none
	timestamp timestampRule
	signature signatureRule
	token     tokenRule
	text      []part
	key       keyRule
	taskPath  []string      // members of the JSON body that lead to the task id
	fixed     []fixedHeader // judged after the signature
	message   bool          // HTTP Message Signatures, which say themselves what they cover: message.go
}

// timestampRule without a header means that the scheme has no timestamp.
type timestampRule struct {
	header  string
	element string        // before the timestamp in the one header that lists the signatures too
	window  time.Duration // accepted distance from now, either way, inclusive; zero: it is signed, and not judged
	past    bool          // only its age is judged
}

type signatureRule struct {
	header    string
	separator string // between several signatures; empty: exactly one
}

// tokenRule is how one signature is made and written. Keys carry that of their
// scheme, since a list may hold signatures of two.
type tokenRule struct {
	prefix    string // before each signature; in a list, others are skipped
	encoding  encoding
	algorithm algorithm
	// others are further ways in which the sender may make it; we sign in the
	// first one only.
	others []tokenRule
}

type keyRule struct {
	ed25519  bool   // whsk_ and whpk_; the rest is for symmetric secrets
	both     bool   // whsk_ and whpk_ too, beside symmetric secrets
	prefix   string // optional in front of a base64 secret
	base64   bool   // else the text of the secret is the key
	min, max int    // bytes, when base64
}

type fixedHeader struct {
	name, value string
	reason      Reason
}

// part is one piece of the signed text: a value of the message, or literal text.
type part struct {
	kind    partKind
	literal string
}

type partKind int

const (
	partLiteral partKind = iota
	partID
	partTimestamp
	partTaskID
	partBody
	partBodySHA256Hex
)

// Lookup returns the scheme of that name: "standard-webhooks",
// "standard-webhooks-v1a", "media-v2", "body-timestamp", "rfc9421", or that of a provider
// with a way of its own: "stripe", "github", "slack", "zoom" or "websub". Names
// are compared exactly.
func Lookup(name string) (Scheme, bool) {
	for _, s := range schemes {
		if s.name == name {
			return s, true
		}
	}
	return Scheme{}, false
}

// Names returns the names that [Lookup] knows, in the order of the table in the
// package comment. The slice is the caller's.
func Names() []string {
	names := make([]string, len(schemes))
	for i, s := range schemes {
		names[i] = s.name
	}
	return names
}

// SignsAddress reports whether signatures cover the address that was called, so
// that whoever signs or verifies must know it ("rfc9421").
func (s Scheme) SignsAddress() bool { return s.message }

// Name returns the name by which [Lookup] finds the scheme.
func (s Scheme) Name() string { return s.name }

// ForSecret returns the scheme that can parse the secret, among those whose
// signatures share one list with s: of the two Standard Webhooks schemes the one
// with Ed25519 for what begins with "whsk_" or "whpk_", else the one with HMAC.
// Every other scheme is returned as it is. It is for a secret that is in force
// beside one of s itself, as while an endpoint moves from one to the other.
func (s Scheme) ForSecret(secret string) Scheme {
	for _, other := range schemes {
		if other.list() == s.list() && other.key.ed25519 == asymmetric(secret) {
			return other
		}
	}
	return s
}

// Beside reports whether one header can carry signatures of both schemes: those
// of Standard Webhooks, each beside itself and the other, and stripe and rfc9421
// each beside itself. The others send a single signature.
func (s Scheme) Beside(other Scheme) bool {
	return s.signature.separator != "" && s.list() == other.list()
}

// list names what the keys of a scheme can be used together with.
func (s Scheme) list() string { return cmp.Or(s.shares, s.name) }

// IDHeader returns the name of the header that carries the event id, if the
// signature covers it, else "".
func (s Scheme) IDHeader() string {
	if !s.covers(partID) {
		return ""
	}
	return s.id
}

// Headers returns the names of all headers that the scheme reads. The slice is
// the caller's.
func (s Scheme) Headers() []string {
	names := []string{s.id, s.timestamp.header, s.signature.header}
	if s.message {
		names = append(names, signatureInput, contentDigest)
	}
	for _, f := range s.fixed {
		names = append(names, f.name)
	}
	return slices.Compact(slices.DeleteFunc(names, func(name string) bool { return name == "" }))
}

func (s Scheme) covers(kind partKind) bool {
	for _, p := range s.text {
		if p.kind == kind {
			return true
		}
	}
	return false
}

// values are what a message puts into the signed text.
type values struct {
	id, timestamp, taskID string
	body                  []byte
}

// signedText is returned in pieces so that the body is hashed where it lies.
func (s Scheme) signedText(v values) [][]byte {
	text := make([][]byte, len(s.text))
	for i, p := range s.text {
		switch p.kind {
		case partLiteral:
			text[i] = []byte(p.literal)
		case partID:
			text[i] = []byte(v.id)
		case partTimestamp:
			text[i] = []byte(v.timestamp)
		case partTaskID:
			text[i] = []byte(v.taskID)
		case partBody:
			text[i] = v.body
		case partBodySHA256Hex:
			sum := sha256.Sum256(v.body)
			text[i] = hex.AppendEncode(nil, sum[:])
		}
	}
	return text
}
