package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/webhook"
)

// endpointBook is an endpoint as its owner knows it.
type endpointBook struct {
	row ledger.Endpoint
	// made: the owner was told that it exists.
	made     bool
	receiver *receiver
}

// receiver is who answers at an endpoint's address, with books of its own.
type receiver struct {
	world  *world
	name   string
	scheme webhook.Scheme
	// keys are all that ever signed for it.
	keys []webhook.Key
	wait time.Duration
	down pawl.Time
	// got is by event, numbers says which event has a place in the stream.
	got     map[string]*gotten
	order   []*gotten
	numbers map[int64]string
}

// gotten is one event that a receiver was sent.
type gotten struct {
	event, operation string
	sequence         int64
	version          int64
	body             []byte
	attempts         int
	// accepted: it was answered with a 2xx.
	accepted bool
	// fails is how many more of its attempts fail, and how.
	fails int
	how   Fault
}

func (w *world) newReceiver(scheme string, secret string) *receiver {
	s, ok := webhook.Lookup(scheme)
	if !ok {
		panic("simulate: no scheme " + scheme)
	}
	r := &receiver{
		world: w, name: fmt.Sprintf("hook%d.example", len(w.receivers)+1), scheme: s, keys: []webhook.Key{parseKey(s, secret)},
		wait: ledger.PolicyOf(scheme).Timeout, got: map[string]*gotten{}, numbers: map[int64]string{},
	}
	w.receivers[r.name] = r
	return r
}

func (r *receiver) reachable() bool { return r.world.now >= r.down }

func (r *receiver) timeout() time.Duration { return r.wait }

func (r *receiver) sent(*call, int) {}

func (r *receiver) lost() bool { return r.world.hit(sim.ReceiverSlow, 10) }

// answer takes a delivery.
func (r *receiver) answer(c *call) reply {
	w := r.world
	signed, err := strconv.ParseInt(c.header.Get(r.timestampHeader()), 10, 64)
	if err != nil {
		w.violate("a delivery is signed", "%s: no timestamp", r.name)
	}
	// The sender's clock may be off; that the signature fits is another matter.
	v, err := r.scheme.Verify(webhook.Request{Header: c.header, Body: c.body}, time.Unix(signed, 0), r.keys...)
	if err != nil {
		w.violate("a delivery is signed", "%s: %v", r.name, err)
		return reply{status: 401}
	}
	g := r.take(c, v.ID)
	g.attempts++
	w.trace("%s gets event %s, sequence %d, version %d, attempt %d", r.name, g.event, g.sequence, g.version, g.attempts)
	return r.react(g)
}

func (r *receiver) timestampHeader() string {
	if r.scheme.Name() == "standard-webhooks" || r.scheme.Name() == "standard-webhooks-v1a" {
		return "Webhook-Timestamp"
	}
	return "X-Webhook-Timestamp"
}

// take writes a delivery into the books and holds it against what is there.
func (r *receiver) take(c *call, id string) *gotten {
	w := r.world
	sequence, err := strconv.ParseInt(c.header.Get("Pawl-Endpoint-Sequence"), 10, 64)
	if err != nil || sequence < 1 {
		w.violate("a delivery has its place in the endpoint's stream", "%s: %q", r.name, c.header.Get("Pawl-Endpoint-Sequence"))
	}
	said := r.read(c.body)
	if id == "" {
		id = said.ID
	}
	g := r.got[id]
	if g == nil {
		g = &gotten{event: id, operation: said.operation(), sequence: sequence, version: said.Data.Version, body: c.body}
		r.got[id], r.order = g, append(r.order, g)
		r.mood(g)
	}
	if !bytes.Equal(g.body, c.body) {
		w.violate("every attempt of a delivery has the same bytes", "%s: event %s", r.name, id)
	}
	if g.sequence != sequence {
		w.violate("an event has one place in an endpoint's stream", "%s: event %s has %d and %d", r.name, id, g.sequence, sequence)
	}
	if other, taken := r.numbers[sequence]; taken && other != id {
		w.violate("a place in an endpoint's stream has one event", "%s: sequence %d is of %s and %s", r.name, sequence, other, id)
	}
	r.numbers[sequence] = id
	return g
}

// mood draws how an event will be answered.
func (r *receiver) mood(g *gotten) {
	w := r.world
	for _, f := range []Fault{sim.ReceiverFailed, sim.ReceiverSlow, sim.ReceiverCut, sim.ReceiverLimited} {
		if w.hit(f, 50) {
			g.how, g.fails = f, 1+w.IntN(3)
		}
	}
	if w.hit(sim.ReceiverFailed, 10) {
		g.how, g.fails = sim.ReceiverFailed, 1000
	}
	if w.hit(ReceiverRefuses, 20) {
		g.how, g.fails = ReceiverRefuses, 1
	}
	if w.hit(sim.ReceiverGone, 6) {
		g.how, g.fails = sim.ReceiverGone, 1
	}
}

func (r *receiver) react(g *gotten) reply {
	w := r.world
	if g.fails > 0 && !w.calm {
		g.fails--
		switch g.how {
		case sim.ReceiverFailed:
			return reply{status: 500}
		case sim.ReceiverLimited:
			return reply{status: 429, header: map[string]string{"Retry-After": strconv.Itoa(1 + w.IntN(3600))}}
		case ReceiverRefuses:
			return reply{status: 400}
		case sim.ReceiverGone:
			return reply{status: 410}
		case sim.ReceiverSlow:
			g.accepted = true
			return reply{status: 200, delay: w.between(0, 2*r.wait)}
		case sim.ReceiverCut:
			g.accepted = true
			return reply{status: 200, lost: true}
		}
	}
	g.accepted = true
	return reply{status: 204}
}

// eventSaid is what a receiver reads of a body, in any dialect.
type eventSaid struct {
	ID        string `json:"id"`
	RequestID string `json:"request_id"`
	Type      string `json:"type"`
	Sequence  int64  `json:"sequence"`
	Data      struct {
		ID      string `json:"id"`
		TaskID  string `json:"taskId"`
		TaskID2 string `json:"task_id"`
		Version int64  `json:"version"`
	} `json:"data"`
}

func (r *receiver) read(body []byte) eventSaid {
	var said eventSaid
	if err := json.Unmarshal(body, &said); err != nil {
		r.world.violate("a delivery's body is JSON", "%s: %v", r.name, err)
	}
	if said.ID == "" {
		said.ID = said.RequestID
	}
	return said
}

func (e eventSaid) operation() string {
	for _, id := range []string{e.Data.ID, e.Data.TaskID, e.Data.TaskID2} {
		if len(id) >= 26 {
			return id[len(id)-26:]
		}
	}
	return ""
}

// bySequence is the event that has a place in the stream; nil for none that
// came.
func (r *receiver) bySequence(n int64) *gotten { return r.got[r.numbers[n]] }

// receiverAt is who answers at an address.
func (w *world) receiverAt(address string) *receiver {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	return w.receivers[u.Hostname()]
}

// goDown makes a receiver unreachable for a while.
func (r *receiver) goDown() { r.down = r.world.now.Add(r.world.between(time.Second, 3*time.Hour)) }
