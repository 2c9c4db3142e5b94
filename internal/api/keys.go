package api

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/webhook"
)

// keyJSON is an API key; its secrets are shown when it is made and never again.
type keyJSON struct {
	ID                 string     `json:"id"`
	Tenant             string     `json:"tenant"`
	Name               string     `json:"name,omitempty"`
	Scopes             []string   `json:"scopes"`
	CreatedAt          pawl.Time  `json:"created_at" format:"date-time"`
	ExpiresAt          *pawl.Time `json:"expires_at,omitempty" format:"date-time"`
	RevokedAt          *pawl.Time `json:"revoked_at,omitempty" format:"date-time"`
	LastUsedAt         *pawl.Time `json:"last_used_at,omitempty" format:"date-time" doc:"Exact to about a minute; left out before the first use."`
	FormerUntil        *pawl.Time `json:"former_secret_until,omitempty" format:"date-time" doc:"The secret before the last rotation is valid beside the present one until then."`
	FormerWebhookUntil *pawl.Time `json:"former_webhook_secret_until,omitempty" format:"date-time" doc:"The webhook secret before the last rotation signs beside the present one until then."`
	Limits             keyLimits  `json:"limits" doc:"Empty where the key has none."`

	Secret        string `json:"secret,omitempty" doc:"The credential. Shown once."`
	WebhookSecret string `json:"webhook_secret,omitempty" doc:"Signs what is sent to the callback_url of this key's operations. Shown once."`
}

func keyShape(k ledger.APIKey) keyJSON {
	return keyJSON{
		ID: k.ID.Text(pawl.PrefixKey), Tenant: k.Tenant, Name: k.Name, Scopes: wordsOf(k.Scopes),
		CreatedAt: k.CreatedAt, ExpiresAt: isSet(k.ExpiresAt), RevokedAt: isSet(k.RevokedAt), LastUsedAt: isSet(k.LastUsedAt),
		FormerUntil: isSet(k.FormerHashUntil), FormerWebhookUntil: isSet(k.FormerUntil), Limits: limitsShape(k.Limits),
	}
}

// keyRequest is what an API key is made of.
type keyRequest struct {
	Tenant    string    `json:"tenant,omitempty" doc:"Made if it is new; the asking key's own if it is left out."`
	Name      string    `json:"name,omitempty" maxLength:"255"`
	Scopes    []string  `json:"scopes" minItems:"1" enum:"submit,read,operate,payloads,admin"`
	ExpiresAt string    `json:"expires_at,omitempty" format:"date-time"`
	Limits    keyLimits `json:"limits,omitempty" doc:"None if it is left out."`
}

func (a *api) keyRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/keys", name: "createKey", tag: "keys", scope: ledger.ScopeAdmin, status: http.StatusCreated,
		summary: "Make an API key; the answer shows its secrets once",
		headers: []answerHeader{{name: "Location"}},
	}, createKey)
	handle(a, route{
		method: http.MethodGet, path: "/v1/keys", name: "listKeys", tag: "keys", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "API keys without their secrets, newest first",
	}, listKeys)
	handle(a, route{
		method: http.MethodGet, path: "/v1/keys/{id}", name: "getKey", tag: "keys", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "One API key without its secrets; its ETag goes into If-Match of changes", headers: []answerHeader{{name: "ETag"}},
	}, getKey)
	handle(a, route{
		method: http.MethodDelete, path: "/v1/keys/{id}", name: "revokeKey", tag: "keys", scope: ledger.ScopeAdmin, status: http.StatusNoContent,
		summary: "Revoke an API key; what is owed to its callback addresses is still sent",
	}, revokeKey)
	handle(a, route{
		method: http.MethodGet, path: "/v1/whoami", name: "whoami", tag: "keys", status: http.StatusOK,
		summary: "The API key that asks",
	}, func(c *call, _ none) (keyJSON, error) { return c.showKey(c.by) })
	a.keyChangeRoutes()
}

func createKey(c *call, in keyRequest) (keyJSON, error) {
	key, err := in.key(c)
	if err != nil {
		return keyJSON{}, err
	}
	secret, err := NewKeySecret()
	if err != nil {
		return keyJSON{}, err
	}
	webhookSecret, err := webhook.NewSecret(nil)
	if err != nil {
		return keyJSON{}, err
	}
	if key.WebhookSecret, err = c.seal(key.ID, webhookSecret); err != nil {
		return keyJSON{}, err
	}
	key.Hash = hashKey(secret)
	out, err := c.do(c.ctx, ledger.CreateKey{Header: c.head(), Key: key})
	if err != nil {
		return keyJSON{}, err
	}
	shown := keyShape(out.Value.(ledger.APIKey))
	c.header.Set("Location", "/v1/keys/"+shown.ID)
	shown.Secret, shown.WebhookSecret = secret, webhookSecret
	return shown, nil
}

// key checks the request and gives the key without its secrets.
func (in keyRequest) key(c *call) (ledger.APIKey, error) {
	key := ledger.APIKey{ID: store.NewID(), Tenant: in.Tenant, Name: in.Name}
	if key.Tenant == "" {
		key.Tenant = c.by.Tenant
		if c.tenant != "" {
			key.Tenant = c.tenant
		}
	}
	var f faults
	f.check(tenantName.MatchString(key.Tenant), "/tenant", badTenantName)
	f.check(plainText(in.Name, maxWord), "/name", "is longer than 255 bytes or holds control characters")
	var ok bool
	key.Scopes, ok = parseScopes(in.Scopes)
	f.check(ok, "/scopes", "must list some of submit, read, operate, payloads and admin, each once")
	if in.ExpiresAt != "" {
		at, err := strict.ParseTime(in.ExpiresAt)
		f.check(err == nil && at.After(time.Now()), "/expires_at", "must be a time to come, such as 2030-01-02T15:04:05Z")
		key.ExpiresAt = pawl.TimeOf(at)
	}
	key.Limits = in.Limits.read(&f, c.ups)
	return key, f.err()
}

func listKeys(c *call, _ none) (page[keyJSON], error) {
	read := func(p store.Page) ([]ledger.APIKey, error) {
		return c.opts.Reader.APIKeys(c.ctx, store.APIKeyFilter{Tenant: c.tenant}, p)
	}
	return listed(c, read, func(k ledger.APIKey) pawl.ID { return k.ID }, c.showKeys)
}

// apiKey is the API key in the path, if the call may see it.
func (c *call) apiKey() (ledger.APIKey, error) {
	id, err := c.id(pawl.PrefixKey)
	if err != nil {
		return ledger.APIKey{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{APIKeys: []pawl.ID{id}})
	if err != nil {
		return ledger.APIKey{}, err
	}
	k, ok := rows.APIKeys.Get(id)
	if !ok || !c.sees(k.Tenant) {
		return k, errNotFound
	}
	return k, nil
}

func getKey(c *call, _ none) (keyJSON, error) {
	k, err := c.apiKey()
	if err != nil {
		return keyJSON{}, err
	}
	c.header.Set("ETag", etagOf(k.Version))
	return c.showKey(k)
}

func revokeKey(c *call, _ none) (none, error) {
	k, err := c.apiKey()
	if err != nil {
		return none{}, err
	}
	_, err = c.do(c.ctx, ledger.RevokeKey{Header: c.head(), Tenant: c.tenant, ID: k.ID})
	c.keys.forget(k.Hash, k.FormerHash)
	return none{}, err
}
