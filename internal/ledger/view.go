package ledger

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawlhq/pawl"
)

// OperationJSON is an operation as the API and outbound events show it
// (2-contracts §1).
type OperationJSON struct {
	ID                string            `json:"id"`
	Version           int64             `json:"version"`
	State             pawl.State        `json:"state"`
	Upstream          string            `json:"upstream"`
	Model             string            `json:"model"`
	TaskID            string            `json:"task_id,omitempty"`
	UpstreamState     string            `json:"upstream_state,omitempty"`
	UpstreamRequestID string            `json:"upstream_request_id,omitempty"`
	Adapter           string            `json:"adapter,omitempty"`
	Progress          *float64          `json:"progress,omitempty"`
	Input             json.RawMessage   `json:"input,omitempty"`
	Metadata          json.RawMessage   `json:"metadata,omitempty"`
	CorrelationID     string            `json:"correlation_id,omitempty"`
	Owner             string            `json:"owner,omitempty"`
	CallbackURL       string            `json:"callback_url,omitempty"`
	Cost              *CostJSON         `json:"cost,omitempty"`
	Metered           bool              `json:"metered"`
	Error             *OperationErrJSON `json:"error,omitempty"`
	Result            json.RawMessage   `json:"result,omitempty"`
	Artifacts         []json.RawMessage `json:"artifacts"`
	Attempts          int32             `json:"attempts"`
	Cancel            *CancelJSON       `json:"cancel,omitempty"`
	RetryOf           string            `json:"retry_of,omitempty"`
	CreatedAt         pawl.Time         `json:"created_at"`
	SubmittedAt       *pawl.Time        `json:"submitted_at,omitempty"`
	UpdatedAt         pawl.Time         `json:"updated_at"`
	Deadline          *pawl.Time        `json:"deadline,omitempty"`
	FinishedAt        *pawl.Time        `json:"finished_at,omitempty"`
	NextCheckAt       *pawl.Time        `json:"next_check_at,omitempty"`
	ReviewID          string            `json:"review_id,omitempty"`
}

// CostJSON is what an operation costs: the reservation while it is open, then
// the charge; for an unmetered operation the provider's figure.
type CostJSON struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Settled  bool   `json:"settled"`
}

// OperationErrJSON is the failure of an operation.
type OperationErrJSON struct {
	Code         pawl.FailureCode `json:"code"`
	Message      string           `json:"message,omitempty"`
	UpstreamCode string           `json:"upstream_code,omitempty"`
}

// CancelJSON is a request to cancel.
type CancelJSON struct {
	RequestedAt pawl.Time `json:"requested_at"`
	Confirmed   bool      `json:"confirmed"`
}

// View is an operation without its payloads.
func (op Operation) View() OperationJSON {
	v := OperationJSON{
		ID: op.ID.Text(pawl.PrefixOperation), Version: op.Version, State: op.State, Upstream: op.Upstream,
		Model: op.Model, TaskID: op.Task, UpstreamState: op.UpstreamState, UpstreamRequestID: op.UpstreamRequestID,
		Adapter: op.Adapter, CorrelationID: op.CorrelationID, Owner: op.Owner, CallbackURL: op.CallbackURL,
		Metered: op.Money != Unmetered, Artifacts: []json.RawMessage{}, Attempts: op.Creates,
		RetryOf: op.RetryOf.Text(pawl.PrefixOperation), CreatedAt: op.CreatedAt, UpdatedAt: op.UpdatedAt,
		SubmittedAt: set(op.SubmittedAt), Deadline: set(op.Deadline), FinishedAt: set(op.FinishedAt),
		ReviewID: op.Review.Text(pawl.PrefixReview), Cost: op.cost(),
	}
	if op.Progress >= 0 {
		p := float64(op.Progress) / 10000
		v.Progress = &p
	}
	if op.DueAt != pawl.Never && op.Leased == NoAction {
		v.NextCheckAt = set(op.DueAt)
	}
	if op.ErrorCode != "" {
		v.Error = &OperationErrJSON{op.ErrorCode, op.ErrorMessage, op.ErrorWord}
	}
	if op.CancelRequestedAt.IsSet() {
		v.Cancel = &CancelJSON{op.CancelRequestedAt, op.CancelConfirmed}
	}
	return v
}

func (op Operation) cost() *CostJSON {
	amount := op.Reserved
	switch {
	case op.Money == Unmetered && op.CostText == "":
		return nil
	case op.Money == Unmetered:
		amount = op.Cost
	case op.Money == Ended:
		amount = op.Charged
	}
	return &CostJSON{amount.String(), op.Currency, op.Settled}
}

func set(t pawl.Time) *pawl.Time {
	if !t.IsSet() {
		return nil
	}
	return &t
}

// snapshot is the operation as of now for an outbound event, without what is
// kept apart (metadata, result) and without what only concerns ourselves.
func snapshot(op Operation) string {
	v := op.View()
	v.NextCheckAt = nil
	return encode(v)
}

// EventJSON is an outbound event as it is sent (2-contracts §1).
type EventJSON struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Timestamp pawl.Time     `json:"timestamp"`
	Sequence  int64         `json:"sequence,omitempty"`
	Data      OperationJSON `json:"data"`
}

// Render is the body of an outbound event of an operation for one delivery:
// the same event, sequence and payloads always give the same bytes. It fails
// only on a damaged snapshot.
func Render(e Event, sequence int64, metadata, result string) ([]byte, error) {
	v, err := e.Data(metadata, result)
	if err != nil {
		return nil, err
	}
	return []byte(encode(EventJSON{e.ID.Text(pawl.PrefixEvent), e.Type, e.At, sequence, v})), nil
}

// Data is an outbound event's operation as of its version, with its payloads.
func (e Event) Data(metadata, result string) (OperationJSON, error) {
	var v OperationJSON
	if err := json.Unmarshal([]byte(e.Snapshot), &v); err != nil {
		return v, err
	}
	if metadata != "" {
		v.Metadata = json.RawMessage(metadata)
	}
	if result != "" {
		v.Result = json.RawMessage(result)
	}
	return v, nil
}

// encode writes JSON without escaping what only HTML needs escaped.
func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
