package client

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/pawlhq/pawl"
)

// Submission is what an operation is made of. Upstream, Model and Input are
// needed.
type Submission struct {
	// Upstream and Model name what does the work.
	Upstream string
	Model    string
	// Input is any value that is written as a JSON object; a [json.RawMessage] is
	// sent as its bytes.
	Input any
	// CallbackURL gets the operation's events, beside the tenant's endpoints. They
	// are signed with the API key's webhook secret.
	CallbackURL string
	// Metadata is any value that is written as a JSON object; operations can be
	// found by its members.
	Metadata any
	// CorrelationID is the application's own id: of one, only one operation is
	// unfinished at a time.
	CorrelationID string
	// Deadline is when the operation expires; the upstream's own if zero.
	Deadline time.Time
	// ExpectedCost is reserved; the model's price if nil.
	ExpectedCost *Money
	// Account pays; the tenant's own if empty.
	Account string
	// Hold keeps the result back until it is released.
	Hold bool
	// Owner says who answers for it.
	Owner string
	// IdempotencyKey stands for this operation; drawn if empty. Give one that was
	// written down (see [NewKey]) to be able to go on after a crash.
	IdempotencyKey string
}

func (s Submission) body() (any, error) {
	input, err := json.Marshal(s.Input)
	if err != nil || s.Input == nil {
		return nil, errors.New("client: the input cannot be written as JSON, or is missing")
	}
	var metadata json.RawMessage
	if s.Metadata != nil {
		if metadata, err = json.Marshal(s.Metadata); err != nil {
			return nil, errors.New("client: the metadata cannot be written as JSON")
		}
	}
	hold := ""
	if s.Hold {
		hold = "hold"
	}
	return struct {
		Upstream      string          `json:"upstream"`
		Model         string          `json:"model"`
		Input         json.RawMessage `json:"input"`
		CallbackURL   string          `json:"callback_url,omitempty"`
		Metadata      json.RawMessage `json:"metadata,omitempty"`
		CorrelationID string          `json:"correlation_id,omitempty"`
		Deadline      *time.Time      `json:"deadline,omitempty"`
		ExpectedCost  *Money          `json:"expected_cost,omitempty"`
		Account       string          `json:"account,omitempty"`
		Release       string          `json:"release,omitempty"`
		Owner         string          `json:"owner,omitempty"`
	}{s.Upstream, s.Model, input, s.CallbackURL, metadata, s.CorrelationID, moment(s.Deadline), s.ExpectedCost, s.Account, hold, s.Owner}, nil
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Operation is one intended piece of work as it is now. What is not known is
// zero, empty or nil.
type Operation struct {
	ID string `json:"id"`
	// Version rises with every change that is told in an event.
	Version  int64      `json:"version"`
	State    pawl.State `json:"state"`
	Upstream string     `json:"upstream"`
	Model    string     `json:"model"`
	// TaskID and UpstreamState are the provider's id and word.
	TaskID            string `json:"task_id"`
	UpstreamState     string `json:"upstream_state"`
	UpstreamRequestID string `json:"upstream_request_id"`
	Adapter           string `json:"adapter"`
	// Progress is a share of 1, for display only; nil where it is not known.
	Progress *float64 `json:"progress"`
	// Input is shown to keys with the scope payloads, which is audited.
	Input         json.RawMessage `json:"input"`
	Metadata      json.RawMessage `json:"metadata"`
	CorrelationID string          `json:"correlation_id"`
	Owner         string          `json:"owner"`
	CallbackURL   string          `json:"callback_url"`
	Cost          *Cost           `json:"cost"`
	// Metered says that it has a price.
	Metered bool     `json:"metered"`
	Error   *Failure `json:"error"`
	// Result is nil where there is none, and while it is held.
	Result    json.RawMessage `json:"result"`
	Artifacts []Artifact      `json:"artifacts"`
	// Release is "hold" while the result is kept back, "released" once it was let
	// out.
	Release     string         `json:"release"`
	Attempts    int            `json:"attempts"`
	Cancel      *CancelRequest `json:"cancel"`
	RetryOf     string         `json:"retry_of"`
	CreatedAt   pawl.Time      `json:"created_at"`
	SubmittedAt pawl.Time      `json:"submitted_at"`
	UpdatedAt   pawl.Time      `json:"updated_at"`
	Deadline    pawl.Time      `json:"deadline"`
	FinishedAt  pawl.Time      `json:"finished_at"`
	NextCheckAt pawl.Time      `json:"next_check_at"`
	// ReviewID is what a person must decide about it.
	ReviewID string `json:"review_id"`
	// Correction is in the event of a correction alone.
	Correction json.RawMessage `json:"correction"`
}

// UnmarshalJSON reads an operation as the API writes it. What is null there is nil
// here: package json would keep the word.
func (o *Operation) UnmarshalJSON(text []byte) error {
	type plain Operation
	if err := json.Unmarshal(text, (*plain)(o)); err != nil {
		return err
	}
	for _, raw := range [...]*json.RawMessage{&o.Input, &o.Metadata, &o.Result, &o.Correction} {
		if string(*raw) == "null" {
			*raw = nil
		}
	}
	return nil
}

// Failure is why an operation failed. A [Worker]'s function returns one as its
// error to say so.
type Failure struct {
	// Code is one of nine stable words.
	Code    pawl.FailureCode `json:"code"`
	Message string           `json:"message,omitempty"`
	// UpstreamCode is the provider's own word.
	UpstreamCode string `json:"upstream_code,omitempty"`
	// Retryable says, of a worker's, that another one may try.
	Retryable bool `json:"-"`
}

// Error is the code with the message.
func (f *Failure) Error() string {
	if f.Message == "" {
		return string(f.Code)
	}
	return string(f.Code) + ": " + f.Message
}

// CancelRequest is a request to cancel an operation.
type CancelRequest struct {
	RequestedAt pawl.Time `json:"requested_at"`
	// Confirmed says that the provider has stopped.
	Confirmed bool `json:"confirmed"`
}

// TimelineItem is one thing that happened to an operation.
type TimelineItem struct {
	At pawl.Time `json:"at"`
	// Kind is the history's own word, "money" for a journal entry or "attempt" for
	// one try of a delivery.
	Kind       string     `json:"kind"`
	Verdict    string     `json:"verdict"`
	Reason     string     `json:"reason"`
	EventID    string     `json:"event_id"`
	Version    int64      `json:"version"`
	State      pawl.State `json:"state"`
	Actor      string     `json:"actor"`
	Detail     string     `json:"detail"`
	DeliveryID string     `json:"delivery_id"`
	EndpointID string     `json:"endpoint_id"`
	Attempt    int        `json:"attempt"`
	Status     int        `json:"status"`
	Amount     *Money     `json:"amount"`
	From       string     `json:"from"`
	To         string     `json:"to"`
}
