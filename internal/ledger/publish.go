package ledger

import (
	"slices"

	"github.com/pawlhq/pawl"
)

// ownSource stands for the tenants' own events among the sources of event keys:
// no configured source can have such a name.
const ownSource = ":own"

// OwnKeyID is the key of an event that a tenant published under an id of its
// own: the same id of another tenant is another event (7-rules R49).
func OwnKeyID(tenant, id string) EventKeyID { return EventKeyID{ownSource, tenant, id} }

// PublishEvent gives an event of a tenant's own to its endpoints: the event and
// its deliveries are one decision (2-contracts §1).
type PublishEvent struct {
	Header
	Once
	Tenant string
	// ID is the tenant's own id of the event, "" for one of ours. The caller has
	// checked it, Type and Data.
	ID, Type string
	// Data is a JSON value; Digest is of what it means.
	Data   string
	Digest Digest
	// Traceparent is the trace context of the request, empty for none.
	Traceparent string
}

// Head is the command's header.
func (c PublishEvent) Head() Header { return c.Header }

// Size is the bytes the command will store.
func (c PublishEvent) Size() int { return len(c.Data) }

// Keys names the rows the command needs.
func (c PublishEvent) Keys(k *Keys) {
	c.needs(k)
	if c.ID != "" {
		k.EventKeys = add(k.EventKeys, OwnKeyID(c.Tenant, c.ID))
	}
	k.EndpointSets = add(k.EndpointSets, c.Tenant)
}

// Decide writes the event and answers with its id ([pawl.ID]). The same id
// again is replayed, or refused where it stands for another event.
func (c PublishEvent) Decide(d *Draft) Outcome {
	asked := ask(ForEvent, c.ID, c.Type, string(c.Digest[:]))
	if out, repeated := d.repeated(c.Once, asked); repeated {
		return out
	}
	if c.ID != "" {
		claim, taken := d.EventKeys.Get(OwnKeyID(c.Tenant, c.ID))
		if taken && (claim.Digest != c.Digest || claim.Word != c.Type) {
			return dropped(pawl.Conflicting, "event_id_taken", "an event with this id and another type or other data was published before; give another id")
		}
		if taken {
			return done("replayed", claim.Event)
		}
	}
	e := Event{
		ID: d.NewID(), Direction: Outbound, Tenant: c.Tenant, Type: c.Type, At: d.Now, ExternalID: c.ID, Digest: c.Digest, Traceparent: c.Traceparent,
	}
	d.Events.Put(e.ID, e)
	d.keep(e.ID, DataPayload, c.Data)
	if c.ID != "" {
		id := OwnKeyID(c.Tenant, c.ID)
		d.EventKeys.Put(id, EventKey{ID: id, Event: e.ID, Digest: c.Digest, Word: c.Type})
	}
	d.takeKey(c.Once, asked, e.ID)
	for _, ep := range d.webhooks(c.Tenant) {
		if wants(ep, e.Type) {
			d.deliver(ep, e)
		}
	}
	return done("published", e.ID)
}

// webhooks are a tenant's endpoints of kind webhook in the order of their ids.
func (d *Draft) webhooks(tenant string) []Endpoint {
	if !d.rows.HasEndpointSet(tenant) {
		panic(Miss{Keys: Keys{EndpointSets: []string{tenant}}})
	}
	var mine []Endpoint
	for _, ep := range d.Endpoints.all() {
		if ep.Kind == WebhookEndpoint && ep.Tenant == tenant && ep.DeletedAt == 0 {
			mine = append(mine, ep)
		}
	}
	slices.SortFunc(mine, func(a, b Endpoint) int { return a.ID.Compare(b.ID) })
	return mine
}
