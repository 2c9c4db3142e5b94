package ledger

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawlhq/pawl"
)

// OperationJSON is an operation as the API and outbound events show it
// (2-contracts §1). What is not known is null; only the input is left out where
// the caller may not see it.
type OperationJSON struct {
	ID                string            `json:"id"`
	Version           int64             `json:"version"`
	State             pawl.State        `json:"state"`
	Upstream          string            `json:"upstream"`
	Model             string            `json:"model"`
	TaskID            *string           `json:"task_id"`
	UpstreamState     *string           `json:"upstream_state"`
	UpstreamRequestID *string           `json:"upstream_request_id"`
	Adapter           *string           `json:"adapter"`
	Progress          *float64          `json:"progress"`
	Input             json.RawMessage   `json:"input,omitempty"`
	Metadata          json.RawMessage   `json:"metadata"`
	CorrelationID     *string           `json:"correlation_id"`
	Owner             *string           `json:"owner"`
	CallbackURL       *string           `json:"callback_url"`
	Cost              *CostJSON         `json:"cost"`
	Metered           bool              `json:"metered"`
	Error             *OperationErrJSON `json:"error"`
	Result            json.RawMessage   `json:"result"`
	Artifacts         []ArtifactJSON    `json:"artifacts"`
	// Release is "hold" while the result is withheld, "released" once it was let
	// out, and left out where it never was held (1-product G4).
	Release     string      `json:"release,omitempty"`
	Attempts    int32       `json:"attempts"`
	Cancel      *CancelJSON `json:"cancel"`
	RetryOf     *string     `json:"retry_of"`
	CreatedAt   pawl.Time   `json:"created_at"`
	SubmittedAt *pawl.Time  `json:"submitted_at"`
	UpdatedAt   pawl.Time   `json:"updated_at"`
	Deadline    *pawl.Time  `json:"deadline"`
	FinishedAt  *pawl.Time  `json:"finished_at"`
	NextCheckAt *pawl.Time  `json:"next_check_at"`
	ReviewID    *string     `json:"review_id"`
	// ErasedAt is told of what was erased alone.
	ErasedAt *pawl.Time `json:"erased_at,omitempty" format:"date-time" doc:"When its content was erased; left out where it was not."`
	// Tenant is told by the API alone: an event goes to its own tenant.
	Tenant string `json:"tenant,omitempty" doc:"Whose it is."`
	// AskedModel is told of what came through a front alone.
	AskedModel string `json:"asked_model,omitempty" doc:"The name that upstream and model were asked for by, where that came through a front."`
	// Correction is told by the event of a correction alone.
	Correction *CorrectionJSON `json:"correction,omitempty"`
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
		Model: op.Model, AskedModel: op.AskedModel, TaskID: known(op.Task), UpstreamState: known(op.UpstreamState), UpstreamRequestID: known(op.UpstreamRequestID),
		Adapter: known(op.Adapter), CorrelationID: known(op.CorrelationID), Owner: known(op.Owner), CallbackURL: known(op.CallbackURL),
		Metered: op.Money != Unmetered, Artifacts: []ArtifactJSON{}, Release: op.release(), Attempts: op.FormerCreates + op.Creates,
		RetryOf: known(op.RetryOf.Text(pawl.PrefixOperation)), CreatedAt: op.CreatedAt, UpdatedAt: op.UpdatedAt,
		SubmittedAt: set(op.SubmittedAt), Deadline: set(op.Deadline), FinishedAt: set(op.FinishedAt),
		ReviewID: known(op.Review.Text(pawl.PrefixReview)), Cost: op.cost(), ErasedAt: set(op.ErasedAt),
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

func known(word string) *string {
	if word == "" {
		return nil
	}
	return &word
}

func set(t pawl.Time) *pawl.Time {
	if !t.IsSet() {
		return nil
	}
	return &t
}

// snapshot is the operation as of now for an outbound event, without what is
// kept apart (metadata, result) and without what only concerns ourselves.
func (d *Draft) snapshot(op Operation, c *CorrectionJSON) string {
	v := op.View()
	v.Artifacts = op.ShowArtifacts(d.artifacts(op))
	v.Correction = c
	v.NextCheckAt = nil
	return encode(v)
}

// EventJSON is an outbound event as it is sent (2-contracts §1).
type EventJSON struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Timestamp pawl.Time     `json:"timestamp"`
	Sequence  int64         `json:"sequence,omitempty"`
	Test      bool          `json:"test,omitempty" doc:"Somebody tries the endpoint: nothing has happened."`
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
	return []byte(encode(EventJSON{e.ID.Text(pawl.PrefixEvent), e.Type, e.At, sequence, false, v})), nil
}

// MaxOutbound bounds an outbound event as it is sent, in bytes (2-contracts §1,
// limits).
const MaxOutbound = 256 << 10

// Fitting renders an event of an operation with its result or, where that would
// be too large to be sent, with a link in its place (2-contracts §1, limits); used
// says which. What is too large even so is the caller's to refuse.
func (e Event) Fitting(result string, render func(result string) ([]byte, error)) (body []byte, used string, err error) {
	body, err = render(result)
	if err != nil || len(body) <= MaxOutbound {
		return body, result, err
	}
	used = e.Link()
	body, err = render(used)
	return body, used, err
}

// Link stands in place of what does not fit into an event: it says where the whole
// is. The path is that of the API, so that every attempt says the same wherever
// the node listens.
func (e Event) Link() string {
	if e.Direction == Inbound {
		return `{"href":"/v1/events/` + e.ID.Text(pawl.PrefixEvent) + `"}`
	}
	return `{"href":"/v1/operations/` + e.Operation.Text(pawl.PrefixOperation) + `"}`
}

// PublicID is the id that receivers know an event by: its own, or that which the
// tenant that published it gave it (7-rules R49). What a sender calls an inbound
// event is not unique among sources.
func (e Event) PublicID() string {
	if e.Direction != Inbound && e.ExternalID != "" {
		return e.ExternalID
	}
	return e.ID.Text(pawl.PrefixEvent)
}

// RenderOwn is [Render] for an event that is about no operation, of whose data
// nothing is changed but white space.
func RenderOwn(e Event, sequence int64, data string) []byte {
	return []byte(encode(struct {
		ID        string          `json:"id"`
		Type      string          `json:"type"`
		Timestamp pawl.Time       `json:"timestamp"`
		Sequence  int64           `json:"sequence,omitempty"`
		Test      bool            `json:"test,omitempty"`
		Data      json.RawMessage `json:"data"`
	}{e.PublicID(), e.Type, e.At, sequence, e.Test(), json.RawMessage(data)}))
}

// Data is an outbound event's operation as of its version, with its payloads.
func (e Event) Data(metadata, result string) (OperationJSON, error) {
	var v OperationJSON
	if err := json.Unmarshal([]byte(e.Snapshot), &v); err != nil {
		return v, err
	}
	v.Metadata, v.Result = Raw(metadata), Raw(result)
	return v, nil
}

// Raw is a payload as a member of a JSON document; nil, which reads null,
// where there is none.
func Raw(payload string) json.RawMessage {
	if payload == "" {
		return nil
	}
	return json.RawMessage(payload)
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
