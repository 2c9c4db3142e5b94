package ledger

import "github.com/pawlhq/pawl"

// testMark is the reason of an outbound event that only tries an endpoint.
const testMark = "test"

// Test reports whether an outbound event only tries an endpoint: nothing has
// happened, and its body says so.
func (e Event) Test() bool { return e.Direction == Outbound && e.Reason == testMark }

// TestEndpoint sends an event of any type to one endpoint alone, whatever
// types that asks for, so that a receiver can be tried before anything happens.
type TestEndpoint struct {
	Header
	Once
	Tenant   string
	Endpoint pawl.ID
	// Type and Data are the event's; the caller has checked them.
	Type, Data string
}

// Head is the command's header.
func (c TestEndpoint) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c TestEndpoint) Size() int { return len(c.Data) }

// Keys names the rows the command needs.
func (c TestEndpoint) Keys(k *Keys) {
	c.needs(k)
	k.Endpoints = add(k.Endpoints, c.Endpoint)
}

// Decide writes the event and answers with the id of its delivery ([pawl.ID]).
func (c TestEndpoint) Decide(d *Draft) Outcome {
	ep, ok := d.Endpoints.Get(c.Endpoint)
	if !ok || ep.DeletedAt != 0 || c.Tenant != "" && ep.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such endpoint")
	}
	asked := ask(ForTest, c.Endpoint.String(), c.Type, c.Data)
	if out, repeated := d.repeated(c.Once, asked); repeated {
		return out
	}
	switch {
	case ep.Disabled:
		return dropped(pawl.Conflicting, "endpoint_disabled", "the endpoint is disabled; enable it first")
	case dialect(ep.Scheme):
		return dropped(pawl.Conflicting, "no_test", "the endpoint's scheme tells of real tasks alone; submit an operation to try it")
	}
	e := Event{ID: d.NewID(), Direction: Outbound, Tenant: ep.Tenant, Type: c.Type, At: d.Now, Reason: testMark}
	d.Events.Put(e.ID, e)
	d.keep(e.ID, DataPayload, c.Data)
	id := d.deliver(ep, e)
	d.takeKey(c.Once, asked, id)
	d.audit(ep.Tenant, "endpoint.test", ep.ID.Text(pawl.PrefixEndpoint), c.Type)
	return done("sent", id)
}
