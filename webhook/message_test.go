package webhook_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

const (
	messageSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // rawSecret
	messageURL    = "https://hooks.example.com/in?a=1&b=%20"
	messageBody   = `{"hello": "world"}`
)

func rfc9421(t testing.TB) webhook.Scheme { return lookup(t, "rfc9421") }

// messageHeaders are made by a formula of our own from RFC 9421 §2.5: a base
// that is written out, one signature over it.
func messageHeaders(covered, params string, values map[string]string, sign func(base string) []byte) http.Header {
	var base strings.Builder
	for _, name := range strings.Fields(covered) {
		fmt.Fprintf(&base, "%s: %s\n", name, values[strings.Trim(name, `"`)])
	}
	input := "(" + covered + ")" + params
	base.WriteString(`"@signature-params": ` + input)
	return headers("webhook-id", values["webhook-id"], "content-type", values["content-type"], "content-digest", values["content-digest"],
		"signature-input", "x="+input, "signature", "x=:"+base64.StdEncoding.EncodeToString(sign(base.String()))+":")
}

func messageValues() map[string]string {
	sum := sha256.Sum256([]byte(messageBody))
	return map[string]string{
		"@method": "POST", "@target-uri": messageURL, "@authority": "hooks.example.com", "@path": "/in", "@query": "?a=1&b=%20",
		"content-digest": "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":", "content-type": "application/json", "webhook-id": "evt_1",
	}
}

func withMAC(base string) []byte { return mac(rawSecret, base) }

const fullCover = `"@method" "@target-uri" "content-digest" "content-type" "webhook-id"`

// What another implementation signs is verified, and what Sign makes is what the
// formula says.
func TestMessageAgreesWithFormula(t *testing.T) {
	s := rfc9421(t)
	created := fmt.Sprint(";created=", signedAt)
	private, _ := base64.StdEncoding.DecodeString(publishedSigningKey[len("whsk_"):])
	for name, c := range map[string]struct {
		covered, params, secret string
		sign                    func(string) []byte
	}{
		"whole address":   {fullCover, created, messageSecret, withMAC},
		"in parts":        {`"webhook-id" "@authority" "@path" "@query" "content-type" "content-digest" "@method"`, created + `;alg="hmac-sha256";keyid="any"`, messageSecret, withMAC},
		"unknown params":  {fullCover, created + `;nonce="x\"y";p=tok/en;q;r=?0;s=-5;t=:AA==:`, messageSecret, withMAC},
		"ed25519":         {fullCover, created + `;alg="ed25519"`, publishedPublicKey, func(b string) []byte { return ed25519.Sign(private, []byte(b)) }},
		"ends later":      {fullCover, created + fmt.Sprint(";expires=", signedAt), messageSecret, withMAC},
		"alg is not said": {fullCover, created + `;keyid="k"`, publishedPublicKey, func(b string) []byte { return ed25519.Sign(private, []byte(b)) }},
	} {
		v, err := s.Verify(webhook.Request{Header: messageHeaders(c.covered, c.params, messageValues(), c.sign), Body: []byte(messageBody), URL: messageURL}, now, parse(t, s, c.secret))
		if err != nil || v.ID != "evt_1" || v.Timestamp.Unix() != signedAt || v.Key != 0 {
			t.Errorf("%s: %+v %v", name, v, err)
		}
	}
	h, err := s.Sign(webhook.Message{ID: "evt_1", Timestamp: signedAt, URL: messageURL, Body: []byte(messageBody)}, parse(t, s, messageSecret))
	if err != nil {
		t.Fatal(err)
	}
	params := strings.TrimPrefix(h.Get("Signature-Input"), "sig1=("+fullCover+")")
	want := messageHeaders(fullCover, params, messageValues(), withMAC)
	if got := h.Get("Signature"); got != "sig1"+strings.TrimPrefix(want.Get("Signature"), "x") || h.Get("Content-Digest") != want.Get("Content-Digest") {
		t.Errorf("%v", h)
	}
	// RFC 9530 appendix D prints this digest.
	if h.Get("Content-Digest") != "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:" {
		t.Errorf("digest %s", h.Get("Content-Digest"))
	}
	if !strings.HasPrefix(params, created+fmt.Sprint(";expires=", signedAt+300)+`;keyid="`) || !strings.HasSuffix(params, `;alg="hmac-sha256";tag="webhook"`) {
		t.Errorf("parameters %s", params)
	}
}

// Two secrets sign side by side while one replaces the other, of either kind
// (7-rules R39).
func TestMessageRotation(t *testing.T) {
	s := rfc9421(t)
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret of thirty-two byte"))
	keys := []webhook.Key{parse(t, s, messageSecret), parse(t, s, publishedSigningKey)}
	h, err := s.Sign(webhook.Message{ID: "evt_1", Timestamp: signedAt, URL: messageURL, Body: []byte(messageBody)}, keys...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(h.Get("Signature-Input"), ", sig2=(") || !strings.Contains(h.Get("Signature"), ", sig2=:") {
		t.Errorf("%v", h)
	}
	r := webhook.Request{Header: h, Body: []byte(messageBody), URL: messageURL}
	for i, given := range [][]string{{messageSecret}, {publishedPublicKey}, {other, messageSecret}, {other, publishedPublicKey}} {
		var keys []webhook.Key
		for _, secret := range given {
			keys = append(keys, parse(t, s, secret))
		}
		if v, err := s.Verify(r, now, keys...); err != nil || v.Key != len(given)-1 {
			t.Errorf("%d: %+v %v", i, v, err)
		}
	}
	if _, err := s.Verify(r, now, parse(t, s, other)); !errors.Is(err, webhook.ReasonNoMatch) {
		t.Errorf("a third key: %v", err)
	}
	// A foreign signature beside ours, under whatever label, is not our business.
	h.Set("Signature-Input", `proxy=("@status");created=1, `+h.Get("Signature-Input"))
	h.Set("Signature", "proxy=:AAAA:, "+h.Get("Signature"))
	if _, err := s.Verify(r, now, keys[0]); err != nil {
		t.Errorf("beside a foreign one: %v", err)
	}
	if !s.Beside(s) {
		t.Error("no room for two")
	}
}

func TestMessageRefuses(t *testing.T) {
	s := rfc9421(t)
	key := parse(t, s, messageSecret)
	created := fmt.Sprint(";created=", signedAt)
	good := func() webhook.Request {
		return webhook.Request{Header: messageHeaders(fullCover, created, messageValues(), withMAC), Body: []byte(messageBody), URL: messageURL}
	}
	signed := func(covered, params string, change ...string) func(*webhook.Request) {
		return func(r *webhook.Request) {
			values := messageValues()
			for i := 0; i < len(change); i += 2 {
				values[change[i]] = change[i+1]
			}
			r.Header = messageHeaders(covered, params, values, withMAC)
		}
	}
	set := func(name, value string) func(*webhook.Request) {
		return func(r *webhook.Request) { r.Header.Set(name, value) }
	}
	sum := messageValues()["content-digest"]
	for name, c := range map[string]struct {
		change func(*webhook.Request)
		want   webhook.Reason
	}{
		"another body":           {func(r *webhook.Request) { r.Body = []byte(messageBody + " ") }, webhook.ReasonNoMatch},
		"another address":        {func(r *webhook.Request) { r.URL += "&c=2" }, webhook.ReasonNoMatch},
		"another host":           {func(r *webhook.Request) { r.URL = "https://other.example.com/in?a=1&b=%20" }, webhook.ReasonNoMatch},
		"another id":             {set("Webhook-Id", "evt_2"), webhook.ReasonNoMatch},
		"another type":           {set("Content-Type", "text/plain"), webhook.ReasonNoMatch},
		"no address":             {func(r *webhook.Request) { r.URL = "" }, webhook.ReasonNoURL},
		"a path for an address":  {func(r *webhook.Request) { r.URL = "/in" }, webhook.ReasonNoURL},
		"no id":                  {func(r *webhook.Request) { r.Header.Del("Webhook-Id") }, webhook.ReasonMissingHeader},
		"no digest":              {func(r *webhook.Request) { r.Header.Del("Content-Digest") }, webhook.ReasonMissingHeader},
		"no signature":           {func(r *webhook.Request) { r.Header.Del("Signature") }, webhook.ReasonMissingHeader},
		"no input":               {func(r *webhook.Request) { r.Header.Del("Signature-Input") }, webhook.ReasonMissingHeader},
		"two ids":                {func(r *webhook.Request) { r.Header.Add("Webhook-Id", "evt_1") }, webhook.ReasonMalformedHeader},
		"method not covered":     {signed(`"@target-uri" "content-digest" "content-type" "webhook-id"`, created), webhook.ReasonMalformedHeader},
		"address not covered":    {signed(`"@method" "content-digest" "content-type" "webhook-id"`, created), webhook.ReasonMalformedHeader},
		"query not covered":      {signed(`"@method" "@authority" "@path" "content-digest" "content-type" "webhook-id"`, created), webhook.ReasonMalformedHeader},
		"body not covered":       {signed(`"@method" "@target-uri" "content-type" "webhook-id"`, created), webhook.ReasonMalformedHeader},
		"type not covered":       {signed(`"@method" "@target-uri" "content-digest" "webhook-id"`, created), webhook.ReasonMalformedHeader},
		"id not covered":         {signed(`"@method" "@target-uri" "content-digest" "content-type"`, created), webhook.ReasonMalformedHeader},
		"covered twice":          {signed(fullCover+` "webhook-id"`, created), webhook.ReasonMalformedHeader},
		"covers what is not":     {signed(fullCover+` "x-absent"`, created), webhook.ReasonMalformedHeader},
		"no moment":              {signed(fullCover, `;keyid="k"`), webhook.ReasonMalformedTimestamp},
		"moment as text":         {signed(fullCover, `;created="1790000000"`), webhook.ReasonMalformedTimestamp},
		"moment in milliseconds": {signed(fullCover, `;created=1790000000000`), webhook.ReasonMalformedTimestamp},
		"too old":                {signed(fullCover, fmt.Sprint(";created=", signedAt-301)), webhook.ReasonStaleTimestamp},
		"of the future":          {signed(fullCover, fmt.Sprint(";created=", signedAt+301)), webhook.ReasonFutureTimestamp},
		"expired":                {signed(fullCover, created+fmt.Sprint(";expires=", signedAt-1)), webhook.ReasonStaleTimestamp},
		"another algorithm":      {signed(fullCover, created+`;alg="ed25519"`), webhook.ReasonNoMatch},
		"unheard algorithm":      {signed(fullCover, created+`;alg="none"`), webhook.ReasonNoMatch},
		"a deprecated digest":    {signed(fullCover, created, "content-digest", sum+", md5=:AAAA:"), webhook.ReasonMalformedHeader},
		"another digest alone":   {signed(fullCover, created, "content-digest", "sha-512=:AAAA:"), webhook.ReasonMalformedHeader},
		"no structured field":    {set("Signature-Input", `x=("@method"`), webhook.ReasonMalformedHeader},
		"a label twice":          {set("Signature", "x=:AAAA:, x=:AAAA:"), webhook.ReasonMalformedHeader},
		"another label":          {func(r *webhook.Request) { r.Header.Set("Signature", "y"+r.Header.Get("Signature")[1:]) }, webhook.ReasonMalformedHeader},
		"not in base64":          {set("Signature", "x=AAAA"), webhook.ReasonMalformedHeader},
		"another secret": {func(r *webhook.Request) {
			r.Header = messageHeaders(fullCover, created, messageValues(), func(b string) []byte { return mac("x", b) })
		}, webhook.ReasonNoMatch},
	} {
		r := good()
		c.change(&r)
		if v, err := s.Verify(r, now, key); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v, want %s", name, v, err, c.want)
		}
	}
	if _, err := s.Verify(good(), now, key); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	for name, shift := range map[string]int64{"first moment": -300, "last moment": 300} {
		r := good()
		signed(fullCover, fmt.Sprint(";created=", signedAt+shift))(&r)
		if _, err := s.Verify(r, now, key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := good()
	input, signature := many.Header.Get("Signature-Input"), many.Header.Get("Signature")
	for i := range 4 {
		many.Header.Add("Signature-Input", fmt.Sprint("y", i)+input[1:])
		many.Header.Add("Signature", fmt.Sprint("y", i)+signature[1:])
	}
	if _, err := s.Verify(many, now, key); !errors.Is(err, webhook.ReasonMalformedHeader) {
		t.Errorf("five signatures that cover everything: %v", err)
	}
}

func TestMessageSignRefuses(t *testing.T) {
	s := rfc9421(t)
	for name, m := range map[string]webhook.Message{
		"no address":   {ID: "evt_1", Timestamp: signedAt},
		"no time":      {ID: "evt_1", URL: messageURL},
		"no id":        {Timestamp: signedAt, URL: messageURL},
		"content type": {ID: "evt_1", Timestamp: signedAt, URL: messageURL, ContentType: "text/plain\r\nX: y"},
	} {
		if h, err := s.Sign(m, parse(t, s, messageSecret)); !errors.Is(err, webhook.ReasonMalformedMessage) {
			t.Errorf("%s: %v %v", name, h, err)
		}
	}
}

// The address is signed as a receiver sees it (RFC 9421 §2.2.2, RFC 9110 §4.2.3).
func TestMessageAddress(t *testing.T) {
	s := rfc9421(t)
	key := parse(t, s, messageSecret)
	for sent, seen := range map[string]string{
		"HTTPS://Hooks.Example.COM:443": "https://hooks.example.com/", "http://h:80/a%20b": "http://h/a%20b", "https://h:8443/x#part": "https://h:8443/x",
	} {
		h, err := s.Sign(webhook.Message{ID: "evt_1", Timestamp: signedAt, URL: sent}, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Verify(webhook.Request{Header: h, URL: seen}, time.Unix(signedAt, 0), key); err != nil {
			t.Errorf("%s as %s: %v", sent, seen, err)
		}
	}
}
