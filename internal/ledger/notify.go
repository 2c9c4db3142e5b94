package ledger

import (
	"encoding/json"

	"github.com/pawlhq/pawl"
)

// Notice is the data of an event about the installation (1-product I2): ids, words
// of the program and names of the configuration. It holds nothing of what tenants
// sent or received, since no erasure reaches it: an owner is in what the ids name.
type Notice struct {
	ReviewID    string     `json:"review_id,omitempty"`
	Upstream    string     `json:"upstream,omitempty"`
	EndpointID  string     `json:"endpoint_id,omitempty"`
	DeliveryID  string     `json:"delivery_id,omitempty"`
	OperationID string     `json:"operation_id,omitempty"`
	EventID     string     `json:"event_id,omitempty"`
	Tenant      string     `json:"tenant,omitempty"`
	Source      string     `json:"source,omitempty"`
	Reason      string     `json:"reason"`
	Attempts    int32      `json:"attempts,omitempty"`
	LastStatus  int32      `json:"last_status,omitempty"`
	PausedUntil *pawl.Time `json:"paused_until,omitempty" format:"date-time"`
}

// NoticeEvent is an event about the installation as it is sent.
type NoticeEvent struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Timestamp pawl.Time `json:"timestamp" format:"date-time"`
	Sequence  int64     `json:"sequence,omitempty"`
	Test      bool      `json:"test,omitempty" doc:"Somebody tries the endpoint: nothing has happened."`
	Data      Notice    `json:"data"`
}

// Installation reports whether an endpoint belongs to the installation: it gets
// the events about that, and nothing of any tenant's.
func (ep Endpoint) Installation() bool { return ep.Kind == WebhookEndpoint && ep.Tenant == "" }

// notify tells the installation's endpoints what has happened, in the decision
// that made it happen. Where there is none, nothing is written.
//
// The set of these endpoints is loaded when it is needed and not with every
// operation: its queues would be one lock for all tenants and nodes.
func (d *Draft) notify(kind string, n Notice) {
	var e Event
	for _, ep := range d.webhooks("") {
		if !wants(ep, kind) || ep.ID.Text(pawl.PrefixEndpoint) == n.EndpointID {
			continue
		}
		if e.ID.IsZero() {
			text, err := json.Marshal(n)
			if err != nil {
				panic(err)
			}
			e = Event{ID: d.NewID(), Direction: Outbound, Type: kind, At: d.Now}
			d.Events.Put(e.ID, e)
			d.keep(e.ID, DataPayload, string(text))
		}
		d.deliver(ep, e)
	}
}

// notifyReview tells of a review. Those about the installation's own endpoints are
// told of nowhere: two that are both dead would tell of each other without end.
func (d *Draft) notifyReview(r Review) {
	if r.Tenant == "" && !r.Endpoint.IsZero() {
		return
	}
	d.notify(pawl.TypeLooseReview, Notice{
		ReviewID: r.ID.Text(pawl.PrefixReview), Reason: r.Reason.String(), Tenant: r.Tenant, Source: r.Source,
		OperationID: r.Operation.Text(pawl.PrefixOperation), EventID: r.Event.Text(pawl.PrefixEvent),
		EndpointID: r.Endpoint.Text(pawl.PrefixEndpoint), DeliveryID: r.Delivery.Text(pawl.PrefixDelivery),
	})
}

// notifyDead tells of a dead letter, unless that is a notification itself.
func (d *Draft) notifyDead(ep Endpoint, row Delivery) {
	if ep.Installation() {
		return
	}
	d.notify(pawl.TypeDeliveryDead, Notice{
		DeliveryID: row.ID.Text(pawl.PrefixDelivery), EndpointID: ep.ID.Text(pawl.PrefixEndpoint), EventID: row.Event.Text(pawl.PrefixEvent),
		OperationID: row.Operation.Text(pawl.PrefixOperation), Tenant: row.Tenant, Reason: row.Reason,
		Attempts: row.Attempts, LastStatus: row.LastStatus,
	})
}

// notifyDisabled tells of an endpoint that is sent nothing any more, whoever
// disabled it; one of the installation's is told of to the others.
func (d *Draft) notifyDisabled(ep Endpoint) {
	d.notify(pawl.TypeEndpointDisabled, Notice{
		EndpointID: ep.ID.Text(pawl.PrefixEndpoint), Tenant: ep.Tenant, Reason: ep.DisabledReason,
	})
}

// notifyPaused tells of an upstream whose creates stop.
func (d *Draft) notifyPaused(gate Queue) {
	n := Notice{Upstream: gate.ID.Upstream, Reason: gate.PauseReason}
	if gate.PausedUntil != pawl.Never {
		n.PausedUntil = &gate.PausedUntil
	}
	d.notify(pawl.TypeUpstreamPaused, n)
}
