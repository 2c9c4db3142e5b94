package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What refusals have in common, for errors.Is.
var (
	// ErrUnauthorized: the API key is not valid (401).
	ErrUnauthorized = errors.New("client: the API key is not valid")
	// ErrPayment: not enough credit, or a budget or limit is used up (402).
	ErrPayment = errors.New("client: the credit does not suffice")
	// ErrForbidden: the API key lacks a scope, or may not see that tenant (403).
	ErrForbidden = errors.New("client: the API key may not do this")
	// ErrNotFound: nothing is under this id that the key may see (404).
	ErrNotFound = errors.New("client: not found")
	// ErrConflict: the present state forbids it (409).
	ErrConflict = errors.New("client: the present state forbids it")
	// ErrChanged: it was changed since it was read (412).
	ErrChanged = errors.New("client: it was changed since")
)

var statusErrors = map[int]error{
	http.StatusUnauthorized: ErrUnauthorized, http.StatusPaymentRequired: ErrPayment, http.StatusForbidden: ErrForbidden,
	http.StatusNotFound: ErrNotFound, http.StatusConflict: ErrConflict, http.StatusPreconditionFailed: ErrChanged,
}

// Problem is a refusal by the server (RFC 9457).
type Problem struct {
	// Status is the HTTP status.
	Status int `json:"status"`
	// Reason is a stable word for programs, such as "insufficient_credit"; the
	// API's description lists them by call. Empty where the answer is not one of
	// Pawl's.
	Reason string `json:"reason"`
	// Title is the same for every problem of the reason; Detail says what to do
	// about this one.
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// Instance names the request to support.
	Instance string `json:"instance"`
	// OperationID is the existing operation that the refusal is about, if the
	// caller may know it.
	OperationID string `json:"operation_id"`
	// Scope is the scope that the API key lacks.
	Scope string `json:"scope"`
	// Faults are the single faults of the request's body.
	Faults []Fault `json:"errors"`
	// RetryAfter is how long the server asks to wait; 0 if it does not.
	RetryAfter time.Duration `json:"-"`
}

// Fault is one fault of a request's body.
type Fault struct {
	Detail string `json:"detail"`
	// Pointer is a JSON Pointer to it as a URI fragment, such as "#/url".
	Pointer string `json:"pointer"`
}

// Error is one sentence: what, why, and how to name it to support.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString("client: ")
	if p.Reason != "" {
		b.WriteString(p.Reason)
	} else {
		fmt.Fprintf(&b, "status %d", p.Status)
	}
	if p.Detail != "" {
		b.WriteString(": " + p.Detail)
	} else if p.Title != "" {
		b.WriteString(": " + p.Title)
	}
	for _, f := range p.Faults {
		b.WriteString("; " + f.Pointer + " " + f.Detail)
	}
	if p.OperationID != "" {
		b.WriteString(", operation " + p.OperationID)
	}
	if p.Instance != "" {
		b.WriteString(" (request " + strings.TrimPrefix(p.Instance, "urn:pawl:request:") + ")")
	}
	return b.String()
}

// Is reports whether target is the error of the problem's status, such as
// [ErrNotFound], or a *Problem with the same reason or, where that has none, the
// same status.
func (p *Problem) Is(target error) bool {
	if other, ok := target.(*Problem); ok {
		return other.Reason != "" && other.Reason == p.Reason || other.Reason == "" && other.Status != 0 && other.Status == p.Status
	}
	return statusErrors[p.Status] == target
}

func problemOf(status int, header http.Header, body []byte) *Problem {
	p := new(Problem)
	if !strings.Contains(header.Get("Content-Type"), "json") || json.Unmarshal(body, p) != nil || p.Reason == "" {
		// Somebody else's answer: nothing of it is repeated, it may hold anything.
		p = &Problem{Title: http.StatusText(status), Detail: "the answer is not one of Pawl's; check the server's address"}
	}
	p.Status = status
	if seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 31); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

// Unanswered is a call of which nobody knows whether it was carried out: all its
// tries were lost, or the context ended before an answer came.
type Unanswered struct {
	// Method and Path name the call, Tries how often it was sent.
	Method, Path string
	Tries        int
	// IdempotencyKey is the call's, empty where it has none: the same call again
	// under the same key is the same one.
	IdempotencyKey string
	// Err is the last cause: the context's error, or that of the connection.
	Err error
}

// Error says which call was lost.
func (u *Unanswered) Error() string {
	return fmt.Sprintf("client: %s %s was not answered after %d tries: %v", u.Method, u.Path, u.Tries, u.Err)
}

// Unwrap is the cause.
func (u *Unanswered) Unwrap() error { return u.Err }
