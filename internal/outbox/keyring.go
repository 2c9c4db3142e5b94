package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/redact"
	"github.com/pawlhq/pawl/internal/vault"
	"github.com/pawlhq/pawl/webhook"
)

// sealedSecret is a signing secret as the ledger holds it, and the row that it
// was sealed for.
type sealedSecret struct {
	owner  pawl.ID
	sealed ledger.Sealed
}

// Bounds of the keyring.
const (
	// maxKeys is how many opened keys are remembered.
	maxKeys = 4096
	// openWithin is how long opening one may take: it is no work for a key in
	// memory, and a request for one that a service keeps.
	openWithin = 10 * time.Second
)

// keyring opens signing secrets and remembers the keys, so that a delivery costs
// no decryption. Whatever is sealed anew, by a rotation or under another
// wrapping key, has another text and is opened anew.
type keyring struct {
	vault *vault.Vault

	mu    sync.Mutex
	known map[keyID]opened
}

type keyID struct {
	scheme string
	sealedSecret
}

// opened is a secret in use: the key, and what finds its text in an answer.
type opened struct {
	key  webhook.Key
	text *redact.Finder
}

func newKeyring(v *vault.Vault) *keyring {
	return &keyring{vault: v, known: make(map[keyID]opened)}
}

// key is the key that a secret is for a scheme. The error is an unsendable, or
// that of a keeper that does not answer.
func (r *keyring) key(scheme webhook.Scheme, secret sealedSecret) (opened, error) {
	id := keyID{scheme.Name(), secret}
	r.mu.Lock()
	key, ok := r.known[id]
	r.mu.Unlock()
	if ok {
		return key, nil
	}
	key, err := r.open(scheme, secret)
	if err != nil {
		return key, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxKeys {
		clear(r.known)
	}
	r.known[id] = key
	return key, nil
}

func (r *keyring) open(scheme webhook.Scheme, secret sealedSecret) (opened, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	defer cancel()
	text, err := r.vault.Open(ctx, secret.owner, secret.sealed)
	var unknown *vault.UnknownKeyError
	switch {
	case errors.As(err, &unknown):
		return opened{}, unsendable("a signing secret is sealed with the wrapping key " + unknown.Key + ", which is not given: put the key back or rotate the secret")
	case errors.Is(err, context.DeadlineExceeded):
		return opened{}, errors.New("a signing secret could not be opened in time")
	case err != nil:
		return opened{}, unsendable("a signing secret cannot be opened: rotate it")
	}
	// While an endpoint goes over to the other Standard Webhooks scheme its former
	// secret is of the one that it had (7-rules R39).
	key, err := scheme.ForSecret(text).ParseKey(text)
	if err != nil {
		return opened{}, unsendable("a signing secret does not fit the endpoint's scheme: rotate it")
	}
	return opened{key, redact.Values(text)}, nil
}
