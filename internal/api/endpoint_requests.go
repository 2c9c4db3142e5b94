package api

import (
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/webhook"
)

const (
	defaultScheme = "standard-webhooks"
	// maxDescription bounds free text that people write, in bytes.
	maxDescription = 1000
	// A former secret signs beside its successor for defaultOverlap, or as long
	// as the request says.
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 30 * 24 * time.Hour
)

// endpointRequest is what an endpoint is made of.
type endpointRequest struct {
	URL         string            `json:"url" format:"uri"`
	Types       []string          `json:"types,omitempty" doc:"All but operation.progress if it is left out."`
	Scheme      string            `json:"scheme,omitempty" doc:"How events are signed; standard-webhooks if it is left out."`
	Secret      string            `json:"secret,omitempty" doc:"Drawn if it is left out."`
	Description string            `json:"description,omitempty" maxLength:"1000"`
	Owner       string            `json:"owner,omitempty" maxLength:"255"`
	Policy      ledger.PolicyJSON `json:"policy,omitempty"`
}

func (in endpointRequest) scheme() string {
	if in.Scheme == "" {
		return defaultScheme
	}
	return in.Scheme
}

func (in endpointRequest) check() error {
	var f faults
	f.check(in.URL != "", "/url", "is missing")
	f.check(slices.Contains(webhook.Names(), in.scheme()), "/scheme", "must be one of "+strings.Join(webhook.Names(), ", "))
	checkEndpoint(&f, in.Types, in.Description, in.Owner)
	checkPolicy(&f, in.scheme(), in.Policy)
	return f.err()
}

func checkEndpoint(f *faults, types []string, description, owner string) {
	for i, t := range types {
		known := slices.ContainsFunc(eventTypes, func(e eventType) bool { return e.name == t })
		if !known || slices.Contains(types[:i], t) {
			f.add("/types", "holds an unknown or repeated type; GET /v1/event-types lists them")
			break
		}
	}
	f.check(plainText(description, maxDescription), "/description", "is longer than 1000 bytes or holds control characters")
	f.check(plainText(owner, maxWord), "/owner", "is longer than 255 bytes or holds control characters")
}

func checkPolicy(f *faults, scheme string, p ledger.PolicyJSON) {
	if _, err := p.Of(scheme); err != nil {
		f.add("/policy", err.Error())
	}
}

// secret is the given secret if the scheme can use it, or a new one.
func (in endpointRequest) secret() (string, error) { return secretFor(in.scheme(), in.Secret) }

func secretFor(scheme, given string) (string, error) {
	if given == "" {
		return webhook.NewSecret(nil)
	}
	s, _ := webhook.Lookup(scheme)
	if _, err := s.ParseKey(given); err != nil {
		var f faults
		f.add("/secret", err.Error())
		return "", f.err()
	}
	return given, nil
}

// patchRequest changes an endpoint; nil leaves a member as it is.
type patchRequest struct {
	URL         *string            `json:"url,omitempty" format:"uri"`
	Types       *[]string          `json:"types,omitempty"`
	Description *string            `json:"description,omitempty" maxLength:"1000"`
	Owner       *string            `json:"owner,omitempty" maxLength:"255"`
	Policy      *ledger.PolicyJSON `json:"policy,omitempty" doc:"An empty object stands for the scheme's own."`
}

func patchEndpoint(c *call, in patchRequest) (endpointJSON, error) {
	e, err := c.ownEndpoint()
	if err != nil {
		return endpointJSON{}, err
	}
	change := ledger.EndpointChange{URL: in.URL, Description: in.Description, Owner: in.Owner}
	var f faults
	if in.Types != nil {
		joined := strings.Join(*in.Types, ",")
		change.Types = &joined
		checkEndpoint(&f, *in.Types, "", "")
	}
	checkEndpoint(&f, nil, value(in.Description), value(in.Owner))
	if in.Policy != nil {
		text := in.Policy.Text()
		change.Policy = &text
		checkPolicy(&f, e.Scheme, *in.Policy)
	}
	if err := f.err(); err != nil {
		return endpointJSON{}, err
	}
	if in.URL != nil {
		if err := c.judgeURL(*in.URL, "/url"); err != nil {
			return endpointJSON{}, err
		}
	}
	return c.change(e, "change", change)
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// rotateRequest gives an endpoint a new secret.
type rotateRequest struct {
	Secret  string `json:"secret,omitempty" doc:"Drawn if it is left out."`
	Overlap string `json:"overlap,omitempty" example:"24h" doc:"How long the former secret signs too; 24h if it is left out, at most 720h."`
}

func rotateSecret(c *call, in rotateRequest) (endpointJSON, error) {
	e, err := c.ownEndpoint()
	if err != nil {
		return endpointJSON{}, err
	}
	overlap := defaultOverlap
	if in.Overlap != "" {
		var f faults
		overlap, err = time.ParseDuration(in.Overlap)
		f.check(err == nil && overlap >= 0 && overlap <= maxOverlap, "/overlap", "want a duration such as 24h, from 0s to 720h")
		if err := f.err(); err != nil {
			return endpointJSON{}, err
		}
	}
	secret, err := secretFor(e.Scheme, in.Secret)
	if err != nil {
		return endpointJSON{}, err
	}
	shown, err := c.change(e, "rotate_secret", ledger.EndpointChange{Secret: secret, FormerUntil: pawl.TimeOf(time.Now().Add(overlap))})
	if err == nil {
		shown.Secret = secret
	}
	return shown, err
}
