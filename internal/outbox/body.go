package outbox

import (
	"github.com/pawlhq/pawl/internal/render"
)

// unsendable says why a delivery cannot be made into a request.
type unsendable = render.Unsendable

// rendering is what the job's body is made of.
func (j Job) rendering() render.Delivery {
	return render.Delivery{
		Row: j.delivery, Event: j.event, Endpoint: j.endpoint,
		Metadata: j.metadata, Result: j.result, Data: j.data, Received: j.received, Sent: j.sent, Current: j.current,
	}
}

// body is what is sent.
func (j Job) body(scheme string) ([]byte, error) { return j.rendering().Body(scheme) }

// original reports whether the endpoint gets the event as the bytes received.
func (j Job) original() bool { return j.rendering().Original() }
