package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Scheme describes one way of signing webhooks. It is immutable, cheap to copy
// and safe for concurrent use. Schemes come from [Lookup]; the zero value refuses
// everything.
type Scheme struct {
	name      string
	id        string // header of the event id; empty: none
	timestamp timestampRule
	signature signatureRule
	text      []part
	algorithm algorithm
	key       keyRule
	taskPath  []string      // members of the JSON body that lead to the task id
	fixed     []fixedHeader // judged after the signature
}

// timestampRule without a header means that the scheme has no timestamp.
type timestampRule struct {
	header string
	window time.Duration // accepted distance from now, either way, inclusive
}

type signatureRule struct {
	header    string
	separator string // between several signatures; empty: exactly one
	prefix    string // before each signature; in a list, others are skipped
	encoding  encoding
}

type keyRule struct {
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

// Lookup returns the scheme of that name: "standard-webhooks", "media-v2" or
// "body-timestamp". Names are compared exactly.
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

// Name returns the name by which [Lookup] finds the scheme.
func (s Scheme) Name() string { return s.name }

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
