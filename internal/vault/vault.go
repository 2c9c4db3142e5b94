package vault

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"

	"gocloud.dev/secrets"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// The errors of [Vault.Open]. None holds anything of the secret.
var (
	// ErrPlain: the text was never sealed.
	ErrPlain = errors.New("the secret is not sealed")
	// ErrDamaged: the key is the right one, and the sealed text is not what was
	// written.
	ErrDamaged = errors.New("the sealed secret is damaged")
	// ErrOwner: the secret was sealed for another row.
	ErrOwner = errors.New("the sealed secret belongs to another row")
)

// UnknownKeyError says that a secret was sealed with a key that is not given.
type UnknownKeyError struct {
	// Key is the name of the wrapping key.
	Key string
}

// Error names the key.
func (e *UnknownKeyError) Error() string {
	return "the secret is sealed with the wrapping key " + e.Key + ", which is not given"
}

// Vault seals with one wrapping key and opens with that one and the former
// ones. It is safe for concurrent use.
type Vault struct {
	current *keeper
	all     map[string]*keeper
}

// keeper is one wrapping key.
type keeper struct {
	name string
	*secrets.Keeper
}

// New makes a vault of keys, which are URLs such as base64key://…; the current
// one seals, the former ones only open. An error says which is wrong by the
// place in the list, 0 for the current one, and what to write; see [KeyError].
func New(ctx context.Context, current config.Secret, former ...config.Secret) (*Vault, error) {
	v := &Vault{all: make(map[string]*keeper)}
	for i, url := range append([]config.Secret{current}, former...) {
		k, err := openKeeper(ctx, url)
		if err != nil {
			v.Close()
			return nil, &KeyError{Place: i, Err: err}
		}
		if i == 0 {
			v.current = k
		}
		if _, twice := v.all[k.name]; twice {
			_ = k.Close()
			continue
		}
		v.all[k.name] = k
	}
	return v, nil
}

// KeyError says which of the keys given to [New] cannot be used.
type KeyError struct {
	// Place is 0 for the current key, and counts the former ones from 1.
	Place int
	Err   error
}

// Error is the reason, with what to write instead.
func (e *KeyError) Error() string { return e.Err.Error() }

// Unwrap is the reason.
func (e *KeyError) Unwrap() error { return e.Err }

// Close gives the keys up. A vault needs it only where its keeper is a service.
func (v *Vault) Close() {
	for _, k := range v.all {
		_ = k.Close()
	}
}

// Key is the name of the key that seals. It tells nothing of the key itself.
func (v *Vault) Key() string { return v.current.name }

// Has reports whether secrets that were sealed with the named key can be opened.
func (v *Vault) Has(key string) bool { return v.all[key] != nil }

// String names the current key.
func (v *Vault) String() string { return "vault " + v.Key() }

// GoString is [Vault.String].
func (v *Vault) GoString() string { return v.String() }

// envelope is the first byte of what is encrypted, the version of its form:
// version, owner, secret.
const envelope = 1

// Seal encrypts a secret for the row that will hold it, named by its id. An
// empty secret stays empty.
func (v *Vault) Seal(ctx context.Context, owner pawl.ID, secret string) (ledger.Sealed, error) {
	if secret == "" {
		return "", nil
	}
	inner := append(append([]byte{envelope}, owner[:]...), secret...)
	box, err := v.current.Encrypt(ctx, inner)
	if err != nil {
		return "", fmt.Errorf("a secret could not be sealed: %w", err)
	}
	return ledger.NewSealed(v.current.name, box), nil
}

// Open gives the secret back that was sealed for the owner; empty for an empty
// one. The error is [ErrPlain], [ErrDamaged], [ErrOwner] or an
// [UnknownKeyError], or that of a keeper that does not answer.
func (v *Vault) Open(ctx context.Context, owner pawl.ID, s ledger.Sealed) (string, error) {
	if s == "" {
		return "", nil
	}
	name, box, ok := s.Parts()
	if !ok {
		return "", ErrPlain
	}
	k := v.all[name]
	if k == nil {
		return "", &UnknownKeyError{Key: name}
	}
	inner, err := k.Decrypt(ctx, box)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil, len(inner) <= 1+len(owner), inner[0] != envelope:
		return "", ErrDamaged
	case subtle.ConstantTimeCompare(inner[1:1+len(owner)], owner[:]) != 1:
		return "", ErrOwner
	}
	return string(inner[1+len(owner):]), nil
}

// Reseal gives the same secret sealed with the current key: unchanged if it is
// already.
func (v *Vault) Reseal(ctx context.Context, owner pawl.ID, s ledger.Sealed) (ledger.Sealed, error) {
	if name, _, ok := s.Parts(); s == "" || ok && name == v.current.name {
		return s, nil
	}
	secret, err := v.Open(ctx, owner, s)
	if err != nil {
		return s, err
	}
	return v.Seal(ctx, owner, secret)
}
