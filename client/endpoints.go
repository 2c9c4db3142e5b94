package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
)

const endpoints = "/v1/endpoints"

// Endpoint is where a tenant's events go.
type Endpoint struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Kind is webhook, feed (its events are fetched, see [Client.Feed]), or
	// callback for one that came from a callback_url.
	Kind   string   `json:"kind"`
	URL    string   `json:"url"`
	Types  []string `json:"types"`
	Scheme string   `json:"scheme"`
	// Content says how events of generic sources are sent: native (wrapped), or
	// original, as the bytes that were received.
	Content     string `json:"content"`
	Description string `json:"description"`
	Owner       string `json:"owner"`
	// Policy is how deliveries are tried; nil for the scheme's own.
	Policy         *Policy `json:"policy"`
	Disabled       bool    `json:"disabled"`
	DisabledReason string  `json:"disabled_reason"`
	// CompleteWithin is how long a receiver that took an event has to report that
	// it is done, such as "10m"; empty where a 2xx is the end.
	CompleteWithin string    `json:"complete_within"`
	Version        int64     `json:"version"`
	CreatedAt      pawl.Time `json:"created_at"`
	UpdatedAt      pawl.Time `json:"updated_at"`
	// FormerSecretUntil is until when the secret before the last rotation signs
	// too.
	FormerSecretUntil pawl.Time `json:"former_secret_until"`
	// PublicKey verifies what the secret signs, where the scheme has one.
	PublicKey string `json:"public_key"`
	// Secret is in the answers to a creation and a rotation alone.
	Secret Secret `json:"secret"`
}

// Policy is how deliveries to an endpoint are tried. Durations are written as Go
// writes them ("15s"); what is empty is the scheme's own.
type Policy struct {
	Attempts int      `json:"attempts,omitempty"`
	Timeout  string   `json:"timeout,omitempty"`
	MaxAge   string   `json:"max_age,omitempty"`
	Schedule []string `json:"schedule,omitempty"`
}

// NewEndpoint is what an endpoint is made of.
type NewEndpoint struct {
	// URL is where events are sent to. Without one it is a feed.
	URL string
	// Types are the wanted ones; all but operation.progress if empty.
	Types []string
	// Scheme is how events are signed; standard-webhooks if empty. Secret is drawn
	// if empty.
	Scheme      string
	Secret      Secret
	Description string
	Owner       string
	Policy      *Policy
	// Content is native if empty; it and CompleteWithin: see [Endpoint].
	Content        string
	CompleteWithin time.Duration
}

// CreateEndpoint adds an endpoint. The answer shows its secret, once. It is not
// repeated where it may have been carried out: see [Client.Endpoints] after an
// [*Unanswered].
func (c *Client) CreateEndpoint(ctx context.Context, e NewEndpoint) (Endpoint, error) {
	kind, within := "", ""
	if e.URL == "" {
		kind = "feed"
	}
	if e.CompleteWithin > 0 {
		within = e.CompleteWithin.String()
	}
	return made[Endpoint](ctx, c, call{method: http.MethodPost, path: endpoints, in: struct {
		Kind           string   `json:"kind,omitempty"`
		URL            string   `json:"url,omitempty"`
		Types          []string `json:"types,omitempty"`
		Scheme         string   `json:"scheme,omitempty"`
		Secret         string   `json:"secret,omitempty"`
		Description    string   `json:"description,omitempty"`
		Owner          string   `json:"owner,omitempty"`
		Policy         *Policy  `json:"policy,omitempty"`
		Content        string   `json:"content,omitempty"`
		CompleteWithin string   `json:"complete_within,omitempty"`
	}{kind, e.URL, e.Types, e.Scheme, string(e.Secret), e.Description, e.Owner, e.Policy, e.Content, within}})
}

// Endpoints lists endpoints, newest first.
func (c *Client) Endpoints(ctx context.Context) iter.Seq2[Endpoint, error] {
	return list[Endpoint](ctx, c, endpoints, nil)
}

// Endpoint reads an endpoint.
func (c *Client) Endpoint(ctx context.Context, id string) (Endpoint, error) {
	return made[Endpoint](ctx, c, get(endpoints+"/"+segment(id), nil))
}

// EndpointChange changes an endpoint; nil leaves a member as it is.
type EndpointChange struct {
	URL         *string   `json:"url,omitempty"`
	Types       *[]string `json:"types,omitempty"`
	Description *string   `json:"description,omitempty"`
	Owner       *string   `json:"owner,omitempty"`
	// Policy in place of the whole one; an empty one for the scheme's own.
	Policy *Policy `json:"policy,omitempty"`
	// CompleteWithin: empty for no report.
	CompleteWithin *string `json:"complete_within,omitempty"`
}

// ChangeEndpoint changes an endpoint that was read before: if it was changed
// since, the error is [ErrChanged] and nothing is overwritten.
func (c *Client) ChangeEndpoint(ctx context.Context, e Endpoint, change EndpointChange) (Endpoint, error) {
	return made[Endpoint](ctx, c, call{method: http.MethodPatch, path: endpoints + "/" + segment(e.ID), in: change, ifMatch: etag(e.Version)})
}

func etag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// DeleteEndpoint deletes an endpoint; what waits for it is skipped. One that is
// deleted already is no error.
func (c *Client) DeleteEndpoint(ctx context.Context, id string) error {
	err := c.do(ctx, call{method: http.MethodDelete, path: endpoints + "/" + segment(id), safe: true}, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// RotateSecret gives an endpoint a new secret, which is in the answer, once; the
// former one signs beside it for the overlap, 24 hours if zero.
func (c *Client) RotateSecret(ctx context.Context, id string, overlap time.Duration) (Endpoint, error) {
	return made[Endpoint](ctx, c, call{method: http.MethodPost, path: endpoints + "/" + segment(id) + "/rotate-secret", in: rotation(overlap)})
}

func rotation(overlap time.Duration) any {
	text := ""
	if overlap > 0 {
		text = overlap.String()
	}
	return struct {
		Overlap string `json:"overlap,omitempty"`
	}{text}
}

// EnableEndpoint sends to an endpoint again, from the oldest that waits.
func (c *Client) EnableEndpoint(ctx context.Context, id string) (Endpoint, error) {
	return made[Endpoint](ctx, c, repeatable(endpoints+"/"+segment(id)+"/enable", struct{}{}))
}

// PauseEndpoint sends nothing to an endpoint; what is owed waits.
func (c *Client) PauseEndpoint(ctx context.Context, id string) (Endpoint, error) {
	return made[Endpoint](ctx, c, repeatable(endpoints+"/"+segment(id)+"/pause", struct{}{}))
}

// TestEndpoint sends an event to one endpoint alone that says that it is a test,
// whatever types that asks for. An empty kind is the first that it asks for, and
// nil data the example of the kind.
func (c *Client) TestEndpoint(ctx context.Context, id, kind string, data json.RawMessage) (Delivery, error) {
	return made[Delivery](ctx, c, keyed(endpoints+"/"+segment(id)+"/test", "", struct {
		Type string          `json:"type,omitempty"`
		Data json.RawMessage `json:"data,omitempty"`
	}{kind, data}))
}
