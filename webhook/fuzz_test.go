package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// The key pair that the Standard Webhooks specification prints.
const (
	publishedSecret = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	publishedPublic = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
)

// FuzzParseSigningKey: a key has one spelling, says truly whether it can sign, and
// what it signs its own public key verifies.
func FuzzParseSigningKey(f *testing.F) {
	for _, seed := range []string{publishedSecret, publishedPublic, "", "whsk_", "whpk_", "whsk1_AA==", "whsec_AAAA"} {
		f.Add(seed)
	}
	scheme, _ := Lookup("standard-webhooks-v1a")
	f.Fuzz(func(t *testing.T, secret string) {
		k, err := scheme.ParseKey(secret)
		if err != nil {
			if k.secret != nil || !errors.Is(err, ReasonMalformedKey) {
				t.Fatalf("refused with a key, or for %v", err)
			}
			return
		}
		b := k.secret()
		prefix := map[int]string{ed25519.PublicKeySize: "whpk_", ed25519.PrivateKeySize: "whsk_"}[len(b)]
		if prefix+base64.StdEncoding.EncodeToString(b) != secret {
			t.Fatalf("read as another key of %d bytes", len(b))
		}
		public, err := scheme.ParseKey(k.PublicKey())
		if err != nil || public.CanSign() || k.CanSign() != (prefix == "whsk_") {
			t.Fatalf("public half %q: %v; can sign: %v, %v", k.PublicKey(), err, k.CanSign(), public.CanSign())
		}
		if !k.CanSign() {
			return
		}
		h, err := scheme.Sign(Message{ID: "e", Timestamp: 1, Body: []byte(secret)}, k)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scheme.Verify(Request{Header: h, Body: []byte(secret)}, time.Unix(1, 0), public); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzSignatureList: a list is accepted exactly if one of its tokens is, to the
// letter, the one that the key makes, and the list is within its bounds.
func FuzzSignatureList(f *testing.F) {
	now := time.Unix(1790000000, 0)
	message := Message{ID: "evt_1", Timestamp: now.Unix(), Body: []byte("{}")}
	type receiver struct {
		scheme Scheme
		key    Key
		token  string
	}
	var receivers []receiver
	for name, secret := range map[string]string{
		"standard-webhooks":     "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
		"standard-webhooks-v1a": publishedSecret,
	} {
		s, _ := Lookup(name)
		k, err := s.ParseKey(secret)
		if err != nil {
			f.Fatal(err)
		}
		h, err := s.Sign(message, k)
		if err != nil {
			f.Fatal(err)
		}
		token := h.Get("Webhook-Signature")
		receivers = append(receivers, receiver{s, k, token})
		for _, seed := range []string{token, token + " ", " " + token, token + "\n", "v1,AA== v1a,AA== " + token, strings.Repeat("v1a,AA== ", 4) + token,
			strings.Repeat(token+" ", 5), token + "," + token, strings.ToUpper(token), token[:len(token)-1], "v1a," + token, "v2," + token} {
			f.Add(seed)
		}
	}
	f.Fuzz(func(t *testing.T, value string) {
		tokens := strings.Split(value, " ")
		asymmetric := 0
		for _, token := range tokens {
			encoded, ok := strings.CutPrefix(token, "v1a,")
			_, err := base64.StdEncoding.Strict().DecodeString(encoded)
			if ok && err == nil && !strings.ContainsAny(encoded, "\r\n") {
				asymmetric++
			}
		}
		h := http.Header{"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {"1790000000"}, "Webhook-Signature": {value}}
		for _, r := range receivers {
			_, err := r.scheme.Verify(Request{Header: h, Body: message.Body}, now, r.key)
			bounded := len(tokens) <= 16 && (r.scheme.Name() == "standard-webhooks" || asymmetric <= 4)
			if want := bounded && slices.Contains(tokens, r.token); (err == nil) != want {
				t.Fatalf("%s: %q: %v, want accepted %v", r.scheme.Name(), value, err, want)
			}
			if err != nil && !errors.Is(err, ReasonNoMatch) && !errors.Is(err, ReasonMalformedHeader) {
				t.Fatalf("%s: %v", r.scheme.Name(), err)
			}
		}
	})
}

// FuzzStripeHeader: the header is accepted exactly if it holds one timestamp, the
// one that was signed, and the signature of the key beside it, within its bounds.
func FuzzStripeHeader(f *testing.F) {
	now := time.Unix(1790000000, 0)
	scheme, _ := Lookup("stripe")
	key, err := scheme.ParseKey("whsec_test_secret_a")
	if err != nil {
		f.Fatal(err)
	}
	body := []byte(`{"id":"evt_1"}`)
	h, err := scheme.Sign(Message{Timestamp: now.Unix(), Body: body}, key)
	if err != nil {
		f.Fatal(err)
	}
	good := h.Get("Stripe-Signature")
	timestamp, signature, _ := strings.Cut(good, ",")
	for _, seed := range []string{good, signature + "," + timestamp, timestamp, signature, good + "," + timestamp, good + ",v0=00", good + "," + signature,
		"t=1790000001," + signature, "t=," + signature, " " + good, good + " ", timestamp + ", " + signature, timestamp + "," + strings.ToUpper(signature),
		timestamp + strings.Repeat(",v1=00", 14) + "," + signature, timestamp + strings.Repeat(",v1=00", 15) + "," + signature} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		elements := strings.Split(value, ",")
		times := slices.DeleteFunc(slices.Clone(elements), func(e string) bool { return !strings.HasPrefix(e, "t=") })
		want := len(elements) <= 16 && slices.Equal(times, []string{timestamp}) && slices.Contains(elements, signature)
		_, err := scheme.Verify(Request{Header: http.Header{"Stripe-Signature": {value}}, Body: body}, now, key)
		if (err == nil) != want {
			t.Fatalf("%q: %v, want accepted %v", value, err, want)
		}
	})
}
