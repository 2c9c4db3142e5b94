package api

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/internal/telemetry"
)

const (
	// maxOutbound bounds an outbound event as it is sent, in bytes (2-contracts
	// §1, limits).
	maxOutbound = ledger.MaxOutbound
	// maxSequence stands for a sequence not given yet: no longer one follows.
	maxSequence = 1<<63 - 1
	// publishSlack is what a request may have around the data.
	publishSlack = 16 << 10
)

// publishRequest is an event of a tenant's own.
type publishRequest struct {
	ID   string          `json:"id,omitempty" pattern:"^[A-Za-z0-9_-]{1,255}$" doc:"Becomes the webhook-id of its deliveries; drawn if it is left out. The same id again is the same event."`
	Type string          `json:"type" maxLength:"128" pattern:"^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$" doc:"None that begins with operation., nor one of the installation's."`
	Data json.RawMessage `json:"data" doc:"Any value; sent on as it is, but for white space. The event may have 256 KiB as it is sent."`
}

func (in publishRequest) check() error {
	var f faults
	f.check(in.ID == "" || pawl.ValidOwnID(in.ID), "/id", "must be 1 to 255 characters of A-Z, a-z, 0-9, _ and -")
	f.check(in.Type != "", "/type", "is missing")
	f.check(in.Type == "" || pawl.ValidOwnType(in.Type), "/type", "must be words of A-Z, a-z, 0-9, _ and - joined by single full stops, at most 128 bytes, and none of Pawl's own types such as operation.…")
	f.check(len(in.Data) > 0, "/data", "is missing")
	return f.err()
}

func publishRoute() route {
	return route{
		method: http.MethodPost, path: "/v1/events", name: "publishEvent", tag: "events", scope: ledger.ScopeSubmit, status: http.StatusAccepted,
		summary: "Publish an event of your own to the tenant's endpoints, once for each id", keyed: optional, maxBody: maxOutbound + publishSlack, intake: true,
		refuses: reasons{http.StatusConflict: {"event_id_taken"}, http.StatusNotFound: {"not_found"}},
		headers: []answerHeader{{name: "Location"}},
	}
}

func publishEvent(c *call, in publishRequest) (storedEvent, error) {
	if err := in.check(); err != nil {
		return storedEvent{}, err
	}
	meaning, err := strict.Canonical(in.Data)
	if err != nil {
		return storedEvent{}, err
	}
	tenant, err := c.owner()
	if err != nil {
		return storedEvent{}, err
	}
	id := in.ID
	if id == "" {
		id = strings.Repeat("x", len(pawl.PrefixEvent)+27)
	}
	if len(ledger.RenderOwn(ledger.Event{ExternalID: id, Type: in.Type}, maxSequence, string(in.Data)))+len(exampleAt.String()) > maxOutbound {
		return storedEvent{}, refuse(http.StatusRequestEntityTooLarge, "content_too_large", "the event would have more than 256 KiB as it is sent; send a link to the rest")
	}
	out, err := c.decide(ledger.PublishEvent{
		Header: c.head(), Once: c.once(), Tenant: tenant, ID: in.ID, Type: in.Type, Data: string(in.Data), Digest: sha256.Sum256(meaning),
		Traceparent: telemetry.TraceContext(c.ctx, c.r.Header),
	})
	if err != nil {
		return storedEvent{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Events: []pawl.ID{out.Value.(pawl.ID)}})
	if err != nil {
		return storedEvent{}, err
	}
	e, ok := rows.Events.Get(out.Value.(pawl.ID))
	if !ok {
		return storedEvent{}, errNotFound
	}
	shown := eventShape(e)
	c.header.Set("Location", "/v1/events/"+shown.ID)
	return shown, c.addData(&shown, e)
}
