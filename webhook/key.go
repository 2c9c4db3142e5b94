package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"unicode"
)

const redacted = "webhook.Key(redacted)"

// Key is a secret, parsed by a scheme's [Scheme.ParseKey] and usable with that
// scheme only, so that one text is never read in two ways by mistake; the two
// Standard Webhooks schemes, whose signatures share one list, take each other's
// keys. It prints as a fixed word under every fmt verb and in slog. Keys are
// immutable and safe for concurrent use; the zero Key is refused wherever a key
// is needed.
type Key struct {
	scheme, list string
	token        tokenRule
	// A function, because fmt does not call the methods of a Key that sits in an
	// unexported field: it would print bytes, and under a wrong verb even those
	// behind a pointer, but of a function it knows only the address.
	secret func() []byte
}

// String returns a fixed text, not the secret.
func (k Key) String() string { return redacted }

// GoString returns a fixed text, not the secret.
func (k Key) GoString() string { return redacted }

// Format writes a fixed text, not the secret, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue returns a fixed text, not the secret.
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// CanSign reports whether the key can sign: a public key can only verify. It is
// false for the zero Key.
func (k Key) CanSign() bool {
	if k.secret == nil {
		return false
	}
	public := k.token.algorithm.public
	return public == nil || len(public(k.secret())) < len(k.secret())
}

// PublicKey returns the text by which others can verify what the key signs,
// "whpk_" and base64, which is no secret. It is empty for symmetric keys.
func (k Key) PublicKey() string {
	if k.secret == nil || k.token.algorithm.public == nil {
		return ""
	}
	return publicKeyPrefix + base64.StdEncoding.EncodeToString(k.token.algorithm.public(k.secret()))
}

// asymmetricPrefixes mark Ed25519 keys (SW-08; the digit is Svix's spelling).
// Half of them are public: as an HMAC key they would let anyone sign.
var asymmetricPrefixes = []string{secretKeyPrefix, publicKeyPrefix, "whsk1_", "whpk1_"}

func asymmetric(secret string) bool {
	return slices.ContainsFunc(asymmetricPrefixes, func(p string) bool { return strings.HasPrefix(secret, p) })
}

// ParseKey reads a secret as the scheme writes it. For "standard-webhooks" that is
// base64 of 24 to 64 bytes with or without "whsec_" in front (SW-07); for
// "standard-webhooks-v1a" "whsk_" and base64 of 64 bytes, the seed and then the
// public key, which signs and verifies, or "whpk_" and base64 of the 32 bytes of a
// public key, which only verifies (SW-08, SW-09); for "media-v2" and
// "body-timestamp" the text itself is the key, "whsec_" included.
//
// Refused with [ReasonMalformedKey] are an empty or blank secret (CB-03),
// surrounding white space and control characters (nothing is trimmed silently),
// base64 that is not strictly standard (SW-31), another length, Ed25519 keys
// where a symmetric secret is wanted and the other way round (SW-08), a "whsk_"
// whose halves do not belong together, and public keys for which anyone can sign.
func (s Scheme) ParseKey(secret string) (Key, error) {
	b, err := s.parseKey(secret)
	if err != nil {
		return Key{}, fmt.Errorf("webhook: parse key for %s: %w", s.name, err)
	}
	token := s.token
	if s.key.both && asymmetric(secret) {
		token.algorithm = pureEd25519
	}
	return Key{scheme: s.name, list: s.list(), token: token, secret: func() []byte { return b }}, nil
}

func (s Scheme) parseKey(secret string) ([]byte, error) {
	if s.name == "" {
		return nil, refuse(ReasonUnknownScheme, "take the scheme from Lookup")
	}
	if strings.TrimSpace(secret) == "" {
		return nil, refuse(ReasonMalformedKey, "the secret is empty: set one")
	}
	if strings.TrimSpace(secret) != secret || strings.ContainsFunc(secret, unicode.IsControl) {
		return nil, refuse(ReasonMalformedKey,
			"the secret has white space around it or a control character in it: remove it (often the last newline of a file)")
	}
	if s.key.ed25519 || s.key.both && asymmetric(secret) {
		return parseEd25519(secret)
	}
	if asymmetric(secret) {
		return nil, refuse(ReasonMalformedKey,
			"the secret begins with "+secret[:strings.IndexByte(secret, '_')+1]+", which marks an Ed25519 key: use a symmetric secret, or a scheme with Ed25519")
	}
	if !s.key.base64 {
		return []byte(secret), nil
	}
	b, ok := decodeBase64(strings.TrimPrefix(secret, s.key.prefix))
	if !ok {
		return nil, refuse(ReasonMalformedKey,
			"the secret is not padded standard base64 after the optional "+s.key.prefix)
	}
	if len(b) < s.key.min || len(b) > s.key.max {
		return nil, refuse(ReasonMalformedKey,
			fmt.Sprintf("the secret decodes to %d bytes: %d to %d are needed", len(b), s.key.min, s.key.max))
	}
	return b, nil
}

// usable says whether the scheme and all keys can be used together.
func (s Scheme) usable(keys []Key) error {
	if s.name == "" {
		return refuse(ReasonUnknownScheme, "take the scheme from Lookup")
	}
	if len(keys) == 0 {
		return refuse(ReasonNoKey, "give at least one key")
	}
	for _, k := range keys {
		if k.secret == nil {
			return refuse(ReasonNoKey, "a key is empty: take it from ParseKey")
		}
		if k.list != s.list() {
			return refuse(ReasonMalformedKey, "a key was parsed for scheme "+k.scheme)
		}
	}
	return nil
}

// NewSecret returns a fresh secret, "whsec_" and the base64 of 32 bytes read from
// random; nil stands for crypto/rand. Every scheme with symmetric secrets can
// parse it. The error is that of random.
func NewSecret(random io.Reader) (string, error) {
	b, err := random32(random)
	if err != nil {
		return "", err
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(b), nil
}

// NewSecret returns a fresh secret of the scheme that can sign: what the function
// [NewSecret] gives or, for "standard-webhooks-v1a", "whsk_" and base64 of a new
// Ed25519 key, whose seed is 32 bytes read from random. [Key.PublicKey] gives its
// public half. nil stands for crypto/rand. The error is that of random.
func (s Scheme) NewSecret(random io.Reader) (string, error) {
	if !s.key.ed25519 {
		return NewSecret(random)
	}
	seed, err := random32(random)
	if err != nil {
		return "", err
	}
	return secretKeyText(seed), nil
}

func random32(random io.Reader) ([]byte, error) {
	if random == nil {
		random = rand.Reader
	}
	b := make([]byte, 32)
	if _, err := io.ReadFull(random, b); err != nil {
		return nil, fmt.Errorf("webhook: new secret: read random bytes: %w", err)
	}
	return b, nil
}
