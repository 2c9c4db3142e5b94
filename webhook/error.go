package webhook

// Reason says why a secret, a message or a request was refused. The values are
// stable and fit for metrics, stored verdicts and answers. A Reason is itself an
// error, so errors.Is(err, webhook.ReasonNoMatch) works on whatever this package
// returns.
type Reason string

// ReasonPayloadVersion and ReasonTaskMismatch are given only after the signature
// was found good; with every other reason nothing about the sender is known.
const (
	// ReasonUnknownScheme: the Scheme is the zero value, not one from Lookup.
	ReasonUnknownScheme Reason = "unknown_scheme"
	// ReasonNoKey: no key was given, or a Key is the zero value.
	ReasonNoKey Reason = "no_key"
	// ReasonMalformedKey: the secret is not one that the scheme can use, or the
	// Key was parsed for another scheme.
	ReasonMalformedKey Reason = "malformed_key"
	// ReasonMalformedMessage: a message to be signed has an id, a timestamp or a
	// task id that a receiver would have to refuse.
	ReasonMalformedMessage Reason = "malformed_message"
	// ReasonNoURL: the scheme signs the address, and the Request has no absolute
	// URL.
	ReasonNoURL Reason = "no_url"
	// ReasonMissingHeader: a header that the scheme needs is absent.
	ReasonMissingHeader Reason = "missing_header"
	// ReasonMalformedHeader: a header occurs twice, holds too many signatures, or
	// an event id that is empty, too long or outside the allowed characters.
	ReasonMalformedHeader Reason = "malformed_header"
	// ReasonMalformedTimestamp: not whole Unix seconds in plain decimal digits.
	ReasonMalformedTimestamp Reason = "malformed_timestamp"
	// ReasonStaleTimestamp: older than the scheme's window.
	ReasonStaleTimestamp Reason = "stale_timestamp"
	// ReasonFutureTimestamp: further ahead than the scheme's window.
	ReasonFutureTimestamp Reason = "future_timestamp"
	// ReasonMalformedBody: the signed text needs a task id from the body, and the
	// body does not name exactly one.
	ReasonMalformedBody Reason = "malformed_body"
	// ReasonNoMatch: no signature of the request belongs to any of the keys. A
	// signature that cannot even be decoded is not told apart from a wrong one.
	ReasonNoMatch Reason = "no_match"
	// ReasonPayloadVersion: the signature is good, but the request does not
	// declare the one payload version that the scheme accepts (7-rules R16).
	ReasonPayloadVersion Reason = "payload_version"
	// ReasonTaskMismatch: the signature is good, but the body names another task
	// than Request.TaskID.
	ReasonTaskMismatch Reason = "task_mismatch"
)

// Error returns the reason's stable text, such as "stale_timestamp".
func (r Reason) Error() string { return string(r) }

// Error is the refusal of a secret, a message or a request. Its text never holds
// the secret, a signature, or any other value of the request. Reach it through
// errors.As.
type Error struct {
	// Reason is the stable cause.
	Reason Reason
	// Header is the name of the header at fault, empty if none is.
	Header string

	detail string
}

// Error returns the reason, the header at fault and what is wrong with it.
func (e *Error) Error() string {
	text := string(e.Reason)
	if e.Header != "" {
		text += ": " + e.Header
	}
	if e.detail != "" {
		text += ": " + e.detail
	}
	return text
}

// Unwrap returns the Reason, for errors.Is.
func (e *Error) Unwrap() error { return e.Reason }

func refuse(reason Reason, detail string) error {
	return &Error{Reason: reason, detail: detail}
}

func refuseHeader(reason Reason, header, detail string) error {
	return &Error{Reason: reason, Header: header, detail: detail}
}
