package webhook_test

import (
	"errors"
	"testing"

	"github.com/pawlhq/pawl/webhook"
)

// The signatures are those of "openssl dgst -METHOD -hmac SECRET" over the body.
// SHA-1 is refused however good it is, and so are other methods and spellings.
func TestWebSub(t *testing.T) {
	s := lookup(t, "websub")
	key := parse(t, s, rawSecret)
	body := []byte(`{"version":"https://jsonfeed.org/version/1"}`)
	const (
		sha256 = "8e79b0597ca4807c0d550c8b86587db7a134dfc4ee584e8edbc96d39e6213f5f"
		sha384 = "699b6d0fecb9e42c37d4e0421b4821838dd81c508d1633bef1715161049847553059c8a13ef76358f22965b6472be80a"
		sha512 = "0a5a34a7c76021a8f67b5a22fd2fddc791c17aa16d24ff574c315f048240b484ae015d3057e37128f1277d2b05dc22e622e62d4d0decf686cc87e61f7522a928"
	)
	for _, tt := range []struct {
		header string
		want   webhook.Reason
	}{
		{"sha256=" + sha256, ""},
		{"sha384=" + sha384, ""},
		{"sha512=" + sha512, ""},
		{"sha1=17b94f778b18620f11036ebc125f891d6cd71ac0", webhook.ReasonNoMatch},
		{"sha256=17b94f778b18620f11036ebc125f891d6cd71ac0", webhook.ReasonNoMatch},
		{"sha512=" + sha256, webhook.ReasonNoMatch},
		{"sha256=" + sha512[:64], webhook.ReasonNoMatch},
		{"SHA256=" + sha256, webhook.ReasonNoMatch},
		{"md5=" + sha256[:32], webhook.ReasonNoMatch},
		{sha256, webhook.ReasonNoMatch},
		{"sha256=" + sha256 + ",sha512=" + sha512, webhook.ReasonNoMatch},
		{"", webhook.ReasonNoMatch},
	} {
		_, err := s.Verify(webhook.Request{Header: headers("x-hub-signature", tt.header), Body: body}, now, key)
		if tt.want == "" && err != nil || tt.want != "" && !errors.Is(err, tt.want) {
			t.Errorf("%.20q: %v, want %q", tt.header, err, tt.want)
		}
	}
}
