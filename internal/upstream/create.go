package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
)

// CreateRequest is one create. Input is JSON text and is sent as it is.
type CreateRequest struct {
	// ClientRef is our own reference, by which the provider's lookup finds the
	// task: the operation's id.
	ClientRef string
	Model     string
	Input     []byte
	// CallbackURL is the operation's own; empty asks for no callbacks.
	CallbackURL string
	// IdempotencyKey is sent where the provider has a header for it.
	IdempotencyKey string
}

// CreateResult is what became of a create.
type CreateResult struct {
	Outcome ledger.CreateOutcome
	// Task is the provider's id of what it accepted.
	Task string
	// RequestID is the provider's id of the request, "" if it gave none.
	RequestID string
	// First is what the answer said of the task besides its id, where HasFirst
	// is set. Its State is zero if the word is unknown.
	First    ledger.Observation
	HasFirst bool
	// Failure, Word and Message describe a refusal, or a wish to wait: our code,
	// the provider's own word and its message, bounded and without links.
	Failure       pawl.FailureCode
	Word, Message string
	// Status is the HTTP status, or the envelope's code where that decided;
	// 0 without an answer or with a contradictory one.
	Status int
	// Reason says in a stable word why, where the status does not.
	Reason string
	// RetryAfter is how long the provider wants us to wait, 0 if it did not say.
	RetryAfter time.Duration
}

// The reasons of creates and reads beside those of observations and the causes
// of package egress.
const (
	// ReasonInput: the request cannot be made from this input.
	ReasonInput = "input"
	// ReasonContradiction: status and envelope of the answer disagree.
	ReasonContradiction = "contradiction"
	// ReasonStatus: the status says it.
	ReasonStatus = "status"
	// ReasonEgress: our own rules forbid the provider's address.
	ReasonEgress = "egress_refused"
	// ReasonCut: the answer began and did not come whole.
	ReasonCut = "cut_answer"
	// ReasonFailure: no answer, for a reason without a name.
	ReasonFailure = "failure"
)

// Create sends one create and classes what comes back. It sends at most one
// request: the transport cannot repeat it, and redirects are not followed.
func (u Upstream) Create(ctx context.Context, client *egress.Client, r CreateRequest) CreateResult {
	v := values{model: r.Model, input: r.Input, callbackURL: r.CallbackURL, clientRef: r.ClientRef}
	body, err := u.createBody(v)
	if err != nil {
		return invalid(err)
	}
	req, err := u.request(ctx, u.spec.Create.Call, v, body)
	if err != nil {
		return invalid(err)
	}
	if i := u.spec.Create.Idempotency; i != nil && r.IdempotencyKey != "" {
		req.Header.Set(i.Header, r.IdempotencyKey)
	}
	a, failure := u.send(ctx, client, req)
	if failure != nil {
		return CreateResult{Outcome: failure.outcome(), Reason: failure.reason}
	}
	return u.classify(a, time.Now())
}

func (f sendFailure) outcome() ledger.CreateOutcome {
	switch {
	case f.refused:
		return ledger.CreateUnauthorized
	case f.nothingWritten:
		return ledger.CreateNotWritten
	}
	return ledger.CreateUnknown
}

// invalid refuses what cannot be sent at all.
func invalid(err error) CreateResult {
	message := "the request cannot be made"
	if errors.Is(err, errInput) || errors.Is(err, errCollision) {
		message = err.Error()
	}
	return CreateResult{Outcome: ledger.CreateRefused, Failure: pawl.FailInvalidRequest, Reason: ReasonInput, Message: message}
}

// classify is 1-product B4 over an answer that arrived whole at now.
func (u Upstream) classify(a answer, now time.Time) CreateResult {
	f := u.spec.Create.Fields
	v := u.judge(a, f)
	r := CreateResult{
		Outcome:    outcomeOf(v.status),
		Status:     v.status,
		RequestID:  u.withoutKeys(f.requestID(v.doc, a.header)),
		Word:       v.word,
		Message:    v.message,
		RetryAfter: a.retryAfter(now),
	}
	switch {
	case v.status == 0:
		r.Reason = ReasonContradiction
	case r.Outcome == ledger.CreateAccepted:
		u.accept(&r, v, f, a.header)
	case r.Outcome == ledger.CreateRefused:
		r.Failure = u.refusal(v)
	case r.Outcome == ledger.CreateWait:
		r.Failure = u.waiting(v)
	}
	return r
}

// accept takes the task id; without one the task may well exist.
func (u Upstream) accept(r *CreateResult, v verdict, f Fields, h http.Header) {
	r.Task = v.doc.id(f.Task)
	if v.malformed || r.Task == "" {
		r.Outcome, r.Task, r.Reason = ledger.CreateUnknown, "", ReasonMissingTask
		if v.malformed {
			r.Reason = ReasonMalformedJSON
		}
		return
	}
	// What cannot be understood beside the id is left to the first read.
	if first, reason := u.observe(v.doc, f, h); reason == "" && first.Word != "" {
		r.First, r.HasFirst = first, true
	}
}

// outcomeOf is the table of 1-product B4. What it does not name is unknown: a
// wrong "no" would be a second task.
func outcomeOf(status int) ledger.CreateOutcome {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity, http.StatusUnavailableForLegalReasons:
		return ledger.CreateRefused
	case http.StatusUnauthorized, http.StatusForbidden:
		return ledger.CreateUnauthorized
	case http.StatusPaymentRequired, http.StatusTooManyRequests:
		return ledger.CreateWait
	}
	switch {
	case success(status):
		return ledger.CreateAccepted
	case status >= 300 && status <= 399:
		return ledger.CreateRefused
	}
	return ledger.CreateUnknown
}

// refusal is the code of a final refusal: the provider's word if it is one
// that we know, else what the status says.
func (u Upstream) refusal(v verdict) pawl.FailureCode {
	if code := u.failure(v.word); code != pawl.FailUpstream {
		return code
	}
	switch {
	case v.status == http.StatusUnavailableForLegalReasons:
		return pawl.FailContentRejected
	case v.status >= 300 && v.status <= 399:
		return pawl.FailUpstream
	}
	return pawl.FailInvalidRequest
}

// waiting is the code of a create that is to be tried again later, should that
// have been the last one: the provider's word if it is one that we know, else
// what the status says. Without funds (402) an upstream is of no use to us.
func (u Upstream) waiting(v verdict) pawl.FailureCode {
	if code := u.failure(v.word); code != pawl.FailUpstream {
		return code
	}
	if v.status == http.StatusTooManyRequests {
		return pawl.FailRateLimited
	}
	return pawl.FailUnavailable
}
