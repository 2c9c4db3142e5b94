package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

func keyed(t *testing.T) *world {
	w := newWorld(t)
	w.do(CreateKey{Key: APIKey{ID: apiKey, Tenant: tenant, Name: "ci", Hash: Digest{1}, Scopes: ScopeSubmit, WebhookSecret: "one"}})
	return w
}

// A rotation keeps the id and the former secret for a while: never more than
// two are valid (1-product A6).
func TestRotateKey(t *testing.T) {
	w := keyed(t)
	expect(t, "version", w.apiKeys[apiKey].Version, 1)
	w.do(RotateKey{Tenant: tenant, ID: apiKey, Hash: Digest{2}, FormerUntil: w.now.Add(time.Hour)})
	k := w.apiKeys[apiKey]
	expect(t, "hash", k.Hash, Digest{2})
	expect(t, "former", k.FormerHash, Digest{1})
	expect(t, "until", k.FormerHashUntil, w.now.Add(time.Hour))
	expect(t, "version", k.Version, 2)
	w.do(RotateKey{Tenant: tenant, ID: apiKey, Hash: Digest{3}, FormerUntil: w.now})
	expect(t, "the one before the former has ended", w.apiKeys[apiKey].FormerHash, Digest{2})
	expect(t, "another tenant", w.do(RotateKey{Tenant: "other", ID: apiKey, Hash: Digest{4}}).Reason, "not_found")
	// The admin key that is given at each start wins over both.
	w.do(CreateKey{Key: APIKey{ID: apiKey, Tenant: tenant, Hash: Digest{9}, Scopes: ScopeAdmin}})
	expect(t, "former", w.apiKeys[apiKey].FormerHash, Digest{})
	w.do(RevokeKey{ID: apiKey})
	expect(t, "revoked", w.do(RotateKey{ID: apiKey, Hash: Digest{5}}).Reason, "key_ended")
}

// The webhook secret of a key that no longer calls still signs what is owed, so
// it can be exchanged (7-rules R50).
func TestRotateWebhookSecret(t *testing.T) {
	w := keyed(t)
	w.do(RevokeKey{ID: apiKey})
	w.do(RotateWebhookSecret{Tenant: tenant, ID: apiKey, Secret: "two", FormerUntil: w.now.Add(time.Hour)})
	k := w.apiKeys[apiKey]
	expect(t, "present", k.WebhookSecret, "two")
	expect(t, "former", k.FormerSecret, "one")
	expect(t, "until", k.FormerUntil, w.now.Add(time.Hour))
	expect(t, "another tenant", w.do(RotateWebhookSecret{Tenant: "other", ID: apiKey, Secret: "x"}).Reason, "not_found")
	expect(t, "audited", w.audits[len(w.audits)-1].Action, "key.rotate_webhook_secret")
}

func TestChangeKey(t *testing.T) {
	w := keyed(t)
	name, at := "deploy", w.now.Add(time.Hour)
	limits := KeyLimits{Rate: 5000, Burst: 10, Budget: 3, Currency: "USD", Upstreams: "s"}
	out := w.do(ChangeKey{Tenant: tenant, ID: apiKey, Name: &name, ExpiresAt: &at, Limits: &limits})
	k := out.Value.(APIKey)
	expect(t, "name", k.Name, name)
	expect(t, "expires", k.ExpiresAt, at)
	expect(t, "limits", k.Limits, limits)
	expect(t, "version", k.Version, 2)
	expect(t, "stale", w.do(ChangeKey{ID: apiKey, IfVersion: 1, Name: &name}).Err.Kind, pawl.Precondition)
	expect(t, "nothing", w.do(ChangeKey{ID: apiKey, Name: &name}).Reason, "unchanged")
	never := pawl.Time(0)
	expect(t, "no longer expires", w.do(ChangeKey{ID: apiKey, ExpiresAt: &never}).Value.(APIKey).ExpiresAt, 0)
	w.do(ChangeKey{ID: apiKey, ExpiresAt: &at})
	w.now = at
	expect(t, "expired", w.do(ChangeKey{ID: apiKey, Name: &name}).Reason, "key_ended")
}

// The last use is noted once a minute, is no change and is not audited.
func TestUseKey(t *testing.T) {
	w := keyed(t)
	audits := len(w.audits)
	use := func(want pawl.Time) {
		t.Helper()
		w.do(UseKey{ID: apiKey})
		expect(t, "last used", w.apiKeys[apiKey].LastUsedAt, want)
	}
	first := w.now
	use(first)
	w.tick(59 * time.Second)
	use(first)
	w.tick(time.Second)
	use(w.now)
	expect(t, "version", w.apiKeys[apiKey].Version, 1)
	expect(t, "audits", len(w.audits), audits)
	expect(t, "unknown", w.do(UseKey{ID: pawl.NewID(1, 1)}).Reason, "known")
}
