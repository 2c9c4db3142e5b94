package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// moneyItem is an amount of the API.
type moneyItem struct{ Amount, Currency string }

// timelineItem is one thing that happened to an operation.
type timelineItem struct {
	At         pawl.Time  `json:"at"`
	Kind       string     `json:"kind"`
	Verdict    string     `json:"verdict"`
	Reason     string     `json:"reason"`
	EventID    string     `json:"event_id"`
	Version    int64      `json:"version"`
	State      string     `json:"state"`
	Actor      string     `json:"actor"`
	Detail     string     `json:"detail"`
	DeliveryID string     `json:"delivery_id"`
	EndpointID string     `json:"endpoint_id"`
	Attempt    int32      `json:"attempt"`
	Status     int32      `json:"status"`
	Amount     *moneyItem `json:"amount"`
	From       string     `json:"from"`
	To         string     `json:"to"`
	Repeats    int64      `json:"repeats"`
	LastAt     *pawl.Time `json:"last_at"`
}

// deliveryItem is a delivery in a list.
type deliveryItem struct {
	ID            string     `json:"id"`
	Tenant        string     `json:"tenant"`
	EventID       string     `json:"event_id"`
	EndpointID    string     `json:"endpoint_id"`
	OperationID   string     `json:"operation_id"`
	State         string     `json:"state"`
	Sequence      int64      `json:"sequence"`
	Attempts      int32      `json:"attempts"`
	NextAttemptAt *pawl.Time `json:"next_attempt_at"`
	LastStatus    int32      `json:"last_status"`
	LastError     string     `json:"last_error"`
	Reason        string     `json:"reason"`
	CreatedAt     pawl.Time  `json:"created_at"`
	FinishedAt    *pawl.Time `json:"finished_at"`
}

// eventItem is an event in a list.
type eventItem struct {
	ID         string    `json:"id"`
	Direction  string    `json:"direction"`
	Type       string    `json:"type"`
	At         pawl.Time `json:"at"`
	Source     string    `json:"source"`
	TaskID     string    `json:"task_id"`
	ExternalID string    `json:"external_id"`
	Word       string    `json:"upstream_state"`
	Verdict    string    `json:"verdict"`
	Reason     string    `json:"reason"`
	Version    int64     `json:"version"`

	OperationID string `json:"operation_id"`
}

// operationView is one operation with everything that happened to it.
type operationView struct {
	Operation  ledger.OperationJSON
	Timeline   []timelineItem
	Deliveries []deliveryItem
	Events     []eventItem
	Reviews    []reviewItem
	// Earlier leads to what happened before the timeline begins, where it does not
	// begin with the submit.
	Earlier string
	// More is set where there are more deliveries or events than are shown.
	MoreDeliveries, MoreEvents bool
	// Metadata is empty where it has none.
	Metadata    json.RawMessage
	Paused      []pauseItem
	Next        []string
	Decisions   []string
	Corrections []string
	// Can say what makes sense to do now.
	CanRead, CanCancel, CanRelease, CanResolve, CanCorrect bool
}

// shownRows is how many rows of each kind the page of an operation has.
const shownRows = "50"

// operation is the page of one operation. Its input is not read with it: that is
// audited, and has a page of its own.
func (v *visit) operation() error {
	id := v.r.PathValue("id")
	out := operationView{}
	if err := v.get("/v1/operations/"+id, nil, &out.Operation); err != nil {
		return err
	}
	var timeline struct {
		list[timelineItem]
		Earlier string `json:"earlier"`
	}
	if err := v.get("/v1/operations/"+id+"/timeline", v.only("until"), &timeline); err != nil {
		return err
	}
	out.Timeline = timeline.Items
	if timeline.Earlier != "" {
		out.Earlier = v.r.URL.Path + "?" + url.Values{"until": {timeline.Earlier}}.Encode()
	}
	of := url.Values{"operation": {id}, "page_size": {shownRows}}
	var deliveries list[deliveryItem]
	if err := v.get("/v1/deliveries", of, &deliveries); err != nil {
		return err
	}
	out.Deliveries, out.MoreDeliveries = deliveries.Items, deliveries.Next != ""
	var events list[eventItem]
	if err := v.get("/v1/events", of, &events); err != nil {
		return err
	}
	out.Events, out.MoreEvents = events.Items, events.Next != ""
	var reviews list[reviewItem]
	if err := v.get("/v1/reviews", of, &reviews); err != nil {
		return err
	}
	out.Reviews = reviews.Items
	up, err := v.upstreamOf(out.Operation.Upstream)
	if err != nil {
		return err
	}
	out.Paused = up.Paused
	if string(out.Operation.Metadata) != "null" {
		out.Metadata = out.Operation.Metadata
	}
	out.judge(up)
	live := livePath + "?" + url.Values{"operation": {id}, "version": {itoa(out.Operation.Version)}}.Encode()
	return v.showLive(http.StatusOK, "operation", "Operation "+short(id), live, out)
}

// upstreamOf is what the API tells of an upstream; zero where it tells nothing.
func (v *visit) upstreamOf(name string) (upstreamItem, error) {
	var ups list[upstreamItem]
	if err := v.get("/v1/upstreams", url.Values{"page_size": {"200"}}, &ups); err != nil {
		return upstreamItem{}, err
	}
	i := slices.IndexFunc(ups.Items, func(u upstreamItem) bool { return u.Name == name })
	if i < 0 {
		return upstreamItem{}, nil
	}
	return ups.Items[i], nil
}

// judge says what happens next, and offers what makes sense. What is done is
// decided by the ledger alone.
func (o *operationView) judge(up upstreamItem) {
	op := o.Operation
	over := op.State.Terminal()
	o.CanRead = up.Reads && op.TaskID != nil && (!over || op.Cost != nil && !op.Cost.Settled)
	o.CanCancel = !over && (up.Cancels || op.State == pawl.Pending) && (op.Cancel == nil || !op.Cancel.Confirmed)
	o.CanRelease = op.Release == "hold"
	o.CanResolve = op.State == pawl.Unconfirmed
	o.CanCorrect = over
	if o.CanResolve {
		o.Decisions = []string{"created", "not_created", "failed"}
	}
	for s := pawl.Succeeded; s <= pawl.Expired; s++ {
		if over && s != op.State {
			o.Corrections = append(o.Corrections, s.String())
		}
	}
	o.Next = o.next(over)
}

// next says in words what happens next.
func (o *operationView) next(over bool) []string {
	op, lines := o.Operation, []string(nil)
	add := func(applies bool, line string) {
		if applies {
			lines = append(lines, line)
		}
	}
	for _, p := range o.Paused {
		add(!over, "The upstream's "+p.Work+"s stand still: "+p.Reason+".")
	}
	add(len(o.Reviews) > 0, "A person must decide a review.")
	add(op.State == pawl.Pending, "It is created at the upstream when its turn comes.")
	add(op.State == pawl.Unconfirmed, "A create may have reached the provider. A callback, a lookup or a person says what became of it; it is never sent again blindly.")
	add(op.State == pawl.Running, "The provider works on it. A callback ends it, or a read where none comes.")
	add(op.Cancel != nil && !op.Cancel.Confirmed && !over, "A cancel is asked for; the provider's word decides.")
	add(over && op.Cost != nil && op.Metered && !op.Cost.Settled, "It has ended; the final cost is awaited.")
	add(op.Release == "hold", "The result is held until somebody lets it out.")
	waiting := 0
	for _, d := range o.Deliveries {
		if d.State == "pending" || d.State == "delivering" {
			waiting++
		}
	}
	add(waiting > 0, many(waiting, "delivery is", "deliveries are")+" still to be made.")
	add(len(lines) == 0, "Nothing: it is over, settled and told.")
	return lines
}

// inputView is what an operation was submitted with.
type inputView struct {
	ID    string
	Input json.RawMessage
}

// input shows an operation's input, which the API writes into the audit.
func (v *visit) input() error {
	id := v.r.PathValue("id")
	if !v.may(ledger.ScopePayloads) {
		return &problem{Status: http.StatusForbidden, Title: "Your key may not read payloads", Detail: "Reading inputs and raw bodies needs an API key with the scope payloads."}
	}
	var op ledger.OperationJSON
	if err := v.do(call{method: http.MethodGet, path: "/v1/operations/" + id, payloads: true}, &op); err != nil {
		return err
	}
	return v.show(http.StatusOK, "input", "Input of "+short(id), inputView{id, op.Input})
}
