package outbox

import (
	"bytes"
	"encoding/json"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// The schemes whose endpoints get another body than the native one.
const (
	schemeStandard      = "standard-webhooks"
	schemeMediaV2       = "media-v2"
	schemeBodyTimestamp = "body-timestamp"
)

// mediaEnvelope is the callback of 2-contracts §2. Its request id is that of
// the event, so that it is the same on every redelivery.
type mediaEnvelope struct {
	Code      int       `json:"code"`
	Msg       string    `json:"msg"`
	RequestID string    `json:"request_id"`
	Data      mediaTask `json:"data"`
}

type mediaTask struct {
	TaskID       string           `json:"taskId"`
	Model        string           `json:"model"`
	State        string           `json:"state"`
	Cost         string           `json:"cost"`
	Settled      bool             `json:"settled"`
	ErrorCode    pawl.FailureCode `json:"errorCode,omitempty"`
	ErrorMessage string           `json:"errorMessage,omitempty"`
	Result       json.RawMessage  `json:"result,omitempty"`
	// CreateTime and CompleteTime are Unix milliseconds.
	CreateTime   int64 `json:"createTime"`
	CompleteTime int64 `json:"completeTime,omitempty"`
}

// mediaStates are our seven states in the dialect's five words (7-rules R43).
var mediaStates = map[pawl.State]string{
	pawl.Pending: "queued", pawl.Unconfirmed: "queued", pawl.Running: "processing", pawl.Succeeded: "succeeded",
	pawl.Failed: "failed", pawl.Canceled: "failed", pawl.Expired: "expired",
}

func renderMediaV2(e ledger.Event, metadata, result string) ([]byte, error) {
	v, err := e.Data(metadata, result)
	if err != nil {
		return nil, err
	}
	t := mediaTask{
		TaskID: "job_" + e.Operation.Suffix(), Model: v.Model, State: mediaStates[v.State], Result: v.Result,
		// Unmetered and no figure of the provider's: nothing is charged.
		Cost: pawl.Amount(0).String(), Settled: v.State.Terminal(), CreateTime: millis(v.CreatedAt),
	}
	if v.Cost != nil {
		t.Cost, t.Settled = v.Cost.Amount, v.Cost.Settled
	}
	if v.FinishedAt != nil {
		t.CompleteTime = millis(*v.FinishedAt)
	}
	switch {
	case v.State == pawl.Canceled:
		t.ErrorCode, t.ErrorMessage = pawl.FailGeneration, "canceled"
	case v.Error != nil:
		t.ErrorCode, t.ErrorMessage = v.Error.Code, v.Error.Message
	}
	return encode(mediaEnvelope{Code: 200, Msg: "success", RequestID: "whd_" + e.ID.Suffix(), Data: t})
}

func millis(t pawl.Time) int64 { return int64(t) / 1000 }

// versionedEvent is the event of 2-contracts §3.
type versionedEvent struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	CreatedAt pawl.Time     `json:"created_at"`
	Data      versionedTask `json:"data"`
}

type versionedTask struct {
	TaskID   string          `json:"task_id"`
	Status   string          `json:"status"`
	Version  int64           `json:"version"`
	Progress *float64        `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// versionedStates are our seven states in the dialect's five (7-rules R43).
var versionedStates = map[pawl.State]string{
	pawl.Pending: "pending", pawl.Unconfirmed: "pending", pawl.Running: "running", pawl.Succeeded: "succeeded",
	pawl.Failed: "failed", pawl.Canceled: "canceled", pawl.Expired: "failed",
}

// renderBodyTimestamp uses the dialect's two types alone, since a receiver
// knows no third one: completed for every terminal status (7-rules R45),
// progress for everything before the end, where a move to running is news to
// show and its version keeps the order.
func renderBodyTimestamp(e ledger.Event, metadata, result string) ([]byte, error) {
	v, err := e.Data(metadata, result)
	if err != nil {
		return nil, err
	}
	out := versionedEvent{
		ID: e.ID.Text(pawl.PrefixEvent), Type: "ai.task.progress", CreatedAt: e.At,
		Data: versionedTask{
			TaskID: "task_" + e.Operation.Suffix(), Status: versionedStates[v.State], Version: v.Version,
			Progress: v.Progress, Result: v.Result,
		},
	}
	if v.State.Terminal() {
		out.Type = "ai.task.completed"
	}
	return encode(out)
}

// encode writes JSON on one line without escaping what only HTML needs escaped.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
