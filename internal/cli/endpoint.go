package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
)

// endpointCmd are the commands about endpoints.
type endpointCmd struct {
	Create       endpointCreateCmd `cmd:"" help:"Have events delivered to a URL; shows the signing secret, once."`
	List         endpointListCmd   `cmd:"" help:"List endpoints."`
	Get          endpointGetCmd    `cmd:"" help:"Show an endpoint."`
	Update       endpointUpdateCmd `cmd:"" help:"Change an endpoint."`
	Delete       endpointDeleteCmd `cmd:"" help:"Delete an endpoint; what it has not got yet is skipped."`
	RotateSecret endpointRotateCmd `cmd:"" name:"rotate-secret" help:"Make a new signing secret; the former one signs too for a while."`
	Test         endpointTestCmd   `cmd:"" help:"Send a test event to an endpoint and show what it answered."`
	Enable       endpointEnableCmd `cmd:"" help:"Go on delivering, from the oldest event on."`
	Pause        endpointPauseCmd  `cmd:"" help:"Stop delivering; events wait."`
}

const endpoints = "/v1/endpoints"

// endpointArg names an endpoint.
type endpointArg struct {
	ID string `arg:"" help:"The endpoint, ep_…."`
}

func (a endpointArg) path() string { return endpoints + "/" + id(a.ID) }

// endpointFields are what may be said about an endpoint; nil leaves it alone.
type endpointFields struct {
	Types       *[]string `help:"Only events of these types; all but progress if not given." placeholder:"TYPE"`
	Policy      *string   `help:"Delivery policy as a JSON object: itself or @FILE." placeholder:"JSON"`
	Description *string   `help:"What it is for." placeholder:"TEXT"`
	Owner       *string   `help:"Who answers for it." placeholder:"TEXT"`
	// CompleteWithin is a duration, or empty.
	CompleteWithin *string `name:"complete-within" help:"How long after its 2xx the receiver has to report that it is done, such as 10m; empty for no report." placeholder:"DURATION"`
}

// endpointBody is the body of a create and of an update.
type endpointBody struct {
	Kind         string          `json:"kind,omitempty"`
	URL          string          `json:"url,omitempty"`
	Types        *[]string       `json:"types,omitempty"`
	Scheme       string          `json:"scheme,omitempty"`
	Description  *string         `json:"description,omitempty"`
	Owner        *string         `json:"owner,omitempty"`
	Policy       json.RawMessage `json:"policy,omitempty"`
	Content      string          `json:"content,omitempty"`
	Installation bool            `json:"installation,omitempty"`

	CompleteWithin *string `json:"complete_within,omitempty"`
}

func (f endpointFields) body(s *session) (endpointBody, error) {
	b := endpointBody{Types: f.Types, Description: f.Description, Owner: f.Owner, CompleteWithin: f.CompleteWithin}
	if f.Policy == nil {
		return b, nil
	}
	policy, err := s.object("--policy", *f.Policy)
	b.Policy = policy
	return b, err
}

type endpointCreateCmd struct {
	endpointFields
	URL          string `arg:"" optional:"" help:"Where to deliver to."`
	Feed         bool   `help:"In place of a URL: its events are fetched (GET /v1/events, pawl listen)."`
	Scheme       string `help:"How to sign: standard-webhooks, standard-webhooks-v1a, media-v2, body-timestamp or rfc9421." placeholder:"NAME"`
	Content      string `help:"What events of generic sources are sent as: native, or original for the bytes received." placeholder:"WORD"`
	Installation bool   `help:"For the installation and no tenant: told of reviews, paused upstreams, disabled endpoints and dead letters (scope admin)."`
	Tenant       string `help:"For this tenant (keys with scope admin)." placeholder:"NAME"`
}

// Help teaches by example.
func (endpointCreateCmd) Help() string {
	return examples(`pawl endpoint create https://app.example.com/webhooks`,
		`pawl endpoint create https://app.example.com/webhooks --types operation.succeeded,operation.failed`,
		`pawl endpoint create https://app.example.com/stripe --types invoice.paid --content original --complete-within 10m`,
		`pawl endpoint create --feed`,
		`pawl endpoint create --installation https://pager.example.com/pawl --types review.opened,upstream.paused`)
}

func (c *endpointCreateCmd) Run(s *session) error {
	b, err := c.body(s)
	if err != nil {
		return err
	}
	if (c.URL == "") != c.Feed {
		return usage("give the URL to deliver to, or --feed")
	}
	if b.URL, b.Scheme, b.Content = c.URL, c.Scheme, c.Content; c.Feed {
		b.Kind = "feed"
	}
	if c.Installation && c.Tenant != "" {
		return usage("an endpoint belongs to the installation or to a tenant")
	}
	b.Installation = c.Installation
	path := endpoints
	if c.Tenant != "" {
		path += "?tenant=" + url.QueryEscape(c.Tenant)
	}
	return s.send(http.MethodPost, path, b)
}

type endpointListCmd struct {
	listing
	Kind string `help:"webhook, or callback for those made of callback URLs." placeholder:"WORD"`
}

func (c *endpointListCmd) Run(s *session) error {
	return s.list(endpoints, c.query("kind", c.Kind), "id", "kind", "url", "scheme", "types", "content", "complete_within", "disabled", "owner", "created_at")
}

type endpointGetCmd struct{ endpointArg }

func (c *endpointGetCmd) Run(s *session) error { return s.show(c.path()) }

type endpointUpdateCmd struct {
	endpointArg
	endpointFields
	URL string `name:"url" help:"Where to deliver to from now on." placeholder:"URL"`
}

// Help teaches by example.
func (endpointUpdateCmd) Help() string {
	return examples(`pawl endpoint update ep_01… --types operation.succeeded --owner "team video"`)
}

func (c *endpointUpdateCmd) Run(s *session) error {
	b, err := c.body(s)
	if err != nil {
		return err
	}
	b.URL = c.URL
	text, err := encode(b)
	if err != nil {
		return err
	}
	if string(text) == "{}" {
		return usage("nothing to change: give at least one of --url, --types, --policy, --description, --owner, --complete-within")
	}
	return c.change(s, http.MethodPatch, text)
}

// change reads the endpoint first: the change is for the version that was
// read, and is refused if somebody else changes it in between.
func (a endpointArg) change(s *session, method string, body []byte) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	now, err := client.call(s.ctx, http.MethodGet, a.path(), nil, nil)
	if err != nil {
		return err
	}
	changed, err := client.call(s.ctx, method, a.path(), nil, body, "If-Match", now.header.Get("ETag"))
	if err != nil {
		return err
	}
	return s.answer(changed)
}

type endpointDeleteCmd struct{ endpointArg }

func (c *endpointDeleteCmd) Run(s *session) error { return c.change(s, http.MethodDelete, nil) }

// rotation is the body of a rotate-secret and the flags that it is made of.
type rotation struct {
	Overlap string `json:"overlap,omitempty" help:"How long the former secret signs too; 24h if not given." placeholder:"DURATION"`
	Until   string `json:"until,omitempty" help:"When the former secret ends, in place of --overlap." placeholder:"TIME"`
	Scheme  string `json:"scheme,omitempty" help:"Go over to the other Standard Webhooks scheme." placeholder:"NAME"`
}

type endpointRotateCmd struct {
	endpointArg
	rotation
}

// Help teaches by example.
func (endpointRotateCmd) Help() string {
	return examples(`pawl endpoint rotate-secret ep_01… --overlap 48h`,
		`pawl endpoint rotate-secret ep_01… --until 2030-01-02T15:04:05Z`,
		`pawl endpoint rotate-secret ep_01… --scheme standard-webhooks-v1a`)
}

func (c *endpointRotateCmd) Run(s *session) error {
	if c.rotation == (rotation{}) {
		return s.send(http.MethodPost, c.path()+"/rotate-secret", nil)
	}
	return s.send(http.MethodPost, c.path()+"/rotate-secret", c.rotation)
}

type endpointEnableCmd struct{ endpointArg }

func (c *endpointEnableCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/enable", nil)
}

type endpointPauseCmd struct{ endpointArg }

func (c *endpointPauseCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/pause", nil)
}
