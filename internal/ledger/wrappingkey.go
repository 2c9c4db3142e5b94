package ledger

import "github.com/pawlhq/pawl"

// WrappingKey is a key that secrets of this ledger are sealed with. The key
// itself is elsewhere (internal/vault); here is what proves that one is the
// right one.
type WrappingKey struct {
	// Name tells it from others and nothing of it.
	Name string
	// Root is the key that callback addresses and page tokens are derived from,
	// sealed with this key: the same one under every key, so that another
	// wrapping key changes no address.
	Root      Sealed
	CreatedAt pawl.Time
	// RetiredAt is when nothing was left that is sealed with it.
	RetiredAt pawl.Time
}

// AddWrappingKey records a key before the first secret is sealed with it. One
// that was retired comes back.
type AddWrappingKey struct {
	Header
	Name string
	Root Sealed
}

// Head is the command's header.
func (c AddWrappingKey) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c AddWrappingKey) Keys(k *Keys) { k.WrappingKeys = add(k.WrappingKeys, c.Name) }

// Decide adds the key and answers with the row that stands.
func (c AddWrappingKey) Decide(d *Draft) Outcome {
	key, ok := d.WrappingKeys.Get(c.Name)
	if ok && key.RetiredAt == 0 {
		return done("exists", key)
	}
	key = WrappingKey{Name: c.Name, Root: c.Root, CreatedAt: d.Now}
	d.WrappingKeys.Put(key.Name, key)
	d.audit("", "wrapping_key.add", key.Name, "")
	return done("added", key)
}

// RetireWrappingKey records that nothing is sealed with a key any more; the
// caller has looked.
type RetireWrappingKey struct {
	Header
	Name string
}

// Head is the command's header.
func (c RetireWrappingKey) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RetireWrappingKey) Keys(k *Keys) { k.WrappingKeys = add(k.WrappingKeys, c.Name) }

// Decide retires the key and answers with it.
func (c RetireWrappingKey) Decide(d *Draft) Outcome {
	key, ok := d.WrappingKeys.Get(c.Name)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such wrapping key")
	}
	if key.RetiredAt != 0 {
		return done("retired", key)
	}
	key.RetiredAt = d.Now
	// The root goes with it: under a key that may have leaked it would be there
	// for the taking.
	key.Root = ""
	d.WrappingKeys.Put(key.Name, key)
	d.audit("", "wrapping_key.retire", key.Name, "")
	return done("retired", key)
}

// SealedPair is what one row holds sealed: the secret in force and the one
// before it.
type SealedPair struct{ Current, Former Sealed }

// Rewrap replaces the secrets of one row, an endpoint or an API key, by the same
// secrets sealed with another key. It changes nothing that anyone can see, so
// the row's version stays.
type Rewrap struct {
	Header
	// Endpoint or APIKey is the row; the other is zero.
	Endpoint, APIKey pawl.ID
	// Was is what the row must hold, or nothing is changed.
	Was, Now SealedPair
}

// Head is the command's header.
func (c Rewrap) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c Rewrap) Keys(k *Keys) {
	if c.APIKey.IsZero() {
		k.Endpoints = add(k.Endpoints, c.Endpoint)
	} else {
		k.APIKeys = add(k.APIKeys, c.APIKey)
	}
}

// Decide replaces the secrets if they are still the same.
func (c Rewrap) Decide(d *Draft) Outcome {
	if c.APIKey.IsZero() {
		row, ok := d.Endpoints.Get(c.Endpoint)
		out := c.swap(&row.Secret, &row.FormerSecret, ok)
		if out.Reason == "rewrapped" {
			d.Endpoints.Put(row.ID, row)
		}
		return out
	}
	row, ok := d.APIKeys.Get(c.APIKey)
	out := c.swap(&row.WebhookSecret, &row.FormerSecret, ok)
	if out.Reason == "rewrapped" {
		d.APIKeys.Put(row.ID, row)
	}
	return out
}

func (c Rewrap) swap(current, former *Sealed, exists bool) Outcome {
	if !exists {
		return dropped(pawl.NotFound, "not_found", "no such row")
	}
	switch (SealedPair{*current, *former}) {
	case c.Now:
		return done("unchanged", nil)
	case c.Was:
		*current, *former = c.Now.Current, c.Now.Former
		return done("rewrapped", nil)
	}
	return dropped(pawl.Precondition, "version", "the secret was changed meanwhile")
}
