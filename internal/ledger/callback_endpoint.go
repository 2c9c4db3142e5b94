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
		return id
	}
	d.Endpoints.Put(id, Endpoint{
		ID: id, Tenant: c.Tenant, Kind: CallbackEndpoint, APIKey: c.APIKey, URL: c.CallbackURL,
		Scheme: c.CallbackScheme, Version: former.Version + 1, CreatedAt: d.Now, UpdatedAt: d.Now,
	})
	return id
}
