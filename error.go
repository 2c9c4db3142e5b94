package pawl

// FailureCode is one of the nine stable codes of a failed operation
// (1-product D5).
type FailureCode string

// The nine codes. Every other word of a provider is FailUpstream, its original
// kept beside it.
const (
	FailInvalidRequest  FailureCode = "invalid_request"
	FailUnsupported     FailureCode = "unsupported_combination"
	FailContentRejected FailureCode = "content_rejected"
	FailRateLimited     FailureCode = "rate_limited"
	FailUnavailable     FailureCode = "upstream_unavailable"
	FailGeneration      FailureCode = "generation_failed"
	FailTimeout         FailureCode = "timeout"
	FailInvalidAsset    FailureCode = "invalid_asset"
	FailUpstream        FailureCode = "upstream_failed"
)

// FailureCodeOf maps a provider's word to one of the nine codes.
func FailureCodeOf(word string) FailureCode {
	switch c := FailureCode(word); c {
	case FailInvalidRequest, FailUnsupported, FailContentRejected, FailRateLimited, FailUnavailable,
		FailGeneration, FailTimeout, FailInvalidAsset:
		return c
	}
	return FailUpstream
}

// Kind is the kind of an error that reaches a caller; the API maps each to
// one HTTP status.
type Kind uint8

// The kinds of errors.
const (
	// Internal: a fault of ours; its text stays in the log.
	Internal Kind = iota
	// Invalid: the request is malformed (400).
	Invalid
	// Unauthenticated: no valid credential (401).
	Unauthenticated
	// PaymentRequired: not enough credit (402).
	PaymentRequired
	// Forbidden: the credential lacks a scope (403).
	Forbidden
	// NotFound: unknown, or another tenant's (404).
	NotFound
	// Conflicting: the current state forbids it (409).
	Conflicting
	// Precondition: If-Match names another version (412).
	Precondition
	// Unprocessable: well-formed but contradictory (422).
	Unprocessable
	// PreconditionRequired: If-Match is missing (428).
	PreconditionRequired
	// Unavailable: try again later (503).
	Unavailable
)

// Error is a refusal that a caller can act on. Message says what to do and
// never holds a secret, a link or another tenant's data.
type Error struct {
	Kind Kind
	// Reason is a stable word for programs, such as "idempotency_mismatch".
	Reason  string
	Message string
	// Operation is the existing operation that the refusal is about, if the
	// caller may know it.
	Operation ID
}

// Error gives the reason and the message.
func (e *Error) Error() string { return e.Reason + ": " + e.Message }
