package api

import (
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/dialect"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/webhook"
)

// outbound are the schemes that events can be signed in; the others are senders'.
var outbound = []string{"standard-webhooks", "standard-webhooks-v1a", "media-v2", "body-timestamp", "rfc9421"}

// The contents that events of generic sources can be sent as (7-rules R20).
const (
	nativeContent = "native"
	// maxCompleteWithin is the longest time for a report.
	maxCompleteWithin = 30 * 24 * time.Hour
)

const (
	defaultScheme = "standard-webhooks"
	// The kinds of endpoints that are made by request.
	kindWebhook, kindFeed = "webhook", "feed"
	// maxDescription bounds free text that people write, in bytes.
	maxDescription = 1000
)

// endpointRequest is what an endpoint is made of.
type endpointRequest struct {
	Kind         string            `json:"kind,omitempty" enum:"webhook,feed" doc:"webhook if it is left out. A feed has no url: its receiver fetches the events."`
	URL          string            `json:"url,omitempty" format:"uri" doc:"Where events are sent to; a webhook needs one."`
	Types        []string          `json:"types,omitempty" doc:"All but operation.progress if it is left out."`
	Scheme       string            `json:"scheme,omitempty" doc:"How events are signed; standard-webhooks if it is left out."`
	Secret       string            `json:"secret,omitempty" doc:"Drawn if it is left out."`
	Description  string            `json:"description,omitempty" maxLength:"1000"`
	Owner        string            `json:"owner,omitempty" maxLength:"255"`
	Policy       ledger.PolicyJSON `json:"policy,omitempty"`
	Content      string            `json:"content,omitempty" enum:"native,original" doc:"What events of generic sources are sent as: wrapped (native, if it is left out), or the bytes that were received."`
	Installation bool              `json:"installation,omitempty" doc:"It belongs to the installation and to no tenant: it is told of reviews, paused upstreams, disabled endpoints and dead letters of all tenants, and of nothing else. Needs the scope admin."`
	// CompleteWithin is a duration.
	CompleteWithin string `json:"complete_within,omitempty" doc:"How long after its 2xx the receiver has for POST /v1/deliveries/{id}/complete, such as 10m; a 2xx is the end if it is left out."`
}

func (in endpointRequest) content() string {
	if in.Content == nativeContent {
		return ""
	}
	return in.Content
}

func (in endpointRequest) scheme() string {
	if in.Scheme == "" {
		return defaultScheme
	}
	return in.Scheme
}

func (in endpointRequest) check() error {
	var f faults
	feed := in.Kind == kindFeed
	f.check(in.Kind == "" || in.Kind == kindWebhook || feed, "/kind", "must be webhook or feed")
	f.check(in.URL != "" || feed, "/url", "is missing")
	f.check(in.URL == "" || !feed, "/url", "an endpoint of kind feed has none")
	f.check(slices.Contains(outbound, in.scheme()), "/scheme", "must be one of "+strings.Join(outbound, ", "))
	f.check(in.Content == "" || in.Content == nativeContent || in.Content == ledger.OriginalContent, "/content", "must be native or original")
	f.check(in.content() == "" || !dialect.Spoken(in.scheme()), "/content", noHandler)
	completeWithin(&f, in.CompleteWithin)
	checkReports(&f, in.CompleteWithin, in.scheme(), feed)
	checkEndpoint(&f, in.Types, in.Description, in.Owner, in.Installation)
	f.check(!in.Installation || !dialect.Spoken(in.scheme()), "/scheme", "the dialects have no words for the installation; choose another scheme")
	checkPolicy(&f, in.scheme(), in.Policy)
	return f.err()
}

func checkEndpoint(f *faults, types []string, description, owner string, installation bool) {
	for i, t := range types {
		if installation {
			f.check(pawl.InstallationType(t) && !slices.Contains(types[:i], t), "/types", "an endpoint of the installation may ask for review.opened, upstream.paused, endpoint.disabled and delivery.dead, each once")
			continue
		}
		if strings.Contains(t, "*") {
			f.add("/types", "are whole words, there are no patterns: leave types out for all but operation.progress, or name each")
			break
		}
		known := slices.ContainsFunc(eventTypes, func(e eventType) bool { return e.name == t })
		if !known && !pawl.ValidWantedType(t) || slices.Contains(types[:i], t) {
			f.add("/types", "holds a type twice, or one that nothing can have: GET /v1/event-types lists Pawl's own; a sender's, by itself or as SOURCE.TYPE, and those that you publish are 1 to 255 visible ASCII characters without comma")
			break
		}
	}
	f.check(plainText(description, maxDescription), "/description", "is longer than 1000 bytes or holds control characters")
	f.check(plainText(owner, maxWord), "/owner", "is longer than 255 bytes or holds control characters")
}

// completeWithin reads how long a receiver has for its report; nothing asks for
// none.
func completeWithin(f *faults, text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	f.check(err == nil && d >= time.Second && d <= maxCompleteWithin, "/complete_within", "must be a duration from 1s to 720h, such as 10m")
	return d
}

// noHandler is said of what only handlers of generic sources' events have.
const noHandler = "an endpoint of scheme media-v2 or body-timestamp gets no events of generic sources; leave it out, or choose another scheme"

// checkReports refuses a time for reports that nobody will ever be asked for.
func checkReports(f *faults, within, scheme string, feed bool) {
	f.check(within == "" || !dialect.Spoken(scheme), "/complete_within", noHandler)
	f.check(within == "" || !feed, "/complete_within", "nothing is sent to an endpoint of kind feed, so that no report is awaited; leave it out")
}

func checkPolicy(f *faults, scheme string, p ledger.PolicyJSON) {
	if _, err := p.Of(scheme); err != nil {
		f.add("/policy", err.Error())
	}
}

// signingSecret is a secret that signs, and the key that verifies what it signs
// where that is another one.
type signingSecret struct{ text, public string }

// secretFor is the given secret if the scheme can sign with it, or a new one.
func secretFor(scheme, given string) (signingSecret, error) {
	s, _ := webhook.Lookup(scheme)
	text, err := given, error(nil)
	if given == "" {
		if text, err = s.NewSecret(nil); err != nil {
			return signingSecret{}, err
		}
	}
	var f faults
	key, err := s.ParseKey(text)
	if err != nil {
		f.add("/secret", err.Error())
		return signingSecret{}, f.err()
	}
	f.check(key.CanSign(), "/secret", "is a public key, which cannot sign; give the secret one, which begins with whsk_")
	return signingSecret{text, key.PublicKey()}, f.err()
}

// patchRequest changes an endpoint; nil leaves a member as it is.
type patchRequest struct {
	URL         *string            `json:"url,omitempty" format:"uri"`
	Types       *[]string          `json:"types,omitempty"`
	Description *string            `json:"description,omitempty" maxLength:"1000"`
	Owner       *string            `json:"owner,omitempty" maxLength:"255"`
	Policy      *ledger.PolicyJSON `json:"policy,omitempty" doc:"An empty object stands for the scheme's own."`
	// CompleteWithin is a duration, or empty.
	CompleteWithin *string `json:"complete_within,omitempty" doc:"How long a receiver has for its report from now on; empty for no report."`
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
		checkEndpoint(&f, *in.Types, "", "", e.Installation())
	}
	checkEndpoint(&f, nil, value(in.Description), value(in.Owner), false)
	if in.CompleteWithin != nil {
		within := completeWithin(&f, *in.CompleteWithin)
		checkReports(&f, *in.CompleteWithin, e.Scheme, e.Feed())
		change.CompleteWithin = &within
	}
	if in.Policy != nil {
		text := in.Policy.Text()
		change.Policy = &text
		checkPolicy(&f, e.Scheme, *in.Policy)
	}
	if err := f.err(); err != nil {
		return endpointJSON{}, err
	}
	if in.URL != nil && e.Feed() {
		f.add("/url", "an endpoint of kind feed has none")
		return endpointJSON{}, f.err()
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
