package client

import (
	"context"
	"iter"

	"github.com/pawlhq/pawl"
)

const deliveries = "/v1/deliveries"

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID          string `json:"id"`
	Tenant      string `json:"tenant"`
	EventID     string `json:"event_id"`
	EndpointID  string `json:"endpoint_id"`
	OperationID string `json:"operation_id"`
	// State is pending, delivering, delivered, dead or skipped, the last two for
	// Reason.
	State  string `json:"state"`
	Reason string `json:"reason"`
	// Sequence is the position in the endpoint's stream, 0 until it is first sent.
	Sequence      int64     `json:"sequence"`
	Attempts      int       `json:"attempts"`
	NextAttemptAt pawl.Time `json:"next_attempt_at"`
	LastStatus    int       `json:"last_status"`
	LastError     string    `json:"last_error"`
	CreatedAt     pawl.Time `json:"created_at"`
	FinishedAt    pawl.Time `json:"finished_at"`
	// CompleteBy is until when a receiver that took it must report that it is done;
	// CompletedAt is when it did.
	CompleteBy  pawl.Time `json:"complete_by"`
	CompletedAt pawl.Time `json:"completed_at"`
}

// Attempt is one try of a delivery.
type Attempt struct {
	ID         string    `json:"id"`
	Number     int       `json:"number"`
	At         pawl.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
	// Status is the HTTP status, 0 where there was no answer.
	Status  int    `json:"status"`
	Error   string `json:"error"`
	Excerpt string `json:"excerpt"`
	Replay  bool   `json:"replay"`
	Actor   string `json:"actor"`
}

// DeliveryFilter narrows a list of deliveries; what is empty does not.
type DeliveryFilter struct{ State, Endpoint, Event, Operation string }

// Deliveries lists deliveries, newest first.
func (c *Client) Deliveries(ctx context.Context, f DeliveryFilter) iter.Seq2[Delivery, error] {
	return list[Delivery](ctx, c, deliveries, params("state", f.State, "endpoint", f.Endpoint, "event", f.Event, "operation", f.Operation))
}

// Delivery reads a delivery.
func (c *Client) Delivery(ctx context.Context, id string) (Delivery, error) {
	return made[Delivery](ctx, c, get(deliveries+"/"+segment(id), nil))
}

// Attempts are the tries of a delivery, oldest first.
func (c *Client) Attempts(ctx context.Context, delivery string) ([]Attempt, error) {
	return whole[Attempt](ctx, c, deliveries+"/"+segment(delivery)+"/attempts")
}

// RetryDelivery sends a delivery again; a dead one gets a fresh schedule.
func (c *Client) RetryDelivery(ctx context.Context, id string) (Delivery, error) {
	return made[Delivery](ctx, c, keyed(deliveries+"/"+segment(id)+"/retry", "", struct{}{}))
}

// CompleteDelivery reports that the work on an event is done, for an endpoint
// that has CompleteWithin.
func (c *Client) CompleteDelivery(ctx context.Context, id string) (Delivery, error) {
	return made[Delivery](ctx, c, repeatable(deliveries+"/"+segment(id)+"/complete", struct{}{}))
}
