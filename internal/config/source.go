package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Source is a sender of inbound events that is no upstream: a generic source
// (1-product C9). Where its event id and type are is the scheme's own, unless
// Event and Type say otherwise.
type Source struct {
	// Scheme names how it signs.
	Scheme string `yaml:"scheme"`
	// Secrets verify its events; several while rotating.
	Secrets []DatedSecret `yaml:"secrets"`
	// Tenant owns its events, whose handlers get them; empty means that nobody
	// does, and only admin keys see them.
	Tenant string `yaml:"tenant"`
	// Owner is who answers for it: free text, shown in reviews and with events.
	Owner string `yaml:"owner"`
	// Types are the event types that are known; empty means all.
	Types []string `yaml:"types"`
	// Event is where the event's id is: a pointer into the body, "signed-id" for
	// the one that the signature covers, or "digest" for a digest of the body.
	Event string `yaml:"event"`
	// Type is where the event's type is: a pointer into the body, or "header:NAME".
	Type string `yaml:"type"`
	// Headers are those that endpoints with content "original" get beside the body.
	Headers []string `yaml:"headers"`
	// ContentTypes are the media types that are taken; empty means JSON.
	ContentTypes []string `yaml:"content_types"`
	// CallbackRate is how many events a second are taken; 0 means any number.
	CallbackRate float64 `yaml:"callback_rate"`
	// Handshake is how it makes sure that the address is meant for it; nil means
	// that it is never answered.
	Handshake *Handshake `yaml:"handshake"`
	// Read is where the current record is read before an event is handed over; nil
	// means nowhere.
	Read *SourceRead `yaml:"read"`
	// List is where it lists what it has sent; nil if it does not.
	List *SourceList `yaml:"list"`
}

// Handshake is the answer to a sender that asks before it sends (1-product C8).
type Handshake struct {
	// Kind is one of the words below.
	Kind string `yaml:"kind"`
	// VerifyToken is what a request of kind "hub" must name.
	VerifyToken Secret `yaml:"verify_token"`
	// Topics are those that a request of kind "hub" may be about.
	Topics []string `yaml:"topics"`
	// Origins are the DNS names that may send, of kind "cloudevents"; "*" is any.
	Origins []string `yaml:"origins"`
	// Rate is how many events a minute such an origin is allowed; 0 means any
	// number.
	Rate int `yaml:"rate"`
}

// The kinds of handshakes.
const (
	// HandshakeSlack is Slack's url_verification.
	HandshakeSlack = "slack"
	// HandshakeZoom is Zoom's endpoint.url_validation.
	HandshakeZoom = "zoom"
	// HandshakeHub is the GET with hub.challenge of WebSub and Meta.
	HandshakeHub = "hub"
	// HandshakeCloudEvents is the OPTIONS of CloudEvents over HTTP.
	HandshakeCloudEvents = "cloudevents"
)

// SourceRead is a GET of the record that an event is about.
type SourceRead struct {
	// URL is its address, in which "{/data/id}" stands for what the body has there.
	URL string `yaml:"url"`
	// Key is the credential, sent in Header (Authorization if that is empty) as
	// Format (Bearer {key} if that is).
	Key    Secret `yaml:"key"`
	Header string `yaml:"header"`
	Format string `yaml:"format"`
	// Timeout bounds the read; 0 means 5 s.
	Timeout time.Duration `yaml:"timeout"`
}

// maxReadTimeout leaves the delivery itself its time within the lease.
const maxReadTimeout = 10 * time.Second

var (
	typeShape      = regexp.MustCompile(`^[!-+\--~]{1,128}$`) // visible ASCII without the comma
	mediaTypeShape = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$`)
	originShape    = regexp.MustCompile(`^(\*|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)$`)
)

// Limits of the lists of a source.
const (
	maxTypes   = 500
	maxHeaders = 32
	maxOrigins = 100
)

func (k *checker) source(name string, s Source) {
	key := join("sources", name)
	if !entryName.MatchString(name) {
		k.say(key, badName)
	}
	if _, taken := k.config.Upstreams[name]; taken {
		k.say(key, "has the name of an upstream, which is a source already; rename it")
	}
	if !schemeName.MatchString(s.Scheme) {
		k.say(key+".scheme", "must name how the source signs, such as stripe or standard-webhooks")
	}
	k.rotation(key+".secrets", s.Secrets)
	if s.Tenant != "" && !entryName.MatchString(s.Tenant) {
		k.say(key+".tenant", badName)
	}
	k.printable(key+".owner", s.Owner, 200)
	k.each(key+".types", s.Types, maxTypes, typeShape.MatchString, "must be the sender's own word: at most 128 visible characters without a comma")
	k.each(key+".headers", s.Headers, maxHeaders, forwardable, "cannot be passed on: name a header of the sender's own in letters, digits and hyphens that holds no credential or signature")
	k.each(key+".content_types", s.ContentTypes, maxHeaders, mediaTypeShape.MatchString, "must be a media type in lower case without parameters, such as application/json")
	if s.CallbackRate != 0 {
		k.within(key+".callback_rate", s.CallbackRate, 0.001, 10_000)
	}
	if s.Handshake != nil {
		k.handshake(key+".handshake", *s.Handshake)
	}
	if s.Read != nil {
		k.sourceRead(key+".read", *s.Read)
	}
	if s.List != nil {
		k.sourceList(key+".list", *s.List)
	}
}

func (k *checker) each(key string, all []string, most int, good func(string) bool, what string) {
	if len(all) > most {
		k.say(key, fmt.Sprintf("holds more than %d entries; remove some", most))
		return
	}
	for i, text := range all {
		if !good(text) || slices.Contains(all[:i], text) {
			k.say(fmt.Sprintf("%s[%d]", key, i), what+", and be there once")
		}
	}
}

// forwardable reports whether a header may be passed on to handlers: none that
// is about the connection, is set by Pawl itself, or is secret by its name.
func forwardable(name string) bool {
	low := strings.ToLower(name)
	switch low {
	case "host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect",
		"content-length", "content-type", "content-encoding", "user-agent", "traceparent", "forwarded", "referer":
		return false
	}
	ours := strings.HasPrefix(low, "webhook-") || strings.HasPrefix(low, "pawl-") || strings.HasPrefix(low, "proxy-") ||
		strings.HasPrefix(low, "x-forwarded-") || strings.HasPrefix(low, "x-webhook-")
	return headerName.MatchString(name) && !ours && !SecretHeader(low)
}

// SecretHeader reports whether a header of that name, in lower case, holds a
// credential or a signature, and so is neither stored nor passed on.
func SecretHeader(name string) bool {
	for _, part := range [...]string{"authorization", "cookie", "signature", "secret", "token", "key", "hmac", "password"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func (k *checker) handshake(key string, h Handshake) {
	k.oneOf(key+".kind", h.Kind, HandshakeSlack, HandshakeZoom, HandshakeHub, HandshakeCloudEvents)
	hub, cloud := h.Kind == HandshakeHub, h.Kind == HandshakeCloudEvents
	if hub && h.VerifyToken.IsZero() && len(h.Topics) == 0 {
		k.say(key, "answers anybody; give verify_token, or the topics that may be confirmed")
	}
	if !hub && (!h.VerifyToken.IsZero() || len(h.Topics) > 0) {
		k.say(key, "verify_token and topics are for kind hub; remove them")
	}
	if cloud && len(h.Origins) == 0 {
		k.say(key+".origins", "is missing; name the origins that may send, such as [events.example.com]")
	}
	if !cloud && (len(h.Origins) > 0 || h.Rate != 0) {
		k.say(key, "origins and rate are for kind cloudevents; remove them")
	}
	k.each(key+".topics", h.Topics, maxOrigins, func(t string) bool { return len(t) <= 2048 && t != "" }, "must be the topic's address")
	k.each(key+".origins", h.Origins, maxOrigins, originShape.MatchString, "must be a DNS name, or * for any")
	if h.Rate != 0 {
		k.within(key+".rate", float64(h.Rate), 1, 1_000_000)
	}
}

func (k *checker) sourceRead(key string, r SourceRead) {
	if r.URL == "" {
		k.say(key+".url", "is missing; write the record's address, such as https://api.example.com/orders/{/data/id}")
	}
	k.credential(key, r.Key, r.Header, r.Format)
	if r.Timeout != 0 && (r.Timeout < 0 || r.Timeout > maxReadTimeout) {
		k.say(key+".timeout", "must be longer than 0 and at most 10s")
	}
}

// credential checks how a key is sent with a read.
func (k *checker) credential(at string, key Secret, header, format string) {
	if strings.ContainsAny(key.Reveal(), "\r\n") {
		k.say(at+".key", "has a line break, which no header can carry; write it on one line")
	}
	if header != "" && !headerName.MatchString(header) {
		k.say(at+".header", "must name the header that carries the key in letters, digits and hyphens, such as Authorization")
	}
	if format != "" && !strings.Contains(format, "{key}") {
		k.say(at+".format", "must contain {key}, such as Bearer {key}")
	}
	k.printable(at+".format", format, 200)
}
