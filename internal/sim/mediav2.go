package sim

import (
	"encoding/json"
	"net/http"
)

// mediaV2 is the voice of the [MediaV2] dialect (2-contracts §2).
type mediaV2 struct{}

type envelope struct {
	Code      int    `json:"code"`
	Msg       string `json:"msg"`
	Data      any    `json:"data"`
	RequestID string `json:"request_id"`
}

type mediaTask struct {
	TaskID string `json:"taskId"`
	Model  string `json:"model"`
	State  string `json:"state"`
	// Cost is a decimal as a string or as a number: clients must take both.
	Cost         json.RawMessage   `json:"cost"`
	Settled      bool              `json:"settled"`
	ErrorCode    string            `json:"errorCode,omitempty"`
	ErrorMessage string            `json:"errorMessage,omitempty"`
	Result       map[string]string `json:"result,omitempty"`
	CreateTime   int64             `json:"createTime"`
	CompleteTime int64             `json:"completeTime,omitempty"`
}

func (mediaV2) accepted(r report, requestID string) (int, any) {
	return http.StatusOK, envelope{http.StatusOK, "success", map[string]string{"taskId": r.task}, requestID}
}

func (mediaV2) refused(status int, _, message, requestID string) any {
	return envelope{status, message, nil, requestID}
}

func (mediaV2) state(r report, requestID string) any {
	t := mediaTask{
		TaskID: r.task, Model: r.model, State: r.word, Settled: r.settled, CreateTime: r.made.UnixMilli(),
		Cost: json.RawMessage(r.cost.String()),
	}
	if !r.numeric {
		t.Cost = json.RawMessage(`"` + r.cost.String() + `"`)
	}
	if !r.ended.IsZero() {
		t.CompleteTime = r.ended.UnixMilli()
	}
	if r.result != "" {
		t.Result = map[string]string{"url": r.result}
	}
	if r.code != "" {
		t.ErrorCode, t.ErrorMessage = r.code, "the task did not succeed"
	}
	return envelope{http.StatusOK, "success", t, requestID}
}

func (v mediaV2) event(e event) any { return v.state(e.report, e.id) }
