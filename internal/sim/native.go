package sim

import "net/http"

// native is the voice of the [Native] dialect.
type native struct{}

type nativeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type nativeTask struct {
	ID       string            `json:"id,omitempty"`
	Type     string            `json:"type,omitempty"`
	Task     string            `json:"task"`
	State    string            `json:"state"`
	Progress *float64          `json:"progress,omitempty"`
	Cost     string            `json:"cost"`
	Currency string            `json:"currency"`
	Settled  bool              `json:"settled"`
	Result   map[string]string `json:"result,omitempty"`
	Error    *nativeError      `json:"error,omitempty"`
}

func (native) accepted(r report, requestID string) (int, any) {
	return http.StatusAccepted, map[string]string{"task": r.task, "state": "queued", "request_id": requestID}
}

func (native) refused(_ int, code, message, _ string) any {
	return map[string]nativeError{"error": {code, message}}
}

func (native) state(r report, _ string) any {
	t := nativeTask{
		Task: r.task, State: r.word, Progress: fraction(r.percent),
		Cost: r.cost.String(), Currency: r.currency, Settled: r.settled,
	}
	if r.result != "" {
		t.Result = map[string]string{"url": r.result}
	}
	if r.code != "" {
		t.Error = &nativeError{r.code, "the task did not succeed"}
	}
	return t
}

func (v native) event(e event) any {
	t := v.state(e.report, "").(nativeTask)
	t.ID, t.Type = e.id, "task.updated"
	switch {
	case e.odd:
		t.Type = "task.melted"
	case e.progress:
		t.Type = "task.progress"
	}
	return t
}
