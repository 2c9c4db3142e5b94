package ledger

import (
	"crypto/sha256"

	"github.com/pawlhq/pawl"
)

// CallbackEndpointID is the id of the endpoint that a callback_url becomes:
// one per API key, exact URL and scheme (7-rules R50), so that an address that
// is given to two ways in gets from each what its callers expect. It is derived,
// so that two submits at once make the same endpoint; its time is that of the
// key.
func CallbackEndpointID(apiKey pawl.ID, url, scheme string) pawl.ID {
	text := append(apiKey[:], url...)
	if dialect(scheme) {
		text = append(append(text, ' '), scheme...) // A URL has no space.
	}
	sum := sha256.Sum256(text)
	id := pawl.ID(sum[:16])
	copy(id[:6], apiKey[:6])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// callbackEndpoint finds or makes that endpoint; one that was deleted lives
// again, since the caller asks for it.
func (d *Draft) callbackEndpoint(c Submit) pawl.ID {
	id := CallbackEndpointID(c.APIKey, c.CallbackURL, c.CallbackScheme)
	former, ok := d.Endpoints.Get(id)
	if ok && former.DeletedAt == 0 {
		if former.UnusedAt.IsSet() {
			former.UnusedAt = 0
			d.Endpoints.Put(id, former)
		}
		return id
	}
	d.Endpoints.Put(id, Endpoint{
		ID: id, Tenant: c.Tenant, Kind: CallbackEndpoint, APIKey: c.APIKey, URL: c.CallbackURL,
		Scheme: c.CallbackScheme, Version: former.Version + 1, CreatedAt: d.Now, UpdatedAt: d.Now,
	})
	return id
}

// RemoveCallback takes the address away that was of erased operations alone
// (4-standards PR-05). It takes two steps, and between them somebody looks whether
// an operation needs it: the first notes that one looks, and the second does it
// unless a submit has named the address since.
type RemoveCallback struct {
	Header
	Endpoint pawl.ID
	// Unused says that none was found.
	Unused bool
}

// Head is the command's header.
func (c RemoveCallback) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RemoveCallback) Keys(k *Keys) { k.Endpoints = add(k.Endpoints, c.Endpoint) }

// Decide notes that one looks, or removes what the endpoint holds.
func (c RemoveCallback) Decide(d *Draft) Outcome {
	ep, ok := d.Endpoints.Get(c.Endpoint)
	switch {
	case !ok || ep.Kind != CallbackEndpoint || ep.URL == "":
		return done("gone", nil)
	case !c.Unused:
		ep.UnusedAt = d.Now
		d.Endpoints.Put(ep.ID, ep)
		return done("looking", nil)
	case !ep.UnusedAt.IsSet():
		return done("used", nil)
	}
	ep.URL, ep.Description, ep.Owner, ep.Policy, ep.UnusedAt = "", "", "", "", 0
	if ep.DeletedAt == 0 {
		ep.DeletedAt = d.Now
		d.pauseDeliveries(ep)
	}
	ep.Version++
	ep.UpdatedAt = d.Now
	d.Endpoints.Put(ep.ID, ep)
	d.audit(ep.Tenant, "endpoint.erase", ep.ID.Text(pawl.PrefixEndpoint), "")
	return done("removed", nil)
}
