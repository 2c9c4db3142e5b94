package sender

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/internal/config"
)

// maxChallenge bounds what is said back to whoever asks, in bytes.
const maxChallenge = 1024

// Answer is the answer to a handshake.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// SignedHandshake answers a verified POST that is no event but a handshake of
// Slack or Zoom (5-providers §6); false where it is none, or the source is not
// configured for it. One that cannot be answered gets 400.
func (s Sender) SignedHandshake(h http.Header, body []byte, p Proof) (Answer, bool) {
	if s.settings.Handshake == nil {
		return Answer{}, false
	}
	switch s.settings.Handshake.Kind {
	case config.HandshakeSlack:
		return s.echo(h, body, "/type", "url_verification", "/challenge", func(challenge string) any {
			return map[string]string{"challenge": challenge}
		})
	case config.HandshakeZoom:
		return s.echo(h, body, "/event", "endpoint.url_validation", "/payload/plainToken", func(token string) any {
			mac := hmac.New(sha256.New, []byte(p.secret.Reveal()))
			mac.Write([]byte(token))
			return map[string]string{"plainToken": token, "encryptedToken": hex.EncodeToString(mac.Sum(nil))}
		})
	}
	return Answer{}, false
}

// echo answers a body whose kind is that of the handshake with what it asks for.
func (s Sender) echo(h http.Header, body []byte, kindAt, kind, textAt string, answer func(string) any) (Answer, bool) {
	values, err := s.values(h, body, kindAt, textAt)
	if err != nil {
		return Answer{}, false
	}
	if word, ok := values[kindAt].Text(); !ok || word != kind {
		return Answer{}, false
	}
	text, ok := values[textAt].Text()
	if !ok || !challenge(text) {
		return Answer{Status: http.StatusBadRequest}, true
	}
	said, err := json.Marshal(answer(text))
	if err != nil {
		return Answer{Status: http.StatusBadRequest}, true
	}
	return reply("application/json", said), true
}

// challenge reports whether a text may be said back: it is bounded and has
// nothing that any reader could take for more than text.
func challenge(text string) bool {
	return text != "" && len(text) <= maxChallenge && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// reply is a body that no browser will take for a page.
func reply(contentType string, body []byte) Answer {
	return Answer{Status: http.StatusOK, Body: body, Header: http.Header{
		"Content-Type": {contentType}, "X-Content-Type-Options": {"nosniff"}, "Content-Security-Policy": {"default-src 'none'"},
	}}
}

// Hub answers the GET of WebSub and Meta; false where the source is not configured
// for it. What is not expected gets 404, as the WebSub specification has it.
func (s Sender) Hub(query string) (Answer, bool) {
	h := s.settings.Handshake
	if h == nil || h.Kind != config.HandshakeHub {
		return Answer{}, false
	}
	refused := Answer{Status: http.StatusNotFound}
	q, ok := parseHub(query)
	switch {
	case !ok:
		return refused, true
	case q.mode == "denied":
		// The hub only tells that it will send nothing.
		return reply("text/plain; charset=utf-8", nil), true
	case q.mode != "subscribe" && q.mode != "unsubscribe":
		return refused, true
	case !h.VerifyToken.IsZero() && !hmac.Equal([]byte(q.token), []byte(h.VerifyToken.Reveal())):
		return refused, true
	case len(h.Topics) > 0 && !slices.Contains(h.Topics, q.topic):
		return refused, true
	case !challenge(q.challenge):
		return refused, true
	}
	return reply("text/plain; charset=utf-8", []byte(q.challenge)), true
}

// hub is what the query of a hub says.
type hub struct{ mode, topic, challenge, token string }

// maxQuery bounds a hub's query, in bytes.
const maxQuery = 8 << 10

// parseHub reads a query; false if it cannot be read in one way only.
func parseHub(query string) (q hub, ok bool) {
	if len(query) > maxQuery {
		return q, false
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return q, false
	}
	for name, into := range map[string]*string{"hub.mode": &q.mode, "hub.topic": &q.topic, "hub.challenge": &q.challenge, "hub.verify_token": &q.token} {
		if len(values[name]) > 1 {
			return hub{}, false
		}
		*into = values.Get(name)
	}
	return q, true
}

// Consent answers the OPTIONS of CloudEvents over HTTP, which asks whether an
// origin may send; false where the source is not configured for it. An address to
// call back, if it names one, is never called.
func (s Sender) Consent(h http.Header) (Answer, bool) {
	c := s.settings.Handshake
	if c == nil || c.Kind != config.HandshakeCloudEvents {
		return Answer{}, false
	}
	a := Answer{Status: http.StatusForbidden, Header: http.Header{"Allow": {http.MethodPost}}}
	origins := h.Values("Webhook-Request-Origin")
	if len(origins) != 1 || !domain(origins[0]) {
		return a, true
	}
	allowed := slices.ContainsFunc(c.Origins, func(o string) bool { return o == "*" || strings.EqualFold(o, origins[0]) })
	if !allowed {
		return a, true
	}
	a.Status = http.StatusOK
	a.Header.Set("Webhook-Allowed-Origin", origins[0])
	rate := "*"
	if c.Rate > 0 {
		rate = strconv.Itoa(c.Rate)
	}
	if asked, err := strconv.Atoi(h.Get("Webhook-Request-Rate")); err == nil && asked > 0 && (c.Rate == 0 || asked < c.Rate) {
		rate = strconv.Itoa(asked)
	}
	a.Header.Set("Webhook-Allowed-Rate", rate)
	return a, true
}

// domain reports whether a text can be the name of an origin.
func domain(text string) bool {
	return text != "" && len(text) <= 253 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-'
	})
}
