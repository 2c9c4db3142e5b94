package vault_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gocloud.dev/secrets/localsecrets"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/vault"
)

func open(t testing.TB, keys ...[32]byte) *vault.Vault {
	t.Helper()
	var urls []config.Secret
	for _, k := range keys {
		urls = append(urls, vault.URL(k))
	}
	v, err := vault.New(t.Context(), urls[0], urls[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func seal(t testing.TB, v *vault.Vault, owner pawl.ID, secret string) ledger.Sealed {
	t.Helper()
	s, err := v.Seal(t.Context(), owner, secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func secretOf(t testing.TB, text string) config.Secret {
	t.Helper()
	s, err := config.NewSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	alice, bob = pawl.NewID(1_000_000, 1), pawl.NewID(1_000_000, 2)
	theSecret  = "whsec_bWFyaWdvbGQgbWFyaWdvbGQgbWFyaWdvbGQgMTIzNDU="
)

// What was sealed opens for its owner under the same key, and twice the same
// secret is sealed into two texts.
func TestSealAndOpen(t *testing.T) {
	v := open(t, vault.NewKey())
	rapid.Check(t, func(rt *rapid.T) {
		secret, owner := rapid.String().Draw(rt, "secret"), pawl.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "owner"))
		s := seal(t, v, owner, secret)
		got, err := v.Open(t.Context(), owner, s)
		if err != nil || got != secret {
			rt.Fatalf("%q, %v; want %q", got, err, secret)
		}
		if secret == "" && s != "" || secret != "" && s == seal(t, v, owner, secret) {
			rt.Fatalf("sealed into %q", s)
		}
	})
}

// The box is that of the Go CDK's local keeper, with the owner before the
// secret: another program can open it.
func TestFormOfTheBox(t *testing.T) {
	key := vault.NewKey()
	v := open(t, key)
	s := seal(t, v, alice, theSecret)
	name, rest, _ := strings.Cut(strings.TrimPrefix(string(s), "sealed:1:"), ":")
	box, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil || name != v.Key() {
		t.Fatalf("%q: key %q, want %q; %v", s, name, v.Key(), err)
	}
	inner, err := localsecrets.NewKeeper(key).Decrypt(t.Context(), box)
	if want := "\x01" + string(alice[:]) + theSecret; err != nil || string(inner) != want {
		t.Errorf("%q, %v; want %q", inner, err, want)
	}
}

// A sealed secret that is moved to another row, changed in any byte, sealed with
// another key or never sealed does not open, and each is told from the others.
func TestWhatDoesNotOpen(t *testing.T) {
	v, stranger := open(t, vault.NewKey()), open(t, vault.NewKey())
	s := seal(t, v, alice, theSecret)
	if got, err := v.Open(t.Context(), bob, s); !errors.Is(err, vault.ErrOwner) || got != "" {
		t.Errorf("for another row: %q, %v", got, err)
	}
	var unknown *vault.UnknownKeyError
	if got, err := stranger.Open(t.Context(), alice, s); !errors.As(err, &unknown) || unknown.Key != v.Key() || got != "" {
		t.Errorf("under another key: %q, %v", got, err)
	}
	if got, err := v.Open(t.Context(), alice, ledger.Sealed(theSecret)); !errors.Is(err, vault.ErrPlain) || got != "" {
		t.Errorf("never sealed: %q, %v", got, err)
	}
	at := strings.LastIndexByte(string(s), ':') + 1
	for i := range len(s) {
		for _, bit := range []byte{1, 2, 4, 8, 16, 32, 64} {
			changed := []byte(s)
			changed[i] ^= bit
			got, err := v.Open(t.Context(), alice, ledger.Sealed(changed))
			if err == nil || got != "" || i >= at && !errors.Is(err, vault.ErrDamaged) {
				t.Fatalf("byte %d changed: %q, %v", i, got, err)
			}
		}
	}
	for n := range len(s) - 1 {
		if got, err := v.Open(t.Context(), alice, s[:n+1]); err == nil || got != "" {
			t.Errorf("cut after %d: %q, %v", n+1, got, err)
		}
	}
	// A box of the right key that holds no envelope.
	empty, err := localsecrets.NewKeeper([32]byte{1}).Encrypt(t.Context(), []byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	known := open(t, [32]byte{1})
	if _, err := known.Open(t.Context(), alice, ledger.NewSealed(known.Key(), empty)); !errors.Is(err, vault.ErrDamaged) {
		t.Errorf("a box without an envelope: %v", err)
	}
}

// The former key opens and no longer seals; sealing anew leaves what is sealed
// with the current key as it is.
func TestFormerKey(t *testing.T) {
	older, newer := vault.NewKey(), vault.NewKey()
	was, both, now := open(t, older), open(t, newer, older, older), open(t, newer)
	s := seal(t, was, alice, theSecret)
	if got, err := both.Open(t.Context(), alice, s); err != nil || got != theSecret {
		t.Errorf("%q, %v", got, err)
	}
	again, err := both.Reseal(t.Context(), alice, s)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := now.Open(t.Context(), alice, again); err != nil || got != theSecret {
		t.Errorf("%q, %v", got, err)
	}
	if third, err := both.Reseal(t.Context(), alice, again); err != nil || third != again {
		t.Errorf("sealed again: %v", err)
	}
	if third, err := both.Reseal(t.Context(), alice, ""); err != nil || third != "" {
		t.Errorf("no secret became %q, %v", third, err)
	}
	if _, err := both.Reseal(t.Context(), bob, s); !errors.Is(err, vault.ErrOwner) {
		t.Errorf("of another row: %v", err)
	}
	if !both.Has(was.Key()) || now.Has(was.Key()) || was.Key() == now.Key() {
		t.Error("keys are not told apart")
	}
}

// A key may be written in either alphabet, padded or not, and is the same key.
func TestOneKeyInManySpellings(t *testing.T) {
	key := bytes.Repeat([]byte{0xfb, 0xff}, 16) // + and / in the one alphabet, - and _ in the other
	want := open(t, [32]byte(key)).Key()
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		v, err := vault.New(t.Context(), secretOf(t, "base64key://"+enc.EncodeToString(key)))
		if err != nil || v.Key() != want {
			t.Errorf("%v, want %s: %v", v, want, err)
		}
	}
}

// A key that cannot be used is refused with what to write instead, and without
// any of it. The empty one matters most: the Go CDK would draw one at random.
func TestKeysRefused(t *testing.T) {
	const canary = "Zm9vYmFyYmF6cXV4"
	good := vault.URL(vault.NewKey())
	for text, remedy := range map[string]string{
		"base64key://":                                          "44 characters",
		"base64key://" + canary:                                 "44 characters",
		"base64key://" + strings.Repeat("A", 44):                "44 characters",
		"base64key://" + strings.Repeat("A", 42) + "B=":         "44 characters",
		"base64key://" + strings.Repeat(canary, 3):              "44 characters",
		"base64key://" + strings.Repeat("!", 43) + "=":          "44 characters",
		"base64key://" + strings.Repeat("A", 43) + "=?a=b":      "44 characters",
		"base64key://" + strings.Repeat("A", 20) + "\nAAAAAAAA": "44 characters",
		canary: "write base64key://",
		"awskms://alias/" + canary + "?region=eu-west-1": "not compiled into this program",
		"gcpkms://projects/" + canary:                    "not compiled into this program",
		"azurekeyvault://" + canary:                      "not compiled into this program",
		"hashivault://" + canary:                         "not compiled into this program",
		canary + "://x":                                  "not one that this program knows",
		"BASE64KEY://":                                   "44 characters", "AWSKMS://" + canary: "not compiled into this program",
	} {
		for place, keys := range [][]config.Secret{{secretOf(t, text), good}, {good, secretOf(t, text)}} {
			_, err := vault.New(t.Context(), keys[0], keys[1:]...)
			var wrong *vault.KeyError
			if !errors.As(err, &wrong) || wrong.Place != place || !strings.Contains(err.Error(), remedy) || strings.Contains(err.Error(), canary) {
				t.Errorf("%s in place %d: %v", text, place, err)
			}
		}
	}
}

// Whatever is printed of a vault and its errors, it is not a key or a secret.
func TestPrintsNothing(t *testing.T) {
	key := vault.NewKey()
	v := open(t, key)
	s := seal(t, v, alice, theSecret)
	_, err := v.Open(t.Context(), bob, s)
	text := fmt.Sprintf("%v %+v %#v %s %v %v", v, v, v, v, err, vault.URL(key))
	for _, form := range []string{
		theSecret, base64.StdEncoding.EncodeToString(key[:]), base64.URLEncoding.EncodeToString(key[:]), string(key[:]), fmt.Sprint(key), fmt.Sprintf("%x", key),
	} {
		if strings.Contains(text, form) {
			t.Errorf("printed: %s", text)
		}
	}
	if !strings.Contains(text, v.Key()) {
		t.Errorf("the key has no name: %s", text)
	}
}

func TestCancelled(t *testing.T) {
	v := open(t, vault.NewKey())
	s := seal(t, v, alice, theSecret)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := v.Open(ctx, alice, s); !errors.Is(err, context.Canceled) || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}

func BenchmarkOpen(b *testing.B) {
	v := open(b, vault.NewKey())
	s := seal(b, v, alice, theSecret)
	for b.Loop() {
		if _, err := v.Open(b.Context(), alice, s); err != nil {
			b.Fatal(err)
		}
	}
}
