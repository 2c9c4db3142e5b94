package api

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// deliveryJSON is one event for one endpoint (2-contracts §1).
type deliveryJSON struct {
	ID            string     `json:"id"`
	Tenant        string     `json:"tenant"`
	EventID       string     `json:"event_id"`
	EndpointID    string     `json:"endpoint_id"`
	OperationID   string     `json:"operation_id,omitempty"`
	State         string     `json:"state" enum:"pending,delivering,delivered,dead,skipped"`
	Sequence      int64      `json:"sequence,omitempty" doc:"The position in the endpoint's stream; given when it is first sent."`
	Attempts      int32      `json:"attempts"`
	NextAttemptAt *pawl.Time `json:"next_attempt_at,omitempty" format:"date-time"`
	LastStatus    int32      `json:"last_status,omitempty"`
	LastError     string     `json:"last_error,omitempty"`
	Reason        string     `json:"reason,omitempty" doc:"Why it is dead or skipped."`
	CreatedAt     pawl.Time  `json:"created_at" format:"date-time"`
	FinishedAt    *pawl.Time `json:"finished_at,omitempty" format:"date-time"`
	CompleteBy    *pawl.Time `json:"complete_by,omitempty" format:"date-time" doc:"Until when its receiver, having taken it, must report that it is done."`
	CompletedAt   *pawl.Time `json:"completed_at,omitempty" format:"date-time" doc:"When that was reported."`
	CompletedBy   string     `json:"completed_by,omitempty" doc:"The key that reported it."`
	Overdue       int32      `json:"overdue,omitempty" doc:"How often the time for the report has passed; the second time is a review."`
	Discarded     bool       `json:"discarded,omitempty" doc:"A person decided that nothing will be done with it."`
	ReviewID      string     `json:"review_id,omitempty" doc:"The open review of its overdue report."`
}

func deliveryShape(d ledger.Delivery) deliveryJSON {
	out := deliveryJSON{
		ID: d.ID.Text(pawl.PrefixDelivery), Tenant: d.Tenant, EventID: d.Event.Text(pawl.PrefixEvent), EndpointID: d.Endpoint.Text(pawl.PrefixEndpoint),
		OperationID: d.Operation.Text(pawl.PrefixOperation), State: d.State.String(), Sequence: d.Sequence, Attempts: d.Attempts,
		LastStatus: d.LastStatus, LastError: d.LastError, Reason: d.Reason, CreatedAt: d.CreatedAt, FinishedAt: isSet(d.FinishedAt),
		CompletedAt: isSet(d.CompletedAt), CompletedBy: d.CompletedBy, Overdue: d.Overdue, Discarded: d.Discarded, ReviewID: d.Review.Text(pawl.PrefixReview),
	}
	if d.CompletedAt == 0 {
		out.CompleteBy = isSet(d.CompleteBy)
	}
	if !d.Leased {
		out.NextAttemptAt = isSet(d.DueAt)
	}
	return out
}

// attemptJSON is one try of a delivery.
type attemptJSON struct {
	ID         string    `json:"id"`
	EventID    string    `json:"event_id"`
	Number     int32     `json:"number"`
	At         pawl.Time `json:"at" format:"date-time"`
	DurationMS int64     `json:"duration_ms"`
	Status     int32     `json:"status,omitempty" doc:"The HTTP status; left out where there was no answer."`
	Error      string    `json:"error,omitempty"`
	Excerpt    string    `json:"excerpt,omitempty" doc:"The beginning of the answer, without secrets."`
	Replay     bool      `json:"replay,omitempty" doc:"It was asked for by hand."`
	Actor      string    `json:"actor,omitempty" doc:"Who asked for it."`
	Target     string    `json:"target,omitempty" doc:"Scheme and host that it went to."`
	Digest     string    `json:"target_sha256,omitempty" doc:"The first 16 hexadecimal digits of the SHA-256 of the whole URL, whose path may be a secret."`
}

func attemptShape(a ledger.Attempt) attemptJSON {
	return attemptJSON{
		Target: a.Target, Digest: a.TargetDigest,
		ID: a.ID.Text(pawl.PrefixAttempt), Number: a.Number, At: a.At, DurationMS: a.Duration.Milliseconds(), Status: a.Status,
		Error: a.Error, Excerpt: a.Excerpt, Replay: a.Replay, Actor: a.Actor,
	}
}

func (a *api) deliveryRoutes() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/deliveries", name: "listDeliveries", tag: "deliveries", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "Deliveries, newest first",
		query:   []param{{"state", "pending, delivering, delivered, dead or skipped"}, {"endpoint", ""}, {"event", ""}, {"operation", ""}},
	}, listDeliveries)
	handle(a, route{
		method: http.MethodGet, path: "/v1/deliveries/{id}", name: "getDelivery", tag: "deliveries", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "One delivery",
	}, getDelivery)
	handle(a, route{
		method: http.MethodGet, path: "/v1/deliveries/{id}/attempts", name: "listAttempts", tag: "deliveries", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "The attempts of a delivery, oldest first",
	}, listAttempts)
	handle(a, route{
		method: http.MethodPost, path: "/v1/deliveries/{id}/retry", name: "retryDelivery", tag: "deliveries", scope: ledger.ScopeOperate, status: http.StatusAccepted, keyed: optional,
		summary: "Send a delivery again; a dead one gets a fresh schedule",
		refuses: reasons{409: {"endpoint_disabled", "endpoint_feed", "skipped", "never_sent", "body_gone"}},
	}, retryDelivery)
	handle(a, completeRoute(), completeDelivery)
}

func listDeliveries(c *call, _ none) (page[deliveryJSON], error) {
	f := store.DeliveryFilter{Tenant: c.tenant}
	var err error
	if f.State, err = filterWord(c, "state", pawl.ParseDeliveryState); err != nil {
		return page[deliveryJSON]{}, err
	}
	if f.Endpoint, err = c.filterID("endpoint", pawl.PrefixEndpoint); err != nil {
		return page[deliveryJSON]{}, err
	}
	if f.Event, err = c.filterID("event", pawl.PrefixEvent); err != nil {
		return page[deliveryJSON]{}, err
	}
	if f.Operation, err = c.filterID("operation", pawl.PrefixOperation); err != nil {
		return page[deliveryJSON]{}, err
	}
	read := func(p store.Page) ([]ledger.Delivery, error) { return c.opts.Reader.Deliveries(c.ctx, f, p) }
	return listed(c, read, func(d ledger.Delivery) pawl.ID { return d.ID }, each(deliveryShape))
}

// delivery is the delivery in the path, if the call may see it.
func (c *call) delivery() (ledger.Delivery, error) {
	id, err := c.id(pawl.PrefixDelivery)
	if err != nil {
		return ledger.Delivery{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Deliveries: []pawl.ID{id}})
	if err != nil {
		return ledger.Delivery{}, err
	}
	d, ok := rows.Deliveries.Get(id)
	if !ok || !c.sees(d.Tenant) {
		return d, errNotFound
	}
	return d, nil
}

func getDelivery(c *call, _ none) (deliveryJSON, error) {
	d, err := c.delivery()
	return deliveryShape(d), err
}

func listAttempts(c *call, _ none) (page[attemptJSON], error) {
	d, err := c.delivery()
	if err != nil {
		return page[attemptJSON]{}, err
	}
	rows, err := c.opts.Reader.Attempts(c.ctx, d.ID)
	if err != nil {
		return page[attemptJSON]{}, err
	}
	items, err := each(attemptShape)(rows)
	for i := range items {
		items[i].EventID = d.Event.Text(pawl.PrefixEvent)
	}
	return page[attemptJSON]{Items: items}, err
}

// deliveryRetryRequest may ask for more than to send a delivery again.
type deliveryRetryRequest struct {
	Force bool `json:"force,omitempty" doc:"Send it even while its endpoint is disabled: one attempt, past the pause."`
}

func retryDelivery(c *call, in deliveryRetryRequest) (deliveryJSON, error) {
	d, err := c.delivery()
	if err != nil {
		return deliveryJSON{}, err
	}
	events, err := c.load(c.ctx, ledger.Keys{Events: []pawl.ID{d.Event}})
	if err != nil {
		return deliveryJSON{}, err
	}
	if e, _ := events.Events.Get(d.Event); e.RemovedAt.IsSet() {
		return deliveryJSON{}, refuse(http.StatusConflict, "body_gone", "what the event held is no longer kept, so that it cannot be sent again")
	}
	out, err := c.decide(ledger.RetryDelivery{Header: c.head(), Once: c.once(), Tenant: c.tenant, Delivery: d.ID, Endpoint: d.Endpoint, Force: in.Force})
	if err != nil {
		return deliveryJSON{}, err
	}
	return deliveryShape(out.Value.(ledger.Delivery)), nil
}
