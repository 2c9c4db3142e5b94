package webhook_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/webhook"
)

const v1a = "standard-webhooks-v1a"

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// The first test vector of RFC 8032 §7.1: seed and public key.
const (
	rfcSeed   = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
	rfcPublic = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseEd25519Key(t *testing.T) {
	s := lookup(t, v1a)
	private := append(unhex(t, rfcSeed), unhex(t, rfcPublic)...)
	other := bytes.Clone(private)
	other[63] ^= 1
	for _, tt := range []struct {
		name, secret, problem string
	}{
		{"secret key", "whsk_" + b64(private), ""},
		{"public key", "whpk_" + b64(private[32:]), ""},
		{"published pair", publishedSigningKey, ""},
		{"published public key", publishedPublicKey, ""},
		{"seed alone (SW-09)", "whsk_" + b64(private[:32]), "64 are needed"},
		{"halves of two keys", "whsk_" + b64(other), "do not belong together"},
		{"secret key labelled public", "whpk_" + b64(private), "32 are needed"},
		{"public key labelled secret", "whsk_" + b64(private[32:]), "64 are needed"},
		{"no prefix", b64(private), "whsk_ to sign"},
		{"symmetric", whsec(32), "standard-webhooks"},
		{"Svix's spelling", "whsk1_" + b64(private), "whsk_ to sign"},
		{"prefix in upper case", "WHPK_" + b64(private[32:]), "whsk_ to sign"},
		{"prefix only", "whsk_", "64 are needed"},
		{"no padding", strings.TrimRight(publishedPublicKey, "="), "base64"},
		{"url alphabet", strings.ReplaceAll(publishedSigningKey, "/", "_"), "base64"},
		{"stray bits", strings.Replace(publishedPublicKey, "r4=", "r5=", 1), "base64"},
		{"line break inside", publishedPublicKey[:20] + "\n" + publishedPublicKey[20:], "control character"},
		{"final newline (O-037)", publishedPublicKey + "\n", "white space"},
		{"empty", "", "empty"},
		{"all zeros", "whpk_" + b64(make([]byte, 32)), "anyone can sign"},
	} {
		_, err := s.ParseKey(tt.secret)
		if tt.problem == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if !errors.Is(err, webhook.ReasonMalformedKey) || !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && len(tt.secret) > 8 && strings.Contains(err.Error(), tt.secret[6:]) {
			t.Errorf("%s: the key is shown: %v", tt.name, err)
		}
	}
}

func TestPublicKey(t *testing.T) {
	s := lookup(t, v1a)
	signing, public := parse(t, s, publishedSigningKey), parse(t, s, publishedPublicKey)
	for _, k := range []webhook.Key{signing, public} {
		if got := k.PublicKey(); got != publishedPublicKey {
			t.Errorf("public key %s, want %s", got, publishedPublicKey)
		}
	}
	if !signing.CanSign() || public.CanSign() || (webhook.Key{}).CanSign() {
		t.Error("CanSign tells the halves apart wrongly")
	}
	hmac := parse(t, lookup(t, "standard-webhooks"), whsec(32))
	if hmac.PublicKey() != "" || !hmac.CanSign() || (webhook.Key{}).PublicKey() != "" {
		t.Errorf("public key of a symmetric key: %q", hmac.PublicKey())
	}
	_, err := s.Sign(webhook.Message{ID: "evt_1", Timestamp: signedAt}, signing, public)
	if !errors.Is(err, webhook.ReasonMalformedKey) || !strings.Contains(err.Error(), "whsk_") {
		t.Errorf("a public key signs: %v", err)
	}
}

// The seed of RFC 8032's first vector leads to its public key.
func TestNewSigningKey(t *testing.T) {
	s := lookup(t, v1a)
	secret, err := s.NewSecret(bytes.NewReader(unhex(t, rfcSeed)))
	if want := "whsk_" + b64(append(unhex(t, rfcSeed), unhex(t, rfcPublic)...)); err != nil || secret != want {
		t.Errorf("made another key (%v)", err)
	}
	if k := parse(t, s, secret); k.PublicKey() != "whpk_"+b64(unhex(t, rfcPublic)) {
		t.Errorf("public key %s", k.PublicKey())
	}
	if _, err := s.NewSecret(strings.NewReader("short")); err == nil {
		t.Error("a short source is enough")
	}
}

// smallOrder are all encodings of the eight points of order 1, 2, 4 and 8,
// from the formulas of RFC 8032 §5.1: y with both signs of x, and the two
// that have a second encoding above the prime.
func smallOrder(t *testing.T) [][]byte {
	t.Helper()
	prime := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	// A point of order 8 doubled has y = 0, so x^2 = -y^2, and the curve becomes
	// d*y^4 + 2*y^2 - 1 = 0.
	d := new(big.Int).ModInverse(big.NewInt(121666), prime)
	d.Mul(d, big.NewInt(-121665)).Mod(d, prime)
	root := new(big.Int).ModSqrt(new(big.Int).Mod(new(big.Int).Add(big.NewInt(1), d), prime), prime)
	var ys []*big.Int
	for _, sign := range []int64{1, -1} {
		square := new(big.Int).Mul(root, big.NewInt(sign))
		square.Sub(square, big.NewInt(1)).Mul(square, new(big.Int).ModInverse(d, prime)).Mod(square, prime)
		if y := new(big.Int).ModSqrt(square, prime); y != nil {
			ys = append(ys, y, new(big.Int).Sub(prime, y))
		}
	}
	if len(ys) != 2 {
		t.Fatalf("%d y coordinates of order 8, want 2", len(ys))
	}
	one := big.NewInt(1)
	ys = append(ys, new(big.Int), one, new(big.Int).Sub(prime, one), prime, new(big.Int).Add(prime, one))
	var all [][]byte
	for _, y := range ys {
		b := y.FillBytes(make([]byte, 32))
		slices.Reverse(b)
		signed := bytes.Clone(b)
		signed[31] |= 0x80
		all = append(all, b, signed)
	}
	return all
}

// forge makes a signature without the private half of public: for a key of small
// order S*B = R + k*A holds whenever k is a multiple of eight.
func forge(public []byte, message func(n int) []byte) (signature []byte, n int, ok bool) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	digest := sha512.Sum512(make([]byte, 32))
	digest[0] &= 248
	digest[31] = digest[31]&63 | 64
	slices.Reverse(digest[:32])
	order, _ := new(big.Int).SetString("1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed", 16)
	s := new(big.Int).Mod(new(big.Int).SetBytes(digest[:32]), order).FillBytes(make([]byte, 32))
	slices.Reverse(s)
	signature = append(bytes.Clone(key[32:]), s...) // R is the public key of the scalar S
	for n := range 200 {
		if ed25519.Verify(public, message(n), signature) {
			return signature, n, true
		}
	}
	return nil, 0, false
}

// Go verifies what anyone can sign for these keys, so they must not be taken.
func TestKeysOfSmallOrderAreRefused(t *testing.T) {
	s := lookup(t, v1a)
	forged := 0
	for _, public := range smallOrder(t) {
		message := func(n int) []byte { return []byte("evt_" + strconv.Itoa(n) + "." + strconv.Itoa(signedAt) + ".{}") }
		signature, n, ok := forge(public, message)
		if ok {
			forged++
		}
		k, err := s.ParseKey("whpk_" + b64(public))
		if errors.Is(err, webhook.ReasonMalformedKey) {
			continue
		}
		t.Errorf("%x is taken: %v", public, err)
		if err == nil && ok {
			h := headers("webhook-id", "evt_"+strconv.Itoa(n), "webhook-timestamp", strconv.Itoa(signedAt), "webhook-signature", "v1a,"+b64(signature))
			_, err := s.Verify(webhook.Request{Header: h, Body: []byte("{}")}, now, k)
			t.Errorf("a forged request: %v", err)
		}
	}
	if forged < 8 {
		t.Errorf("%d keys could be forged for: the test no longer shows what it is about", forged)
	}
	if _, _, ok := forge(unhex(t, rfcPublic), func(n int) []byte { return []byte(strconv.Itoa(n)) }); ok {
		t.Error("a real key can be forged for: the test is wrong")
	}
}

// R39: one header, all tokens. Each receiver finds its own among them, and a
// list that holds none of its kind does not match.
func TestMixedList(t *testing.T) {
	symmetric, asymmetric := lookup(t, "standard-webhooks"), lookup(t, v1a)
	hmac1, hmac2 := parse(t, symmetric, whsec(32)), parse(t, symmetric, whsec(33))
	ed1 := parse(t, asymmetric, publishedSigningKey)
	secret, err := asymmetric.NewSecret(nil)
	if err != nil {
		t.Fatal(err)
	}
	ed2 := parse(t, asymmetric, secret)
	body := []byte(`{"test": 2432232314}`)
	m := webhook.Message{ID: "evt_1", Timestamp: signedAt, Body: body}
	for _, s := range []webhook.Scheme{symmetric, asymmetric} {
		h, err := s.Sign(m, hmac1, ed1, hmac2, ed2)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, token := range strings.Split(h.Get("webhook-signature"), " ") {
			kind, _, _ := strings.Cut(token, ",")
			kinds = append(kinds, kind)
		}
		if len(h) != 3 || len(h.Values("webhook-signature")) != 1 || !slices.Equal(kinds, []string{"v1", "v1a", "v1", "v1a"}) {
			t.Errorf("%s: %v", s.Name(), h)
		}
		r := webhook.Request{Header: h, Body: body}
		for i, keys := range [][]webhook.Key{{hmac1}, {ed1}, {hmac2}, {ed2}, {parse(t, asymmetric, publishedPublicKey)}, {hmac1, ed1}} {
			if _, err := s.Verify(r, now, keys...); err != nil {
				t.Errorf("%s, receiver %d: %v", s.Name(), i, err)
			}
		}
		for _, k := range []webhook.Key{hmac1, ed1} {
			only, err := s.Sign(m, k)
			if err != nil {
				t.Fatal(err)
			}
			other := map[bool]webhook.Key{true: hmac1, false: ed1}[k.PublicKey() != ""]
			if _, err := s.Verify(webhook.Request{Header: only, Body: body}, now, other); !errors.Is(err, webhook.ReasonNoMatch) {
				t.Errorf("%s: a list without its kind: %v", s.Name(), err)
			}
			if v, err := s.Verify(webhook.Request{Header: only, Body: body}, now, other, k); err != nil || v.Key != 1 {
				t.Errorf("%s: key %d, %v", s.Name(), v.Key, err)
			}
		}
	}
}

// The token of one kind with the other kind's label proves nothing.
func TestTokenUnderTheOtherLabel(t *testing.T) {
	for _, swap := range [][2]string{{"standard-webhooks", v1a}, {v1a, "standard-webhooks"}} {
		from, to := dialectOf(swap[0]), dialectOf(swap[1])
		r := from.fresh()
		_, bare, _ := strings.Cut(r.Header.Get("webhook-signature"), ",")
		label, _, _ := strings.Cut(to.fresh().Header.Get("webhook-signature"), ",")
		r.Header.Set("webhook-signature", label+","+bare)
		for _, d := range []dialect{from, to} {
			s := lookup(t, d.name)
			if _, err := s.Verify(r, now, parse(t, s, d.secret)); !errors.Is(err, webhook.ReasonNoMatch) {
				t.Errorf("%s as %s: %v", from.name, label, err)
			}
		}
	}
}

// An Ed25519 candidate costs a look at the whole body, so fewer are tried
// (O-029); those of the other kind count for the list alone.
func TestEd25519CandidatesAreBounded(t *testing.T) {
	d := dialectOf(v1a)
	s := lookup(t, v1a)
	k := parse(t, s, publishedPublicKey)
	good := d.fresh().Header.Get("webhook-signature")
	bad := "v1a," + b64(make([]byte, 64)) + " "
	hmac := "v1," + b64(make([]byte, 32)) + " "
	for _, tt := range []struct {
		name, value string
		want        error
	}{
		{"four", strings.Repeat(bad, 3) + good, nil},
		{"five", strings.Repeat(bad, 4) + good, webhook.ReasonMalformedHeader},
		{"twelve of the other kind", strings.Repeat(hmac, 12) + strings.Repeat(bad, 3) + good, nil},
		{"thirteen of the other kind", strings.Repeat(hmac, 13) + strings.Repeat(bad, 3) + good, webhook.ReasonMalformedHeader},
	} {
		r := d.fresh()
		r.Header.Set("webhook-signature", tt.value)
		if _, err := s.Verify(r, now, k); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	// A receiver with the symmetric secret is not concerned.
	h := dialectOf("standard-webhooks")
	r := h.fresh()
	r.Header.Set("webhook-signature", strings.Repeat(bad, 10)+r.Header.Get("webhook-signature"))
	symmetric := lookup(t, h.name)
	if _, err := symmetric.Verify(r, now, parse(t, symmetric, h.secret)); err != nil {
		t.Errorf("symmetric among ten of Ed25519: %v", err)
	}
}

func TestForSecret(t *testing.T) {
	for _, tt := range []struct{ scheme, secret, want string }{
		{"standard-webhooks", whsec(32), "standard-webhooks"},
		{"standard-webhooks", publishedSigningKey, v1a},
		{"standard-webhooks", publishedPublicKey, v1a},
		{"standard-webhooks", "nonsense", "standard-webhooks"},
		{v1a, publishedPublicKey, v1a},
		{v1a, whsec(32), "standard-webhooks"},
		{"media-v2", publishedSigningKey, "media-v2"},
		{"body-timestamp", whsec(32), "body-timestamp"},
		{"stripe", whsec(32), "stripe"},
	} {
		if got := lookup(t, tt.scheme).ForSecret(tt.secret).Name(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.scheme, got, tt.want)
		}
	}
	for _, a := range dialects {
		for _, b := range dialects {
			if got := lookup(t, a.name).Beside(lookup(t, b.name)); got != (a.list && b.list || a.joined && a.name == b.name) {
				t.Errorf("%s beside %s: %v", a.name, b.name, got)
			}
		}
	}
	if got := (webhook.Scheme{}).ForSecret("x").Name(); got != "" {
		t.Errorf("zero scheme: %s", got)
	}
}

// The secret half is hidden like every other secret; the public one may be shown.
func TestSigningKeyIsNeverShown(t *testing.T) {
	k := parse(t, lookup(t, v1a), publishedSigningKey)
	_, err := lookup(t, v1a).Sign(webhook.Message{ID: "a b", Timestamp: signedAt}, k)
	shown := err.Error() + k.String() + k.GoString() + k.PublicKey()
	if strings.Contains(shown, publishedSigningKey[5:30]) {
		t.Errorf("the seed is shown: %s", shown)
	}
}
