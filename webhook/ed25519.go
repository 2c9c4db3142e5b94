package webhook

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// How Standard Webhooks writes Ed25519 keys (SW-08).
const (
	secretKeyPrefix = "whsk_"
	publicKeyPrefix = "whpk_"
)

// maxEd25519 bounds the signatures that are tried: each reads the whole body
// again, and whoever sends it has proven nothing yet. Rotation needs two.
const maxEd25519 = 4

// pureEd25519 signs the text itself, not a digest of it. Its key is the 64 bytes
// of a private key or the 32 of a public one.
var pureEd25519 = algorithm{sign: signEd25519, match: matchEd25519, most: maxEd25519, public: publicHalf}

func signEd25519(key []byte, text [][]byte) []byte {
	return ed25519.Sign(ed25519.PrivateKey(key), slices.Concat(text...))
}

func matchEd25519(key []byte, text, candidates [][]byte) bool {
	message := slices.Concat(text...)
	for _, signature := range candidates {
		if ed25519.Verify(ed25519.PublicKey(publicHalf(key)), message, signature) {
			return true
		}
	}
	return false
}

// publicHalf is the end of a private key, and all of a public one.
func publicHalf(key []byte) []byte { return key[len(key)-ed25519.PublicKeySize:] }

func secretKeyText(seed []byte) string {
	return secretKeyPrefix + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(seed))
}

// parseEd25519 reads either half. Which one it is must be written down: by their
// lengths alone a seed and a public key could be mistaken for each other.
func parseEd25519(secret string) ([]byte, error) {
	encoded, private := strings.CutPrefix(secret, secretKeyPrefix)
	if !private {
		var public bool
		if encoded, public = strings.CutPrefix(secret, publicKeyPrefix); !public {
			return nil, refuse(ReasonMalformedKey,
				"an Ed25519 key is needed, whsk_ to sign or whpk_ to verify only; whsec_ is for the scheme standard-webhooks")
		}
	}
	b, ok := decodeBase64(encoded)
	if !ok {
		return nil, refuse(ReasonMalformedKey, "what follows whsk_ or whpk_ is not padded standard base64")
	}
	if private {
		return b, checkPrivate(b)
	}
	return b, checkPublic(b)
}

func checkPrivate(b []byte) error {
	if len(b) != ed25519.PrivateKeySize {
		return refuse(ReasonMalformedKey,
			fmt.Sprintf("the key decodes to %d bytes: 64 are needed, the seed and then the public key", len(b)))
	}
	// Signing with another public half can give the key away.
	if !bytes.Equal(b, ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])) {
		return refuse(ReasonMalformedKey, "the two halves of the key do not belong together: copy it again")
	}
	return nil
}

func checkPublic(b []byte) error {
	if len(b) != ed25519.PublicKeySize {
		return refuse(ReasonMalformedKey, fmt.Sprintf("the public key decodes to %d bytes: 32 are needed", len(b)))
	}
	y := bytes.Clone(b)
	y[31] &= 0x7f // the sign of x
	for _, weak := range smallOrder {
		if bytes.Equal(y, weak[:]) {
			return refuse(ReasonMalformedKey, "anyone can sign for this public key: it is no real one")
		}
	}
	return nil
}

// smallOrder are the y coordinates, little-endian, of the points that eight times
// themselves are nothing, in every spelling: 0, 1, the two of order 8, -1, and 0
// and 1 once more above the prime 2^255 - 19. For such a key one message in eight,
// or more, has a signature that anyone can make. No private key leads to one, but
// a placeholder of zeros is one.
var smallOrder = [7][32]byte{
	{},
	{1},
	{
		0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
		0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
	},
	{
		0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
		0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
	},
	nearPrime(0xec),
	nearPrime(0xed),
	nearPrime(0xee),
}

// nearPrime is 2^255 - 256 + low, little-endian; the prime itself has 0xed.
func nearPrime(low byte) [32]byte {
	y := [32]byte(bytes.Repeat([]byte{0xff}, 32))
	y[0], y[31] = low, 0x7f
	return y
}
