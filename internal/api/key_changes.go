package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/webhook"
)

func (a *api) keyChangeRoutes() {
	one := route{tag: "keys", scope: ledger.ScopeAdmin, status: http.StatusOK, method: http.MethodPost, headers: []answerHeader{{name: "ETag"}}}
	patch, rotate, secret := one, one, one
	patch.method, patch.path, patch.name, patch.match = http.MethodPatch, "/v1/keys/{id}", "changeKey", true
	patch.summary, patch.refuses = "Change a key's name, expiry or limits; members that are left out stay", reasons{http.StatusConflict: {"key_ended"}}
	rotate.path, rotate.name = "/v1/keys/{id}/rotate", "rotateKey"
	rotate.summary, rotate.refuses = "Give a key a new secret, shown once; the former one is valid beside it for a time", reasons{http.StatusConflict: {"key_ended"}}
	secret.path, secret.name = "/v1/keys/{id}/rotate-webhook-secret", "rotateKeyWebhookSecret"
	secret.summary = "Give a key a new webhook secret, shown once; the former one signs beside it for a time"
	handle(a, patch, changeKey)
	handle(a, rotate, rotateKey)
	handle(a, secret, rotateWebhookSecret)
}

// clearable is a text that may also be taken away, with null.
type clearable struct {
	given bool
	text  string
}

// UnmarshalJSON reads a text or null.
func (o *clearable) UnmarshalJSON(b []byte) error {
	o.given = true
	var text *string
	err := json.Unmarshal(b, &text)
	if text != nil {
		o.text = *text
	}
	return err
}

// Schema describes a time or null.
func (clearable) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeString, Format: "date-time"}, {Type: "null"}}}
}

// keyPatch changes an API key; what is left out stays.
type keyPatch struct {
	Name      *string    `json:"name,omitempty" maxLength:"255"`
	ExpiresAt clearable  `json:"expires_at,omitempty" doc:"null for never."`
	Limits    *keyLimits `json:"limits,omitempty" doc:"In place of all limits; an empty object for none."`
}

func changeKey(c *call, in keyPatch) (keyJSON, error) {
	k, err := c.apiKey()
	if err != nil {
		return keyJSON{}, err
	}
	version, err := ifMatch(c.r.Header.Values("If-Match"), k.Version)
	if err != nil {
		return keyJSON{}, err
	}
	cmd := ledger.ChangeKey{Header: c.head(), Tenant: c.tenant, ID: k.ID, IfVersion: version, Name: in.Name}
	var f faults
	f.check(plainText(value(in.Name), maxWord), "/name", "is longer than 255 bytes or holds control characters")
	if in.ExpiresAt.given {
		var at pawl.Time
		if in.ExpiresAt.text != "" {
			moment, err := strict.ParseTime(in.ExpiresAt.text)
			f.check(err == nil && moment.After(time.Now()), "/expires_at", "must be a time to come, such as 2030-01-02T15:04:05Z, or null for never; DELETE revokes the key now")
			at = pawl.TimeOf(moment)
		}
		cmd.ExpiresAt = &at
	}
	if in.Limits != nil {
		limits := in.Limits.read(&f, c.ups)
		cmd.Limits = &limits
	}
	if err := f.err(); err != nil {
		return keyJSON{}, err
	}
	return c.changedKey(k, cmd)
}

// changedKey has a change of a key decided and shows the key as it is then.
func (c *call) changedKey(was ledger.APIKey, cmd ledger.Command) (keyJSON, error) {
	out, err := c.do(c.ctx, cmd)
	c.keys.forget(was.Hash, was.FormerHash)
	if err != nil {
		return keyJSON{}, err
	}
	k := out.Value.(ledger.APIKey)
	c.header.Set("ETag", etagOf(k.Version))
	return c.showKey(k)
}

// overlapRequest says how long a former secret goes on.
type overlapRequest struct {
	Overlap string `json:"overlap,omitempty" example:"24h" doc:"How long the former secret goes on; 24h if it is left out, at most 720h."`
	Until   string `json:"until,omitempty" format:"date-time" doc:"When it ends, in place of overlap; at most 720h from now."`
}

func (in overlapRequest) read() (pawl.Time, error) {
	var f faults
	until := formerUntil(&f, time.Now(), in.Overlap, in.Until)
	return until, f.err()
}

func rotateKey(c *call, in overlapRequest) (keyJSON, error) {
	k, err := c.apiKey()
	if err != nil {
		return keyJSON{}, err
	}
	until, err := in.read()
	if err != nil {
		return keyJSON{}, err
	}
	secret, err := NewKeySecret()
	if err != nil {
		return keyJSON{}, err
	}
	shown, err := c.changedKey(k, ledger.RotateKey{Header: c.head(), Tenant: c.tenant, ID: k.ID, Hash: hashKey(secret), FormerUntil: until})
	if err == nil {
		shown.Secret = secret
	}
	return shown, err
}

func rotateWebhookSecret(c *call, in overlapRequest) (keyJSON, error) {
	k, err := c.apiKey()
	if err != nil {
		return keyJSON{}, err
	}
	until, err := in.read()
	if err != nil {
		return keyJSON{}, err
	}
	secret, err := webhook.NewSecret(nil)
	if err != nil {
		return keyJSON{}, err
	}
	sealed, err := c.seal(k.ID, secret)
	if err != nil {
		return keyJSON{}, err
	}
	shown, err := c.changedKey(k, ledger.RotateWebhookSecret{Header: c.head(), Tenant: c.tenant, ID: k.ID, Secret: sealed, FormerUntil: until})
	if err == nil {
		shown.WebhookSecret = secret
	}
	return shown, err
}

// etagOf is the ETag of a version.
func etagOf(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }
