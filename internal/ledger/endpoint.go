package ledger

import (
	"cmp"
	"time"

	"github.com/pawlhq/pawl"
)

// CreateEndpoint adds an endpoint of a tenant. Everything in it has been
// checked by the caller.
type CreateEndpoint struct {
	Header
	Endpoint Endpoint
}

// Head is the command's header.
func (c CreateEndpoint) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c CreateEndpoint) Keys(k *Keys) {
	k.Endpoints = add(k.Endpoints, c.Endpoint.ID)
	k.EndpointSets = add(k.EndpointSets, c.Endpoint.Tenant)
	if c.Endpoint.Tenant != "" {
		k.Tenants = add(k.Tenants, c.Endpoint.Tenant)
	}
}

// Decide adds the endpoint and answers with it.
func (c CreateEndpoint) Decide(d *Draft) Outcome {
	if ep, ok := d.Endpoints.Get(c.Endpoint.ID); ok {
		return done("exists", ep)
	}
	ep := c.Endpoint
	ep.Kind, ep.Version, ep.CreatedAt, ep.UpdatedAt = WebhookEndpoint, 1, d.Now, d.Now
	d.Endpoints.Put(ep.ID, ep)
	if ep.Disabled {
		d.pauseDeliveries(ep)
	}
	d.audit(ep.Tenant, "endpoint.create", ep.ID.Text(pawl.PrefixEndpoint), "")
	return done("created", ep)
}

// EndpointChange is one change of an endpoint.
type EndpointChange struct {
	// Each pointer is nil for "leave it".
	URL, Types, Description, Owner, Policy *string
	CompleteWithin                         *time.Duration
	Disabled                               *bool
	DisabledReason                         string
	// Secret, where set, becomes the signing secret, with its public half and,
	// where set, another scheme; the former one stays valid until FormerUntil.
	Secret      Sealed
	PublicKey   string
	Scheme      string
	FormerUntil pawl.Time
	Delete      bool
}

// ChangeEndpoint changes an endpoint. IfVersion, where not zero, must be its
// version.
type ChangeEndpoint struct {
	Header
	Tenant    string
	ID        pawl.ID
	IfVersion int64
	Action    string
	Change    EndpointChange
}

// Head is the command's header.
func (c ChangeEndpoint) Head() Header { return c.Header }

// deleteNow is how many waiting deliveries a deletion skips at once; the rest
// are skipped when they come due.
const deleteNow = 200

// Keys names the rows the command needs.
func (c ChangeEndpoint) Keys(k *Keys) {
	k.Endpoints = add(k.Endpoints, c.ID)
	if c.Change.Delete {
		k.DueDeliveries = add(k.DueDeliveries, Window{DeliveryQueueID(c.ID), deleteNow})
	}
}

// Decide makes the change and answers with the endpoint.
func (c ChangeEndpoint) Decide(d *Draft) Outcome {
	ep, ok := d.Endpoints.Get(c.ID)
	if !ok || ep.DeletedAt != 0 || c.Tenant != "" && ep.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such endpoint")
	}
	if c.IfVersion != 0 && c.IfVersion != ep.Version {
		return dropped(pawl.Precondition, "version", "the endpoint was changed since; read it again and repeat with its new ETag")
	}
	was := ep
	c.Change.apply(&ep)
	if c.Change.Delete {
		ep.DeletedAt = d.Now
		ep.Secret, ep.FormerSecret = "", "" // Nothing is signed for it any more.
		c.skipWaiting(d)
	}
	if ep == was {
		return done("unchanged", ep)
	}
	if was.Disabled && !ep.Disabled {
		ep.EnabledAt = d.Now
	}
	if was.Disabled != ep.Disabled || ep.DeletedAt != 0 {
		d.pauseDeliveries(ep)
	}
	ep.Version++
	ep.UpdatedAt = d.Now
	d.Endpoints.Put(ep.ID, ep)
	if ep.Disabled && !was.Disabled {
		d.notifyDisabled(ep)
	}
	d.audit(ep.Tenant, "endpoint."+c.Action, ep.ID.Text(pawl.PrefixEndpoint), c.Change.DisabledReason)
	return done("changed", ep)
}

func (ch EndpointChange) apply(ep *Endpoint) {
	assign(&ep.URL, ch.URL)
	assign(&ep.Types, ch.Types)
	assign(&ep.Description, ch.Description)
	assign(&ep.Owner, ch.Owner)
	assign(&ep.Policy, ch.Policy)
	assign(&ep.CompleteWithin, ch.CompleteWithin)
	if ch.Disabled != nil && *ch.Disabled != ep.Disabled {
		ep.Disabled, ep.DisabledReason = *ch.Disabled, ch.DisabledReason
	}
	if ch.Secret != "" && ch.Secret != ep.Secret {
		ep.FormerSecret, ep.FormerUntil = ep.Secret, ch.FormerUntil
		ep.Secret, ep.PublicKey = ch.Secret, ch.PublicKey
		ep.Scheme = cmp.Or(ch.Scheme, ep.Scheme)
	}
}

func assign[V any](to, from *V) {
	if from != nil {
		*to = *from
	}
}

func (c ChangeEndpoint) skipWaiting(d *Draft) {
	rows, _ := d.dueDeliveries(Window{DeliveryQueueID(c.ID), deleteNow}, pawl.Never-1)
	d.needEvents(rows)
	for _, row := range rows {
		if !row.Leased {
			d.skip(row, "endpoint_deleted")
		}
	}
}
