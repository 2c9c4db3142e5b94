package api

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/webhook"
)

// The key pair that the Standard Webhooks specification prints, and a symmetric secret.
const (
	publishedSigningKey = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	publishedPublicKey  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	symmetricSecret     = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// The secret of a v1a endpoint is shown once, its public key whenever it is read.
func TestSigningKeyOfEndpoint(t *testing.T) {
	g := newRig(t)
	made := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/in","scheme":"standard-webhooks-v1a"}`).want(201, "")
	secret, public := made.text("secret"), made.text("public_key")
	scheme, _ := webhook.Lookup("standard-webhooks-v1a")
	key, err := scheme.ParseKey(secret)
	if err != nil || !key.CanSign() || key.PublicKey() != public || !strings.HasPrefix(public, "whpk_") {
		t.Fatalf("public key %q of the secret shown (%v)", public, err)
	}
	path := "/v1/endpoints/" + made.text("id")
	for _, a := range []answer{
		g.call("reader", "GET", path, ""), g.call("acme", "PATCH", path, `{"owner":"ops"}`, "If-Match", `"1"`), g.call("acme", "POST", path+"/pause", ""),
	} {
		if a.want(200, ""); a.text("public_key") != public || a.text("secret") != "" || strings.Contains(string(a.body), secret[5:]) {
			t.Errorf("%s", a.body)
		}
	}
	if items := g.call("reader", "GET", "/v1/endpoints", "").want(200, "").items(); len(items) != 1 || items[0]["public_key"] != public {
		t.Errorf("%v", items)
	}

	rotated := g.call("acme", "POST", path+"/rotate-secret", `{"secret":"`+publishedSigningKey+`"}`).want(200, "")
	if rotated.text("public_key") != publishedPublicKey || rotated.text("secret") != publishedSigningKey || rotated.text("former_secret_until") == "" {
		t.Errorf("%s", rotated.body)
	}
	if a := g.call("reader", "GET", path, "").want(200, ""); a.text("public_key") != publishedPublicKey {
		t.Errorf("%s", a.body)
	}
	plain := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/in"}`).want(201, "")
	if _, shown := plain.json["public_key"]; shown {
		t.Errorf("%s", plain.body)
	}
}

func TestSecretsUnfitForTheScheme(t *testing.T) {
	g := newRig(t)
	v1a := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/in","scheme":"standard-webhooks-v1a"}`).want(201, "").text("id")
	v1 := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/in"}`).want(201, "").text("id")
	for name, c := range map[string]struct{ path, body, hint string }{
		"public key":              {"/v1/endpoints", `{"url":"https://a.example.com/","scheme":"standard-webhooks-v1a","secret":"` + publishedPublicKey + `"}`, "whsk_"},
		"symmetric for v1a":       {"/v1/endpoints", `{"url":"https://a.example.com/","scheme":"standard-webhooks-v1a","secret":"` + symmetricSecret + `"}`, "whsk_"},
		"signing key for v1":      {"/v1/endpoints", `{"url":"https://a.example.com/","secret":"` + publishedSigningKey + `"}`, "Ed25519"},
		"signing key for media":   {"/v1/endpoints", `{"url":"https://a.example.com/","scheme":"media-v2","secret":"` + publishedSigningKey + `"}`, "Ed25519"},
		"rotate to a public key":  {"/v1/endpoints/" + v1a + "/rotate-secret", `{"secret":"` + publishedPublicKey + `"}`, "whsk_"},
		"rotate to a symmetric":   {"/v1/endpoints/" + v1a + "/rotate-secret", `{"secret":"` + symmetricSecret + `"}`, "whsk_"},
		"rotate to a signing key": {"/v1/endpoints/" + v1 + "/rotate-secret", `{"secret":"` + publishedSigningKey + `"}`, "Ed25519"},
	} {
		a := g.call("acme", "POST", c.path, c.body).want(400, "invalid_request")
		fault := a.json["errors"].([]any)[0].(map[string]any)
		if fault["pointer"] != "#/secret" || !strings.Contains(string(a.body), c.hint) || strings.Contains(string(a.body), publishedSigningKey[5:]) {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

// R39: an endpoint goes over to the other Standard Webhooks scheme, and back, in
// a rotation.
func TestRotationToTheOtherScheme(t *testing.T) {
	g := newRig(t)
	path := "/v1/endpoints/" + g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/in"}`).want(201, "").text("id")
	there := g.call("acme", "POST", path+"/rotate-secret", `{"scheme":"standard-webhooks-v1a"}`).want(200, "")
	if there.text("scheme") != "standard-webhooks-v1a" || !strings.HasPrefix(there.text("secret"), "whsk_") ||
		!strings.HasPrefix(there.text("public_key"), "whpk_") || there.text("former_secret_until") == "" {
		t.Errorf("%s", there.body)
	}
	back := g.call("acme", "POST", path+"/rotate-secret", `{"scheme":"standard-webhooks"}`).want(200, "")
	if back.text("scheme") != "standard-webhooks" || !strings.HasPrefix(back.text("secret"), "whsec_") || back.json["public_key"] != nil {
		t.Errorf("%s", back.body)
	}
	for _, scheme := range []string{"media-v2", "body-timestamp", "rot13"} {
		g.call("acme", "POST", path+"/rotate-secret", `{"scheme":"`+scheme+`"}`).want(400, "invalid_request")
	}
	media := g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/in","scheme":"media-v2"}`).want(201, "").text("id")
	g.call("acme", "POST", "/v1/endpoints/"+media+"/rotate-secret", `{"scheme":"standard-webhooks"}`).want(400, "invalid_request")
	// A single signature is the new secret's at once, so no end of the former is shown.
	if a := g.call("acme", "POST", "/v1/endpoints/"+media+"/rotate-secret", `{"overlap":"24h"}`).want(200, ""); a.json["former_secret_until"] != nil {
		t.Errorf("%s", a.body)
	}
}

func TestRotationUntil(t *testing.T) {
	g := newRig(t)
	path := "/v1/endpoints/" + g.call("acme", "POST", "/v1/endpoints", `{"url":"https://a.example.com/in"}`).want(201, "").text("id")
	until := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	a := g.call("acme", "POST", path+"/rotate-secret", `{"until":"`+until.Format(time.RFC3339)+`"}`).want(200, "")
	if want := until.Format("2006-01-02T15:04:05.000000Z"); a.text("former_secret_until") != want {
		t.Errorf("until %s, want %s", a.text("former_secret_until"), want)
	}
	if a := g.call("reader", "GET", path, "").want(200, ""); a.text("former_secret_until") != until.Format("2006-01-02T15:04:05.000000Z") {
		t.Errorf("%s", a.body)
	}
	g.call("acme", "POST", path+"/rotate-secret", `{"until":"`+until.Format(time.RFC3339)+`","overlap":"1h"}`).want(400, "invalid_request")
	g.call("acme", "POST", path+"/rotate-secret", `{"until":"tomorrow"}`).want(400, "invalid_request")
	g.call("acme", "POST", path+"/rotate-secret", `{"until":"2020-01-01T00:00:00Z"}`).want(400, "invalid_request")
}

// The ends of what may be asked for, to the nanosecond.
func TestFormerUntil(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		overlap, until string
		want           time.Time // zero: refused
	}{
		{"", "", now.Add(24 * time.Hour)},
		{"0s", "", now},
		{"90m", "", now.Add(90 * time.Minute)},
		{"720h", "", now.Add(720 * time.Hour)},
		{"720h0m0.000000001s", "", time.Time{}},
		{"-1s", "", time.Time{}},
		{"a day", "", time.Time{}},
		{"", "2026-03-01T12:00:00Z", time.Time{}},
		{"", "2026-03-01T12:00:00.000001Z", now.Add(time.Microsecond)},
		{"", "2026-03-01T13:00:00+01:00", time.Time{}},
		{"", "2026-03-01T14:00:00+01:00", now.Add(time.Hour)},
		{"", "2026-03-31T12:00:00Z", now.Add(720 * time.Hour)},
		{"", "2026-03-31T12:00:00.000001Z", time.Time{}},
		{"", "2026-03-02", time.Time{}},
		{"1h", "2026-03-02T00:00:00Z", time.Time{}},
	} {
		var f faults
		got := formerUntil(&f, now, tt.overlap, tt.until)
		if refused := f.err() != nil; refused != tt.want.IsZero() || !refused && got != pawl.TimeOf(tt.want) {
			t.Errorf("overlap %q, until %q: %v, %v", tt.overlap, tt.until, got, f.err())
		}
	}
}
