package vault

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"gocloud.dev/secrets"
	"gocloud.dev/secrets/localsecrets"

	"github.com/pawlhq/pawl/internal/config"
)

// What is wrong with the URL of a key. None repeats any of it, since the key is
// in there.
var (
	errNotURL = errors.New("not the URL of a wrapping key; write base64key:// and 32 random bytes in base64, such as base64key://${PAWL_SECRETS_KEY} (\"openssl rand -base64 32\" draws them)")
	errScheme = errors.New("the scheme before :// is not one that this program knows; write base64key:// and 32 random bytes in base64")
	errCloud  = errors.New("keys of a cloud's key service are not compiled into this program; write base64key:// and 32 random bytes in base64, and have the service or your deployment put them into an environment variable or a file")
	errLength = errors.New("the key behind base64key:// must be 32 random bytes in base64, which are 44 characters; \"openssl rand -base64 32\" draws them")
)

// clouds are the schemes of the Go CDK that are left out of this program
// (docs/decisions/wrapping-keys.md).
var clouds = []string{"awskms", "azurekeyvault", "gcpkms", "hashivault"}

// keySize is that of a key behind base64key://, in bytes.
const keySize = 32

// openKeeper opens the keeper of a URL. The Go CDK's own opener is given a key
// that has been checked: it takes an empty one for "draw one at random", and
// what is sealed with that is lost at the end of the process.
func openKeeper(ctx context.Context, url config.Secret) (*keeper, error) {
	scheme, rest, ok := strings.Cut(url.Reveal(), "://")
	if !ok {
		return nil, errNotURL
	}
	scheme = strings.ToLower(scheme)
	address, identity := url.Reveal(), []byte(url.Reveal())
	switch {
	case scheme == localsecrets.Scheme:
		if identity, ok = decodeKey(rest); !ok {
			return nil, errLength
		}
		address = localsecrets.Scheme + "://" + base64.URLEncoding.EncodeToString(identity)
	case slices.Contains(clouds, scheme) && !secrets.DefaultURLMux().ValidKeeperScheme(scheme):
		return nil, errCloud
	case !secrets.DefaultURLMux().ValidKeeperScheme(scheme):
		return nil, errScheme
	}
	k, err := secrets.OpenKeeper(ctx, address)
	if err != nil {
		return nil, errors.New("the wrapping key could not be opened; check its URL")
	}
	return &keeper{name: nameOf(identity), Keeper: k}, nil
}

// decodeKey reads a key in either alphabet of base64, with or without padding.
func decodeKey(text string) (key []byte, ok bool) {
	text = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return key, err == nil && len(key) == keySize && !strings.ContainsAny(text, "\r\n")
}

// nameOf names a key without telling anything of it: the first 8 bytes of an
// HMAC under the key.
func nameOf(key []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("pawl: name of a wrapping key"))
	return hex.EncodeToString(m.Sum(nil)[:8])
}

// NewKey draws a wrapping key.
func NewKey() [keySize]byte {
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // It never fails (crypto/rand).
	return key
}

// URL is the address of a key that is at hand.
func URL(key [keySize]byte) config.Secret {
	s, err := config.NewSecret(localsecrets.Scheme + "://" + base64.StdEncoding.EncodeToString(key[:]))
	if err != nil {
		panic("vault: " + err.Error()) // A text of our own making.
	}
	return s
}
