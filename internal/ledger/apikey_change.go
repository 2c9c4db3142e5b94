package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// keyToChange is the key that a command is about, if the tenant may see it and
// it is still valid.
func (d *Draft) keyToChange(tenant string, id pawl.ID) (APIKey, *Outcome) {
	key, ok := d.APIKeys.Get(id)
	var out Outcome
	switch {
	case !ok || tenant != "" && key.Tenant != tenant:
		out = dropped(pawl.NotFound, "not_found", "no such API key")
	case key.RevokedAt != 0 || key.ExpiresAt.IsSet() && key.ExpiresAt <= d.Now:
		out = dropped(pawl.Conflicting, "key_ended", "this API key was revoked or has expired; make a new one")
	default:
		return key, nil
	}
	return key, &out
}

func (d *Draft) changeKey(key APIKey, action, detail string) {
	key.Version++
	d.APIKeys.Put(key.ID, key)
	d.audit(key.Tenant, action, key.ID.Text(pawl.PrefixKey), detail)
}

// RotateKey gives an API key a new secret; the former one is valid beside it
// for a while. The key keeps its id, and with it its idempotency (1-product A6).
type RotateKey struct {
	Header
	Tenant string
	ID     pawl.ID
	Hash   Digest
	// FormerUntil is when the present secret ends.
	FormerUntil pawl.Time
}

// Head is the command's header.
func (c RotateKey) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RotateKey) Keys(k *Keys) { k.APIKeys = add(k.APIKeys, c.ID) }

// Decide exchanges the secret and answers with the key. One that was still
// valid from the rotation before ends now: there are two at most.
func (c RotateKey) Decide(d *Draft) Outcome {
	key, refusal := d.keyToChange(c.Tenant, c.ID)
	if refusal != nil {
		return *refusal
	}
	if key.Hash == c.Hash {
		return done("rotated", key)
	}
	key.FormerHash, key.FormerHashUntil, key.Hash = key.Hash, c.FormerUntil, c.Hash
	d.changeKey(key, "key.rotate", "")
	key, _ = d.APIKeys.Get(c.ID)
	return done("rotated", key)
}

// RotateWebhookSecret gives an API key a new secret that signs what is sent to
// its callback addresses; the former one signs beside it for a while (7-rules
// R50).
type RotateWebhookSecret struct {
	Header
	Tenant string
	ID     pawl.ID
	Secret Sealed
	// FormerUntil is when the present secret stops signing.
	FormerUntil pawl.Time
}

// Head is the command's header.
func (c RotateWebhookSecret) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RotateWebhookSecret) Keys(k *Keys) { k.APIKeys = add(k.APIKeys, c.ID) }

// Decide exchanges the secret and answers with the key. A key that no longer
// calls is still owed callbacks, so its secret can be exchanged too.
func (c RotateWebhookSecret) Decide(d *Draft) Outcome {
	key, ok := d.APIKeys.Get(c.ID)
	if !ok || c.Tenant != "" && key.Tenant != c.Tenant {
		return dropped(pawl.NotFound, "not_found", "no such API key")
	}
	if key.WebhookSecret == c.Secret {
		return done("rotated", key)
	}
	key.FormerSecret, key.FormerUntil, key.WebhookSecret = key.WebhookSecret, c.FormerUntil, c.Secret
	d.changeKey(key, "key.rotate_webhook_secret", "")
	key, _ = d.APIKeys.Get(c.ID)
	return done("rotated", key)
}

// ChangeKey changes what an API key is called, when it expires and what it is
// limited to. IfVersion, where not zero, must be its version.
type ChangeKey struct {
	Header
	Tenant    string
	ID        pawl.ID
	IfVersion int64
	// Each pointer is nil for "leave it"; a zero ExpiresAt means never.
	Name      *string
	ExpiresAt *pawl.Time
	Limits    *KeyLimits
}

// Head is the command's header.
func (c ChangeKey) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ChangeKey) Keys(k *Keys) { k.APIKeys = add(k.APIKeys, c.ID) }

// Decide makes the change and answers with the key.
func (c ChangeKey) Decide(d *Draft) Outcome {
	key, refusal := d.keyToChange(c.Tenant, c.ID)
	if refusal != nil {
		return *refusal
	}
	if c.IfVersion != 0 && c.IfVersion != key.Version {
		return dropped(pawl.Precondition, "version", "the API key was changed since; read it again and repeat with its new ETag")
	}
	was := key
	assign(&key.Name, c.Name)
	if c.ExpiresAt != nil {
		key.ExpiresAt = *c.ExpiresAt
	}
	if c.Limits != nil {
		key.Limits = *c.Limits
	}
	if key == was {
		return done("unchanged", key)
	}
	d.changeKey(key, "key.change", "")
	key, _ = d.APIKeys.Get(c.ID)
	return done("changed", key)
}

// usedEvery is how exactly the last use of an API key is known.
const usedEvery = time.Minute

// UseKey notes that an API key was used.
type UseKey struct {
	Header
	ID pawl.ID
}

// Head is the command's header.
func (c UseKey) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c UseKey) Keys(k *Keys) { k.APIKeys = add(k.APIKeys, c.ID) }

// Decide notes the use, once a minute.
func (c UseKey) Decide(d *Draft) Outcome {
	key, ok := d.APIKeys.Get(c.ID)
	if !ok || d.Now.Sub(key.LastUsedAt) < usedEvery {
		return done("known", nil)
	}
	key.LastUsedAt = d.Now
	d.APIKeys.Put(key.ID, key)
	return done("used", nil)
}
