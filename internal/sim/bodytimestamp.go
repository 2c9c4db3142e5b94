package sim

import (
	"net/http"
	"time"
)

// bodyTimestamp is the voice of the [BodyTimestamp] dialect (2-contracts §3).
type bodyTimestamp struct{}

type versionedTask struct {
	TaskID   string            `json:"task_id"`
	Status   string            `json:"status"`
	Version  int               `json:"version"`
	Progress *float64          `json:"progress,omitempty"`
	Result   map[string]string `json:"result,omitempty"`
}

type versionedEvent struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	CreatedAt string        `json:"created_at"`
	Data      versionedTask `json:"data"`
}

func (bodyTimestamp) accepted(r report, _ string) (int, any) {
	return http.StatusAccepted, map[string]string{"task_id": r.task, "status": "pending"}
}

func (bodyTimestamp) refused(_ int, _, message, _ string) any {
	return map[string]string{"error": message}
}

func (bodyTimestamp) state(r report, _ string) any {
	t := versionedTask{TaskID: r.task, Status: r.word, Version: r.version}
	if r.result != "" {
		t.Result = map[string]string{"url": r.result}
	}
	return t
}

func (v bodyTimestamp) event(e event) any {
	out := versionedEvent{
		ID: e.id, Type: "ai.task.updated", CreatedAt: e.at.UTC().Format(time.RFC3339),
		Data: v.state(e.report, "").(versionedTask),
	}
	switch {
	case e.progress:
		out.Type = "ai.task.progress"
		out.Data.Progress = fraction(e.percent)
	case e.state.Terminal():
		out.Type = "ai.task.completed" // for every terminal status (7-rules R45)
	}
	return out
}
