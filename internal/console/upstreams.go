package console

import "github.com/pawlhq/pawl"

// pauseItem says what stands still at an upstream, and why.
type pauseItem struct {
	Work   string     `json:"work"`
	Until  *pawl.Time `json:"until"`
	Reason string     `json:"reason"`
}

// upstreamItem is an upstream as the API shows it.
type upstreamItem struct {
	Name       string      `json:"name"`
	Removed    bool        `json:"removed"`
	Adapter    string      `json:"adapter"`
	Owner      string      `json:"owner"`
	Currency   string      `json:"currency"`
	Deadline   string      `json:"deadline"`
	Callbacks  bool        `json:"callbacks"`
	Reads      bool        `json:"reads"`
	Cancels    bool        `json:"cancels"`
	Idempotent bool        `json:"idempotent"`
	Paused     []pauseItem `json:"paused"`
}
