package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
)

const keys = "/v1/keys"

// APIKey is a credential of one tenant.
type APIKey struct {
	ID     string   `json:"id"`
	Tenant string   `json:"tenant"`
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	// Limits is what it is limited to; nil for nothing.
	Limits     *KeyLimits `json:"limits"`
	CreatedAt  pawl.Time  `json:"created_at"`
	ExpiresAt  pawl.Time  `json:"expires_at"`
	RevokedAt  pawl.Time  `json:"revoked_at"`
	LastUsedAt pawl.Time  `json:"last_used_at"`
	// Secret is the credential and WebhookSecret signs what is sent to its
	// operations' callback_url; each is shown once, when it is made.
	Secret        Secret `json:"secret"`
	WebhookSecret Secret `json:"webhook_secret"`
}

// KeyLimits are what an API key is limited to beside its scopes; what is left out
// is not limited.
type KeyLimits struct {
	Rate *struct {
		PerSecond float64 `json:"per_second"`
		Burst     int     `json:"burst,omitempty"`
	} `json:"rate,omitempty"`
	Budget *struct {
		Amount   string `json:"amount"`
		Currency string `json:"currency"`
		Used     string `json:"used,omitempty"`
	} `json:"budget,omitempty"`
	// Upstreams are the only ones that it may submit to.
	Upstreams []string `json:"upstreams,omitempty"`
}

// NewAPIKey is what an API key is made of.
type NewAPIKey struct {
	// Tenant is made if it is new; the asking key's own if empty.
	Tenant string `json:"tenant,omitempty"`
	Name   string `json:"name,omitempty"`
	// Scopes are some of submit, read, operate, payloads and admin.
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Limits    *KeyLimits `json:"limits,omitempty"`
}

// CreateKey makes an API key; the answer shows its secrets, once. It is not
// repeated where it may have been carried out.
func (c *Client) CreateKey(ctx context.Context, k NewAPIKey) (APIKey, error) {
	return made[APIKey](ctx, c, call{method: http.MethodPost, path: keys, in: k})
}

// Keys lists API keys without their secrets, newest first.
func (c *Client) Keys(ctx context.Context) iter.Seq2[APIKey, error] {
	return list[APIKey](ctx, c, keys, nil)
}

// Key reads an API key without its secrets.
func (c *Client) Key(ctx context.Context, id string) (APIKey, error) {
	return made[APIKey](ctx, c, get(keys+"/"+segment(id), nil))
}

// Whoami is the API key that this client uses.
func (c *Client) Whoami(ctx context.Context) (APIKey, error) {
	return made[APIKey](ctx, c, get("/v1/whoami", nil))
}

// RotateKey gives a key a new secret, which is in the answer, once; the former
// one is valid beside it for the overlap, 24 hours if zero.
func (c *Client) RotateKey(ctx context.Context, id string, overlap time.Duration) (APIKey, error) {
	return made[APIKey](ctx, c, call{method: http.MethodPost, path: keys + "/" + segment(id) + "/rotate", in: rotation(overlap)})
}

// RotateWebhookSecret gives a key a new webhook secret, which is in the answer,
// once; the former one signs beside it for the overlap, 24 hours if zero.
func (c *Client) RotateWebhookSecret(ctx context.Context, id string, overlap time.Duration) (APIKey, error) {
	return made[APIKey](ctx, c, call{method: http.MethodPost, path: keys + "/" + segment(id) + "/rotate-webhook-secret", in: rotation(overlap)})
}

// RevokeKey ends an API key; what is owed to its callback addresses is still
// sent.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: keys + "/" + segment(id), safe: true}, nil)
}
