package console

import (
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// reviewItem is a review as the API shows it.
type reviewItem struct {
	ID          string     `json:"id"`
	Tenant      string     `json:"tenant"`
	Reason      string     `json:"reason"`
	Meaning     string     `json:"meaning"`
	Decisions   []string   `json:"decisions"`
	OperationID string     `json:"operation_id"`
	EventID     string     `json:"event_id"`
	EndpointID  string     `json:"endpoint_id"`
	DeliveryID  string     `json:"delivery_id"`
	Source      string     `json:"source"`
	Owner       string     `json:"owner"`
	Detail      string     `json:"detail"`
	Reported    *reported  `json:"reported"`
	OpenedAt    pawl.Time  `json:"opened_at"`
	ClosedAt    *pawl.Time `json:"closed_at"`
	Decision    string     `json:"decision"`
	Note        string     `json:"note"`
	DecidedBy   string     `json:"decided_by"`
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
	// Final is what cannot be taken back.
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

// means says what each decision does; where it depends on the reason, the key is
// "reason decision".
var means = map[string]choice{
	pawl.DecideCreated:              {Means: "The provider has the job: you looked there and found its task. The operation goes on with it.", Asks: "task_id", Label: "Task id at the provider"},
	pawl.DecideNotCreated:           {Means: "The provider never got it: you looked there and found nothing. It is sent once more.", Final: true},
	pawl.DecideFailed:               {Means: "Give it up. The operation fails and its money is released. A task that exists after all is then paid for by nobody's reservation.", Final: true},
	pawl.DecideExpired:              {Means: "The deadline stands: the operation expires and its money is released.", Final: true},
	pawl.DecideKeep:                 {Means: "What is recorded stays as it is. Nothing is sent, nothing is booked."},
	pawl.DecideCharge:               {Means: "The open reservation is charged in full.", Final: true},
	pawl.DecideRelease:              {Means: "The open reservation is released; nothing is charged.", Final: true},
	"release " + pawl.DecideRelease: {Means: "The result is let out to its owner, and everybody who waits for it is told.", Final: true},
	pawl.DecideRead:                 {Means: "The provider is asked once more, now. This is safe at any time."},
	pawl.DecideRetry:                {Means: "It is sent again, with the same event id, on a fresh schedule."},
	"capture " + pawl.DecideRetry:   {Means: "The files are fetched again. Nothing is bought again."},
	pawl.DecideDiscard:              {Means: "Nothing will be done with it.", Final: true},
	pawl.DecideAccept:               {Means: "The end that the provider reported after all is the right one: state, money and result are corrected to it, and everybody is told again.", Final: true},
	pawl.DecideReprocess:            {Means: "The stored events are judged anew by the description that is in force now."},
	pawl.DecideAttach:               {Means: "The event's task belongs to an operation that you name; it is judged there.", Asks: "operation_id", Label: "Operation id"},
}

// choices are what may be decided for a reason, in the order of the table.
func choices(r reviewItem) []choice {
	out := make([]choice, len(r.Decisions))
	for i, word := range r.Decisions {
		c, ok := means[r.Reason+" "+word]
		if !ok {
			c = means[word]
		}
		c.Word = word
		out[i] = c
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
