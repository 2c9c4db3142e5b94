package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Message is what is to be sent and signed.
type Message struct {
	// ID names the event, not the attempt: it stays the same over retries and
	// replays (SW-03). Schemes without an id header ignore it.
	ID string
	// TaskID may be empty. For a scheme that signs the task id, that of the body
	// is signed, and one given here must be equal to it. Others ignore it.
	TaskID string
	// Timestamp is the time of the attempt in whole Unix seconds (SW-02).
	Timestamp int64
	// URL is for schemes that sign the address ("rfc9421"): the absolute one that
	// the message is posted to.
	URL string
	// ContentType is for schemes that sign it ("rfc9421"); empty means
	// application/json.
	ContentType string
	// Body is exactly what will be sent. Some receivers' libraries can verify
	// UTF-8 only (SW-32).
	Body []byte
}

// Sign returns the headers, under canonical names, that the request must carry.
// A scheme with a list of signatures gets one for each key, in order, so that
// receivers with the old and with the new secret both verify while it is being
// rotated; a scheme with a single signature uses the first key. Keys of the two
// Standard Webhooks schemes may be given together to either, and each signs in
// its own way into the one header (7-rules R39).
//
// It refuses with [ReasonMalformedMessage] an id that is not 1 to 255 characters
// of [A-Za-z0-9_-] (7-rules R49), a timestamp that is not positive or has more
// than eleven digits, and another TaskID than the body's; with
// [ReasonMalformedBody] a body without the task id that the scheme signs; with
// [ReasonNoKey] or [ReasonMalformedKey] unusable keys, public ones among them, or
// more than sixteen.
func (s Scheme) Sign(m Message, keys ...Key) (http.Header, error) {
	h, err := s.sign(m, keys)
	if err != nil {
		return nil, fmt.Errorf("webhook: sign %s: %w", s.name, err)
	}
	return h, nil
}

func (s Scheme) sign(m Message, keys []Key) (http.Header, error) {
	if err := s.usable(keys); err != nil {
		return nil, err
	}
	if len(keys) > maxSignatures {
		return nil, refuse(ReasonMalformedKey, "more than "+strconv.Itoa(maxSignatures)+" keys")
	}
	for _, k := range keys {
		if !k.CanSign() {
			return nil, refuse(ReasonMalformedKey, "a public key cannot sign: give the secret one, which begins with "+secretKeyPrefix)
		}
	}
	v, err := s.outgoing(m)
	if err != nil {
		return nil, err
	}
	if s.message {
		return s.signMessage(m, v, keys)
	}
	h := make(http.Header, 4)
	if s.id != "" {
		h.Set(s.id, v.id)
	}
	signatures := s.signatures(s.signedText(v), keys)
	switch {
	case s.timestamp.element != "":
		signatures = s.timestamp.element + v.timestamp + elementSeparator + signatures
	case s.timestamp.header != "":
		h.Set(s.timestamp.header, v.timestamp)
	}
	h.Set(s.signature.header, signatures)
	for _, f := range s.fixed {
		h.Set(f.name, f.value)
	}
	return h, nil
}

func (s Scheme) signatures(text [][]byte, keys []Key) string {
	if s.signature.separator == "" {
		keys = keys[:1]
	}
	tokens := make([]string, len(keys))
	for i, k := range keys {
		tokens[i] = k.token.prefix + k.token.encoding.encode(k.token.algorithm.sign(k.secret(), text))
	}
	return strings.Join(tokens, s.signature.separator)
}

// outgoing checks a message for what a receiver would refuse.
func (s Scheme) outgoing(m Message) (values, error) {
	v := values{body: m.Body}
	if s.id != "" {
		if !validOwnID(m.ID) {
			return values{}, refuse(ReasonMalformedMessage, "the id is not 1 to 255 characters of A-Z a-z 0-9 _ -")
		}
		v.id = m.ID
	}
	if s.timestamp.header != "" || s.message {
		if m.Timestamp < 1 || m.Timestamp > maxTimestamp {
			return values{}, refuse(ReasonMalformedMessage, "the timestamp is not in Unix seconds")
		}
		v.timestamp = strconv.FormatInt(m.Timestamp, 10)
	}
	if s.covers(partTaskID) {
		id, err := taskID(m.Body, s.taskPath)
		if err != nil {
			return values{}, err
		}
		if m.TaskID != "" && m.TaskID != id {
			return values{}, refuse(ReasonMalformedMessage, "the body names another task than TaskID")
		}
		v.taskID = id
	}
	return v, nil
}
