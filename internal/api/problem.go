package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// problemBase is followed by a reason. The page there, which every node serves,
// explains it (RFC 9457 §4, PD-04); why it is a relative reference:
// docs/decisions/problem-types.md.
const problemBase = "/v1/problems/"

// docsIdempotency explains what an Idempotency-Key is, how long it lives and
// what its fingerprint covers (IK-06, IK-12).
const docsIdempotency = problemBase + "idempotency_key_missing"

// problem is an answer that refuses (RFC 9457).
type problem struct {
	Type     string `json:"type" format:"uri-reference" doc:"Identifies the reason; the page there explains it."`
	Title    string `json:"title" doc:"The same for every occurrence of the type."`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty" doc:"What to do about this occurrence."`
	Instance string `json:"instance,omitempty" doc:"The request, to be named to support."`
	Reason   string `json:"reason" doc:"The last part of the type, for programs."`
	// OperationID is the existing operation of an idempotency mismatch.
	OperationID   string       `json:"operation_id,omitempty"`
	Scope         string       `json:"scope,omitempty" doc:"The scope that the API key lacks."`
	Documentation string       `json:"documentation,omitempty" format:"uri-reference"`
	Errors        []fieldError `json:"errors,omitempty" doc:"The single faults of the request body."`

	header http.Header
}

// fieldError is one fault of a request body (PD-07).
type fieldError struct {
	Detail  string `json:"detail"`
	Pointer string `json:"pointer" doc:"JSON Pointer to the fault as a URI fragment." example:"#/url"`
}

// Error is the reason and the detail.
func (p *problem) Error() string { return p.Reason + ": " + p.Detail }

// with adds a header to the answer.
func (p *problem) with(name, value string) *problem {
	if p.header == nil {
		p.header = make(http.Header)
	}
	p.header.Set(name, value)
	return p
}

// kindStatus is the status of each kind of error.
var kindStatus = map[pawl.Kind]int{
	pawl.Internal:             http.StatusInternalServerError,
	pawl.Invalid:              http.StatusBadRequest,
	pawl.Unauthenticated:      http.StatusUnauthorized,
	pawl.PaymentRequired:      http.StatusPaymentRequired,
	pawl.Forbidden:            http.StatusForbidden,
	pawl.NotFound:             http.StatusNotFound,
	pawl.Conflicting:          http.StatusConflict,
	pawl.Precondition:         http.StatusPreconditionFailed,
	pawl.Unprocessable:        http.StatusUnprocessableEntity,
	pawl.PreconditionRequired: http.StatusPreconditionRequired,
	pawl.Unavailable:          http.StatusServiceUnavailable,
}

// titles are the problem types: reason and title.
var titles = map[string]string{
	"above_reservation":         "The charge is above the operation's price",
	"already_decided":           "The review was decided already",
	"amount_range":              "The amount is out of range",
	"artifact_removed":          "The file is no longer kept",
	"erased":                    "The operation's content was erased",
	"not_erasable":              "The operation cannot be erased yet",
	"body_gone":                 "The content is no longer stored",
	"body_timeout":              "The request body did not arrive in time",
	"cancel_not_requested":      "Nobody has asked to cancel the operation",
	"list_busy":                 "The source cannot be asked for its list now",
	"list_unreadable":           "The source's list cannot be read",
	"list_untimed":              "The source's list tells no times",
	"no_list":                   "The source lists nothing",
	"source_shared":             "The source is not this tenant's alone",
	"lease_ended":               "The lease has ended by its worker's own report",
	"lease_lost":                "Another worker has the operation",
	"callback_endpoint":         "The endpoint belongs to a callback address",
	"cancel_unsupported":        "The upstream cannot cancel",
	"capture_failed":            "The file could not be saved",
	"charge_refused":            "Such an end costs nothing",
	"content_too_large":         "The request is too large",
	"correlation_id_in_use":     "The correlation_id belongs to an unfinished operation",
	"currency":                  "The currencies differ",
	"disk_full":                 "The server's disk is nearly full",
	"endpoint_disabled":         "The endpoint is disabled",
	"endpoint_feed":             "The endpoint is a feed",
	"event_id_taken":            "The id stands for another event",
	"finished":                  "The operation has ended",
	"held":                      "The result is held",
	"headers_too_large":         "The request's headers are too large",
	"idempotency_key_in_use":    "Another API key uses this Idempotency-Key",
	"idempotency_key_invalid":   "The Idempotency-Key cannot be read",
	"idempotency_key_missing":   "The Idempotency-Key is missing",
	"idempotency_mismatch":      "The Idempotency-Key stands for another request",
	"if_match_missing":          "The If-Match header is missing",
	"insufficient_credit":       "The account's credit does not suffice",
	"insufficient_scope":        "The API key lacks a scope",
	"internal":                  "An error on our side",
	"invalid_json":              "The request body is not the JSON that is expected",
	"invalid_page_token":        "The page token does not belong to this list",
	"invalid_query":             "A query parameter cannot be read",
	"invalid_request":           "The request body has faults",
	"key_budget":                "The API key's budget does not suffice",
	"key_ended":                 "The API key has ended",
	"method_not_allowed":        "The method is not allowed here",
	"negative_price":            "The price is negative",
	"never_created":             "The operation was never sent",
	"no_account":                "The tenant has no account",
	"no_result_yet":             "There is no result to release",
	"not_captured":              "The file is not saved yet",
	"no_test":                   "The endpoint's scheme has no test events",
	"not_found":                 "Nothing is here",
	"not_held":                  "The result is not held",
	"not_inbound":               "The event is not inbound",
	"not_retryable":             "The operation cannot be tried again",
	"never_sent":                "The delivery was never sent",
	"replay_finished":           "The replay has ended",
	"too_many_notes":            "The review has too many notes",
	"not_sent":                  "The delivery was not sent yet",
	"not_unconfirmed":           "The operation is not unconfirmed",
	"note_missing":              "A correction needs a note",
	"nothing_to_correct":        "There is nothing to correct",
	"nothing_to_read":           "There is nothing to read",
	"operation_id_missing":      "The operation id is missing",
	"other_upstream":            "The operation is at another upstream",
	"price_missing":             "The price is missing",
	"rate_limited":              "The API key makes too many calls",
	"skipped":                   "The delivery was skipped",
	"source_unknown":            "The source is no longer configured",
	"spending_limit":            "The upstream's spending limit is reached",
	"task_id_missing":           "The task id is missing",
	"task_known":                "The operation has a task",
	"task_of_another_operation": "The task belongs to another operation",
	"tenant_forbidden":          "The API key belongs to another tenant",
	"too_many_orphans":          "Too many events wait for their task",
	"unauthenticated":           "No valid API key",
	"unavailable":               "Not available at the moment",
	"unknown_decision":          "The decision is not possible",
	"unknown_model":             "The model is not known",
	"unknown_upstream":          "The upstream is not known",
	"unmetered":                 "The operation has no price",
	"unsupported_media_type":    "The content type is not supported",
	"upstream_forbidden":        "The API key may not use this upstream",
	"upstream_unknown":          "The upstream is no longer configured",
	"url_refused":               "The address is not permitted",
	"version":                   "The resource was changed",
}

// refuse makes a problem of one of the types of titles.
func refuse(status int, reason, detail string) *problem {
	title, ok := titles[reason]
	if !ok {
		title = http.StatusText(status)
	}
	return &problem{Type: problemBase + reason, Title: title, Status: status, Detail: detail, Reason: reason}
}

// problemOf is the one table from errors to answers; nil where the error's
// text is for the log only.
func problemOf(err error) *problem {
	if p := asError[*problem](err); p != nil {
		return p
	}
	if e := asError[*pawl.Error](err); e != nil && e.Kind != pawl.Internal {
		p := refuse(kindStatus[e.Kind], e.Reason, e.Message)
		p.OperationID = e.Operation.Text(pawl.PrefixOperation)
		if e.Kind == pawl.Unavailable {
			p.with("Retry-After", "1")
		}
		return p
	}
	if e := asError[*strict.Error](err); e != nil {
		p := refuse(http.StatusBadRequest, "invalid_json", e.Error())
		p.Errors = []fieldError{{e.Reason, fragment(e.Pointer)}}
		return p
	}
	for _, passing := range []error{store.ErrBusy, store.ErrClosed, store.ErrUnavailable, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, passing) {
			return refuse(http.StatusServiceUnavailable, "unavailable", "the request was not carried out, or its outcome is not known; repeat it, with the same Idempotency-Key if it had one").with("Retry-After", "1")
		}
	}
	return nil
}

// fragment writes a JSON Pointer as a URI fragment (RFC 6901 §6).
func fragment(pointer string) string {
	return "#" + (&url.URL{Fragment: pointer}).EscapedFragment()
}

// faults gathers what is wrong with a request body.
type faults []fieldError

func (f *faults) add(pointer, detail string) {
	*f = append(*f, fieldError{detail, fragment(pointer)})
}

// check adds a fault unless ok.
func (f *faults) check(ok bool, pointer, detail string) {
	if !ok {
		f.add(pointer, detail)
	}
}

// err is nil where nothing was added.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	details := make([]string, len(f))
	for i, fault := range f {
		details[i] = strings.TrimPrefix(fault.Pointer, "#") + ": " + fault.Detail
	}
	p := refuse(http.StatusBadRequest, "invalid_request", strings.Join(details, "; "))
	p.Errors = f
	return p
}

// fail answers with the problem that an error means.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	writeProblem(w, r, a.explain(r, err))
}

// explain is the problem that an error means; one that is for the log only is
// logged.
func (a *api) explain(r *http.Request, err error) *problem {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return &problem{Type: "about:blank", Title: "The caller has gone", Status: statusClientGone, Reason: "client_gone"}
	}
	p := problemOf(err)
	if p == nil {
		a.opts.Log.ErrorContext(r.Context(), "request failed", "request_id", telemetry.RequestID(r.Context()), "route", r.Pattern, "error", err)
		p = internalProblem()
	}
	return p
}

// statusClientGone is for the log and the metrics alone: the caller has left, such
// as a program that ends while its feed waits, which is no fault of anybody's.
// No standard names a status; proxies write this one.
const statusClientGone = 499

func internalProblem() *problem {
	return refuse(http.StatusInternalServerError, "internal", "the request failed by a fault of ours; name the instance when you report it")
}

// writeProblem sends a problem; the request's id becomes its instance.
func writeProblem(w http.ResponseWriter, r *http.Request, p *problem) {
	if id := telemetry.RequestID(r.Context()); id != "" {
		p.Instance = "urn:pawl:request:" + id
	}
	h := w.Header()
	for name, values := range p.header {
		h[name] = values
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // The client is gone: nobody is left to tell.
}

// Panicked answers for a handler that panicked before it wrote anything, as
// telemetry.HTTP asks for.
func Panicked(w http.ResponseWriter, r *http.Request) { writeProblem(w, r, internalProblem()) }
