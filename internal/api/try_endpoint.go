package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// testRequest is an event that tries an endpoint.
type testRequest struct {
	Type string          `json:"type,omitempty" maxLength:"128" doc:"Any type of GET /v1/event-types or of your own; the first that the endpoint asks for, else operation.succeeded, if it is left out."`
	Data json.RawMessage `json:"data,omitempty" doc:"Any value; the example of GET /v1/event-types, or an empty object, if it is left out."`
}

func testEndpoint(c *call, in testRequest) (deliveryJSON, error) {
	ep, err := c.endpoint()
	if err != nil {
		return deliveryJSON{}, err
	}
	if in.Type == "" {
		in.Type, _, _ = strings.Cut(ep.Types, ",")
	}
	if in.Type == "" && ep.Installation() {
		in.Type = pawl.TypeLooseReview
	}
	if in.Type == "" {
		in.Type = pawl.TypeSucceeded
	}
	if err := in.complete(); err != nil {
		return deliveryJSON{}, err
	}
	out, err := c.decide(ledger.TestEndpoint{
		Header: c.head(), Once: c.once(), Tenant: c.tenant, Endpoint: ep.ID, Type: in.Type, Data: string(in.Data),
	})
	if err != nil {
		return deliveryJSON{}, err
	}
	id := out.Value.(pawl.ID)
	rows, err := c.load(c.ctx, ledger.Keys{Deliveries: []pawl.ID{id}})
	if err != nil {
		return deliveryJSON{}, err
	}
	d, ok := rows.Deliveries.Get(id)
	if !ok {
		return deliveryJSON{}, errNotFound
	}
	c.header.Set("Location", "/v1/deliveries/"+id.Text(pawl.PrefixDelivery))
	return deliveryShape(d), nil
}

// complete checks the request and fills in the data that it leaves out.
func (in *testRequest) complete() error {
	data, known := exampleData(in.Type)
	var f faults
	f.check(known || pawl.ValidOwnType(in.Type), "/type", "must be one of GET /v1/event-types, or words of A-Z, a-z, 0-9, _ and - joined by single full stops, at most 128 bytes")
	if err := f.err(); err != nil {
		return err
	}
	switch {
	case len(in.Data) > 0:
	case !known:
		in.Data = json.RawMessage("{}")
	default:
		example, err := json.Marshal(data)
		if err != nil {
			return err
		}
		in.Data = example
	}
	longest := ledger.Event{ID: pawl.NewID(exampleAt, 1), Type: in.Type, Direction: ledger.Outbound}
	if len(ledger.RenderOwn(longest, maxSequence, string(in.Data)))+len(exampleAt.String())+len(`"test":true,`) > maxOutbound {
		return refuse(http.StatusRequestEntityTooLarge, "content_too_large", "the event would have more than 256 KiB as it is sent")
	}
	return nil
}
