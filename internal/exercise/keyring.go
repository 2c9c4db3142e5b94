package exercise

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"

	"github.com/pawlhq/pawl/internal/vault"
)

// keyring makes every secret of one run from one random number, which the
// ledger.json of the run names: they are throw-away, good on this machine for
// as long as the run takes, and whoever verifies the run can make them again
// without one of them being written down.
type keyring [16]byte

func newKeyring() keyring {
	var k keyring
	_, _ = rand.Read(k[:])
	return k
}

func parseKeyring(text string) (k keyring, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(k) {
		return k, errors.New("run is not 32 hexadecimal digits")
	}
	return keyring(raw), nil
}

func (k keyring) String() string { return hex.EncodeToString(k[:]) }

func (k keyring) derive(purpose string) []byte {
	mac := hmac.New(sha256.New, k[:])
	mac.Write([]byte("pawl exercise\x00" + purpose))
	return mac.Sum(nil)
}

// secret is one that every signature scheme can read.
func (k keyring) secret(purpose string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(k.derive(purpose))
}

// vault seals what the run's ledger keeps.
func (k keyring) vault(ctx context.Context) (*vault.Vault, error) {
	return vault.New(ctx, vault.URL([sha256.Size]byte(k.derive(forLedger))))
}

// The purposes of secrets.
const (
	forSource   = "source"
	forStranger = "stranger"
	forEndpoint = "endpoint"
	forProvider = "provider"
	forTokens   = "tokens"
	forLedger   = "ledger"
)
