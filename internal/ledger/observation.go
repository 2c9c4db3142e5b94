package ledger

import "github.com/pawlhq/pawl"

// Observation is what a provider says of a task, whether it came by a callback
// or as the answer to a read: both go through the same rules (7-rules §1).
type Observation struct {
	// Task is the provider's task id that the observation names.
	Task string
	// Word is the provider's own word for the state; State is what it maps to,
	// zero where the observation carries no state.
	Word  string
	State pawl.State
	// Version is the sender's version of the task where HasVersion is set.
	Version    int64
	HasVersion bool
	// ProgressOnly marks an event that only shows progress: it never moves a
	// state, whatever its status says (7-rules R12).
	ProgressOnly bool
	// Progress is in hundredths of a percent, -1 where none was reported.
	Progress int32
	// Cost is the cumulative cost where HasCost is set; CostText is the number
	// as received. Currency is empty where the provider does not name one.
	Cost     pawl.Amount
	HasCost  bool
	CostText string
	Currency string
	// Settled says whether Cost is the final charge.
	Settled Settled
	// ErrorCode, ErrorWord and ErrorMessage describe a failure: one of the nine
	// codes, the provider's own word and its (bounded, redacted) message.
	ErrorCode    pawl.FailureCode
	ErrorWord    string
	ErrorMessage string
	// Result is the raw JSON of the result; empty for none.
	Result string
	// LinksExpire is when the links in it end, by the provider's own word; zero for
	// none.
	LinksExpire pawl.Time
	// RequestID is the provider's id of the request, for its support.
	RequestID string
}

// Settled says whether a reported cost is final.
type Settled uint8

// The values of [Settled].
const (
	// SettledUnsaid: the provider has no such word; its terminal observation
	// is final (1-product F2).
	SettledUnsaid Settled = iota
	// SettledNo: an estimate; the reservation stays and reading goes on.
	SettledNo
	// SettledYes: the final charge.
	SettledYes
)
