package dialect

import (
	"encoding/json"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// prefixTask begins the task ids of body-timestamp.
const prefixTask = "task"

// versionedEvent is the callback of body-timestamp (2-contracts §3).
type versionedEvent struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	CreatedAt pawl.Time     `json:"created_at"`
	Data      versionedTask `json:"data"`
}

// versionedTask is a task as reads and callbacks show it. Its version is the
// operation's: every change of the status raises it, and so do changes that the
// dialect has no word for.
type versionedTask struct {
	TaskID   string          `json:"task_id"`
	Status   string          `json:"status"`
	Version  int64           `json:"version"`
	Progress *float64        `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// accepted is the answer to a create.
type accepted struct {
	TaskID string `json:"task_id"`
	Status string `json:"status"`
}

// versionedState is the dialect's word for a state: five for our seven (7-rules
// R43).
func versionedState(s pawl.State) string {
	switch s {
	case pawl.Pending, pawl.Unconfirmed:
		return "pending"
	case pawl.Running:
		return "running"
	case pawl.Succeeded:
		return "succeeded"
	case pawl.Canceled:
		return "canceled"
	default:
		return "failed"
	}
}

func versionedTaskOf(v ledger.OperationJSON) versionedTask {
	return versionedTask{
		TaskID: prefixTask + "_" + suffix(v), Status: versionedState(v.State), Version: v.Version,
		Progress: v.Progress, Result: v.Result,
	}
}

// versionedCallback uses the dialect's two types alone, since a receiver knows
// no third one: completed for every terminal status (7-rules R45), progress for
// everything before the end, where a move to running is news to show and its
// version keeps the order.
func versionedCallback(e ledger.Event, v ledger.OperationJSON) versionedEvent {
	out := versionedEvent{ID: e.ID.Text(pawl.PrefixEvent), Type: "ai.task.progress", CreatedAt: e.At, Data: versionedTaskOf(v)}
	if v.State.Terminal() {
		out.Type = "ai.task.completed"
	}
	return out
}
