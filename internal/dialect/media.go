package dialect

import (
	"encoding/json"
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// prefixJob begins the task ids of media-v2.
const prefixJob = "job"

// envelope is around every answer and callback of media-v2 (2-contracts §2).
type envelope struct {
	Code      int    `json:"code"`
	Msg       string `json:"msg"`
	Data      any    `json:"data"`
	RequestID string `json:"request_id"`
}

func success(data any, requestID string) envelope {
	return envelope{http.StatusOK, "success", data, requestID}
}

// mediaTask is a task as reads and callbacks show it. What there is none of is
// null.
type mediaTask struct {
	TaskID string `json:"taskId"`
	Model  string `json:"model"`
	State  string `json:"state"`
	// Cost is the reserved estimate until it is settled, then the charge.
	Cost         string            `json:"cost"`
	Settled      bool              `json:"settled"`
	ErrorCode    *pawl.FailureCode `json:"errorCode"`
	ErrorMessage *string           `json:"errorMessage"`
	Result       json.RawMessage   `json:"result"`
	// CreateTime and CompleteTime are Unix milliseconds.
	CreateTime   int64  `json:"createTime"`
	CompleteTime *int64 `json:"completeTime"`
}

// mediaState is the dialect's word for a state: five for our seven (7-rules R43).
func mediaState(s pawl.State) string {
	switch s {
	case pawl.Pending, pawl.Unconfirmed:
		return "queued"
	case pawl.Running:
		return "processing"
	case pawl.Succeeded:
		return "succeeded"
	case pawl.Expired:
		return "expired"
	default:
		return "failed"
	}
}

func mediaTaskOf(v ledger.OperationJSON) mediaTask {
	t := mediaTask{
		TaskID: prefixJob + "_" + suffix(v), Model: asked(v), State: mediaState(v.State), Result: v.Result,
		// Unmetered and no figure of the provider's: nothing is charged.
		Cost: pawl.Amount(0).String(), Settled: v.State.Terminal(), CreateTime: millis(v.CreatedAt),
	}
	if v.Cost != nil {
		t.Cost, t.Settled = v.Cost.Amount, v.Cost.Settled
	}
	if v.FinishedAt != nil {
		at := millis(*v.FinishedAt)
		t.CompleteTime = &at
	}
	switch {
	case v.State == pawl.Canceled:
		code, message := pawl.FailGeneration, "canceled" // No sixth word, no tenth code.
		t.ErrorCode, t.ErrorMessage = &code, &message
	case v.Error != nil:
		t.ErrorCode = &v.Error.Code
		if v.Error.Message != "" {
			t.ErrorMessage = &v.Error.Message
		}
	}
	return t
}

// asked is the model by the name that its caller used.
func asked(v ledger.OperationJSON) string {
	if v.AskedModel != "" {
		return v.AskedModel
	}
	return v.Model
}

func millis(t pawl.Time) int64 { return int64(t) / 1000 }

// mediaCallback has the request id of its event, so that it is the same on every
// redelivery.
func mediaCallback(e ledger.Event, v ledger.OperationJSON) envelope {
	return success(mediaTaskOf(v), "whd_"+e.ID.Suffix())
}
