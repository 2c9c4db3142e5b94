package console

import (
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// reviewItem is a review as the API shows it.
type reviewItem struct {
	ID          string          `json:"id"`
	Tenant      string          `json:"tenant"`
	Reason      string          `json:"reason"`
	Meaning     string          `json:"meaning"`
	First       string          `json:"first"`
	Choices     []pawl.Choice   `json:"choices"`
	DueAt       *pawl.Time      `json:"due_at"`
	Overdue     bool            `json:"overdue"`
	Notes       []ledger.Remark `json:"notes"`
	OperationID string          `json:"operation_id"`
	EventID     string          `json:"event_id"`
	EndpointID  string          `json:"endpoint_id"`
	DeliveryID  string          `json:"delivery_id"`
	Source      string          `json:"source"`
	Owner       string          `json:"owner"`
	Detail      string          `json:"detail"`
	Reported    *reported       `json:"reported"`
	OpenedAt    pawl.Time       `json:"opened_at"`
	ClosedAt    *pawl.Time      `json:"closed_at"`
	Decision    string          `json:"decision"`
	Note        string          `json:"note"`
	DecidedBy   string          `json:"decided_by"`
}

// reported is an end that a provider named after another one was recorded.
type reported struct {
	State string     `json:"state"`
	Word  string     `json:"upstream_state"`
	Cost  *moneyItem `json:"cost"`
}

// reviewView is one review with what may be decided, and what it is about.
type reviewView struct {
	Review    reviewItem
	Choices   []choice
	Operation *ledger.OperationJSON
	Audit     []auditItem
}

// choice is a decision and what it does.
type choice struct {
	Word, Means string
	// Final is what gives something up for good.
	Final bool
	// Asks is the field that it needs: "task_id", "operation_id" or nothing.
	Asks, Label string
}

// auditItem is one line of the audit.
type auditItem struct {
	Tenant  string    `json:"tenant"`
	At      pawl.Time `json:"at"`
	Actor   string    `json:"actor"`
	Action  string    `json:"action"`
	Subject string    `json:"subject"`
	Detail  string    `json:"detail"`
}

// asks are the fields that decisions need, with what they are called on the page.
var asks = map[string][2]string{
	pawl.DecideCreated: {"task_id", "Task id at the provider"},
	pawl.DecideAttach:  {"operation_id", "Operation id"},
}

// choices are what may be decided, in the order and the words of the API.
func choices(r reviewItem) []choice {
	out := make([]choice, len(r.Choices))
	for i, c := range r.Choices {
		field := asks[c.Decision]
		out[i] = choice{Word: c.Decision, Means: c.Effect, Final: !c.Safe, Asks: field[0], Label: field[1]}
	}
	return out
}

// review is the page of one review.
func (v *visit) review() error {
	id := v.r.PathValue("id")
	out := reviewView{}
	if err := v.get("/v1/reviews/"+id, nil, &out.Review); err != nil {
		return err
	}
	if out.Review.ClosedAt == nil {
		out.Choices = choices(out.Review)
	}
	if op := out.Review.OperationID; op != "" {
		out.Operation = new(ledger.OperationJSON)
		if err := v.get("/v1/operations/"+op, nil, out.Operation); err != nil {
			return err
		}
	}
	var audit list[auditItem]
	if err := v.get("/v1/audit", url.Values{"subject": {id}, "page_size": {shownRows}}, &audit); err != nil {
		return err
	}
	out.Audit = audit.Items
	return v.showLive(http.StatusOK, "review", "Review "+short(id), livePath, out)
}
