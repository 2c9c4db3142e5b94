package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Request is a webhook as it was received.
type Request struct {
	// Header is the request's header. Names are compared without regard to case.
	Header http.Header
	// Body is the raw body, before any decoding (CB-01). It is only read.
	Body []byte
	// URL is for schemes that sign the address ("rfc9421"): the absolute one that
	// was called, as the sender knows it. The method is POST.
	URL string
	// TaskID may be empty. If it is not, and the scheme signs the body's task id,
	// a good signature for another task is refused with ReasonTaskMismatch.
	TaskID string
}

// Verified is what a good signature proved. It holds only what the signature
// covers.
type Verified struct {
	// ID is the event id of the header. It is empty for schemes that do not sign
	// that header ("media-v2", "body-timestamp"): whoever captured a request could
	// send it again under another id. Take the id from the verified body there.
	ID string
	// TaskID is the task id of the body, empty for schemes that do not sign it.
	TaskID string
	// Timestamp is when the sender signed, in whole seconds.
	Timestamp time.Time
	// Key is the index, among the keys given to Verify, of the first that matched.
	Key int
}

// Verify checks a request against all keys that are in force at now. Nothing of
// the body is looked at before the signature is known to be good, except that
// "media-v2" needs the task id to build the signed text (2-contracts §2).
//
// On an error, whose [Reason] says why, Verified is zero. Checked in this order:
// keys; headers and timestamp (strict decimal seconds, 300 s either way
// inclusive); event id; shape of the signature header; body's task id; signature;
// payload version; Request.TaskID. A header that occurs twice is refused.
//
// A list may hold up to sixteen signatures, of which four may be Ed25519's; those
// of versions that no key is for are skipped (SW-10, O-029). Keys of the two
// Standard Webhooks schemes may be given together to either.
func (s Scheme) Verify(r Request, now time.Time, keys ...Key) (Verified, error) {
	v, err := s.verify(r, now, keys)
	if err != nil {
		return Verified{}, fmt.Errorf("webhook: verify %s: %w", s.name, err)
	}
	return v, nil
}

func (s Scheme) verify(r Request, now time.Time, keys []Key) (Verified, error) {
	if err := s.usable(keys); err != nil {
		return Verified{}, err
	}
	if s.message {
		return s.verifyMessage(r, now, keys)
	}
	timestamp, at, err := s.timestamp.read(r.Header, now)
	if err != nil {
		return Verified{}, err
	}
	id, err := s.receivedID(r.Header)
	if err != nil {
		return Verified{}, err
	}
	tokens, err := s.signature.tokens(r.Header)
	if err != nil {
		return Verified{}, err
	}
	v := values{id: id, timestamp: timestamp, body: r.Body}
	if s.covers(partTaskID) {
		if v.taskID, err = taskID(r.Body, s.taskPath); err != nil {
			return Verified{}, err
		}
	}
	key, err := s.match(v, tokens, keys)
	if err != nil {
		return Verified{}, err
	}
	if err := s.afterSignature(r, v); err != nil {
		return Verified{}, err
	}
	return Verified{ID: v.id, TaskID: v.taskID, Timestamp: at, Key: key}, nil
}

// receivedID returns the event id if the signature covers it. An id header that it
// does not cover proves nothing: it may be absent and is not returned.
func (s Scheme) receivedID(h http.Header) (string, error) {
	if s.id == "" {
		return "", nil
	}
	id, err := header(h, s.id)
	if !s.covers(partID) && !errors.Is(err, ReasonMalformedHeader) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !validReceivedID(id) {
		return "", refuseHeader(ReasonMalformedHeader, s.id, "the id is not 1 to 255 characters of visible ASCII without a full stop")
	}
	return id, nil
}

// match returns the index of the first key that made one of the tokens. It says
// the same of a wrong signature and of one that is none (O-036).
func (s Scheme) match(v values, tokens []string, keys []Key) (int, error) {
	var text [][]byte
	for i, k := range keys {
		for rule := range k.token.ways() {
			candidates, ok := rule.candidates(tokens)
			if !ok {
				return 0, refuseHeader(ReasonMalformedHeader, s.signature.header,
					"the header holds more than "+strconv.Itoa(rule.algorithm.most)+" signatures of one kind")
			}
			if len(candidates) == 0 {
				continue
			}
			if text == nil {
				text = s.signedText(v)
			}
			if rule.algorithm.match(k.secret(), text, candidates) {
				return i, nil
			}
		}
	}
	return 0, refuseHeader(ReasonNoMatch, s.signature.header, "no signature matches")
}

// afterSignature holds the checks whose failure is the word of the real sender.
func (s Scheme) afterSignature(r Request, v values) error {
	if err := s.checkDeclared(r.Header); err != nil {
		return err
	}
	if r.TaskID != "" && v.taskID != "" && r.TaskID != v.taskID {
		return refuse(ReasonTaskMismatch, "the body names another task than the one expected")
	}
	return nil
}

// CheckDeclared checks what the headers of a request say beside its signature,
// such as the payload version (7-rules R16), as [Scheme.Verify] does at the end.
// It is for a request that was verified before and whose signature was not kept.
func (s Scheme) CheckDeclared(h http.Header) error {
	if err := s.checkDeclared(h); err != nil {
		return fmt.Errorf("webhook: check %s: %w", s.name, err)
	}
	return nil
}

func (s Scheme) checkDeclared(h http.Header) error {
	for _, f := range s.fixed {
		value, err := header(h, f.name)
		if err != nil || value != f.value {
			return refuseHeader(f.reason, f.name, "the value must be "+f.value+", once")
		}
	}
	return nil
}
