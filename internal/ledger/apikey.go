package ledger

import "github.com/pawlhq/pawl"

// CreateKey adds an API key; its secret has been hashed by the caller. A key
// with the same id is replaced in hash and scopes only (the admin key that is
// given at each start).
type CreateKey struct {
	Header
	Key APIKey
	// Keep leaves a key that exists as it is: of two first starts that each made
	// the admin key, one has.
	Keep bool
}

// Head is the command's header.
func (c CreateKey) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c CreateKey) Keys(k *Keys) {
	k.APIKeys = add(k.APIKeys, c.Key.ID)
	k.Tenants = add(k.Tenants, c.Key.Tenant)
}

// Decide adds the key, and its tenant if that is new, and answers with it.
func (c CreateKey) Decide(d *Draft) Outcome {
	if key, ok := d.APIKeys.Get(c.Key.ID); ok {
		if c.Keep || key.Hash == c.Key.Hash && key.Scopes == c.Key.Scopes {
			return done("exists", key)
		}
		key.Hash, key.Scopes, key.RevokedAt = c.Key.Hash, c.Key.Scopes, 0
		key.FormerHash, key.FormerHashUntil = Digest{}, 0
		key.Version++
		d.APIKeys.Put(key.ID, key)
		d.audit(key.Tenant, "key.replace", key.ID.Text(pawl.PrefixKey), "")
		return done("replaced", key)
	}
	key := c.Key
	key.CreatedAt, key.Version = d.Now, 1
	d.APIKeys.Put(key.ID, key)
	if _, ok := d.Tenants.Get(key.Tenant); !ok {
		d.Tenants.Put(key.Tenant, Tenant{Name: key.Tenant, CreatedAt: d.Now})
		d.audit(key.Tenant, "tenant.create", key.Tenant, "")
	}
	d.audit(key.Tenant, "key.create", key.ID.Text(pawl.PrefixKey), key.Name)
	return done("created", key)
}

// RevokeKey ends an API key: it can no longer call, and what is owed to its
// callback addresses is still sent (7-rules R50).
type RevokeKey struct {
	Header
	Tenant string
	ID     pawl.ID
}

// Head is the command's header.
func (c RevokeKey) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RevokeKey) Keys(k *Keys) { k.APIKeys = add(k.APIKeys, c.ID) }

// Decide revokes the key and answers with it.
func (c RevokeKey) Decide(d *Draft) Outcome {
	key, ok := d.APIKeys.Get(c.ID)
	if !ok || c.Tenant != "" && key.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such API key")
	}
	if key.RevokedAt != 0 {
		return done("revoked", key)
	}
	key.RevokedAt = d.Now
	key.Version++
	d.APIKeys.Put(key.ID, key)
	d.audit(key.Tenant, "key.revoke", key.ID.Text(pawl.PrefixKey), "")
	return done("revoked", key)
}
