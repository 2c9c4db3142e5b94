package vault_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/vault"
)

// A new ledger gets a key file of its own and a root that has nothing to do
// with it; every further start finds the same.
func TestFirstStartAndLaterOnes(t *testing.T) {
	b := newBooks(t)
	first := b.mustUnlock()
	info, err := os.Stat(b.file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v; want 0600", info.Mode(), err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(b.inFile()))
	if err != nil || len(key) != 32 || len(first.Root) != 32 || bytes.Equal(key, first.Root) {
		t.Fatalf("a file of %d bytes and a root of %d: %v", len(key), len(first.Root), err)
	}
	was := b.inFile()
	again := b.mustUnlock()
	if !bytes.Equal(again.Root, first.Root) || again.Vault.Key() != first.Vault.Key() || b.inFile() != was {
		t.Error("the second start has other keys")
	}
	if used, retired := b.names(); !slices.Equal(used, []string{first.Vault.Key()}) || retired != nil {
		t.Errorf("used %v, retired %v", used, retired)
	}
}

// What is wrong with a key is found at the start, with what to do, and nothing
// is changed by trying.
func TestWrongKeyAtStart(t *testing.T) {
	stranger := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for name, c := range map[string]struct {
		change func(*books)
		keys   vault.Keys
		want   string
	}{
		"another file": {change: func(b *books) { b.put(stranger + "\n") },
			want: `^secrets of this ledger are sealed with the wrapping key [0-9a-f]{16}, and the key given is [0-9a-f]{16}: put back the .*secret\.key that belongs to this ledger, or give its key in former_secrets$`},
		"no file":     {change: func(b *books) { _ = os.Remove(b.file) }, want: `secret\.key is missing: put back the file that belongs to this ledger$`},
		"empty file":  {change: func(b *books) { b.put("\n") }, want: `secret\.key is damaged: put back the file`},
		"half a file": {change: func(b *books) { b.put(b.inFile()[:20]) }, want: `secret\.key is damaged: put back the file`},
		"another key in the configuration": {change: func(b *books) { _ = os.Remove(b.file) }, keys: vault.Keys{Current: vault.URL([32]byte{7})},
			want: `: give the other one in secrets, or in former_secrets beside its successor$`},
		"the key is in the file": {keys: vault.Keys{Current: vault.URL([32]byte{7})},
			want: `: add former_secrets: \["base64key://\$\{file:/.*/secret\.key\}"\] to the configuration, start, and run "pawl key rewrap"$`},
		"no file, and a former key that is another": {change: func(b *books) { _ = os.Remove(b.file) },
			keys: vault.Keys{Former: []config.Secret{vault.URL([32]byte{7})}}, want: `secret\.key is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			u := b.mustUnlock()
			all := b.fill(1, b.sealing(u.Vault))
			good := b.inFile()
			if c.change != nil {
				c.change(b)
			}
			before, _ := os.ReadFile(b.file)
			_, err := b.unlock(c.keys)
			if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Fatalf("%v\nwant %s", err, c.want)
			}
			if strings.Contains(err.Error(), stranger) || strings.Contains(err.Error(), strings.TrimSpace(good)) {
				t.Errorf("the error tells a key: %v", err)
			}
			if after, _ := os.ReadFile(b.file); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			b.put(good)
			b.opens(b.mustUnlock().Vault, all)
		})
	}
}

func (b *books) put(text string) {
	b.Helper()
	if err := os.WriteFile(b.file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// A key that cannot be used is told by the name of its setting.
func TestSettingIsNamed(t *testing.T) {
	b := newBooks(t)
	good, bad := vault.URL(vault.NewKey()), secretOf(t, "base64key://")
	for key, keys := range map[string]vault.Keys{
		"secrets":           {Current: bad, Former: []config.Secret{good}},
		"former_secrets[1]": {Current: good, Former: []config.Secret{good, bad}},
		"former_secrets[0]": {Former: []config.Secret{bad}}, // the current one is in the file
	} {
		_, err := b.unlock(keys)
		var wrong *vault.SettingError
		if !errors.As(err, &wrong) || wrong.Key != key || !strings.Contains(wrong.What, "44 characters") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// From the file to the configuration, to another key there, and back to a file:
// the root is the same throughout, and each former key can go once it is
// retired.
func TestKeyMoves(t *testing.T) {
	b := newBooks(t)
	u := b.mustUnlock()
	root, all := u.Root, b.fill(3, b.sealing(u.Vault))
	file := secretOf(t, "base64key://"+strings.TrimSpace(b.inFile()))
	one, two := vault.URL(vault.NewKey()), vault.URL(vault.NewKey())
	rewrap := func(k vault.Keys) {
		t.Helper()
		u := b.mustUnlock(k)
		if !bytes.Equal(u.Root, root) {
			t.Fatal("another root")
		}
		if _, err := vault.Total(t.Context(), step(u.Rewrapper), nil); err != nil {
			t.Fatal(err)
		}
		b.opens(u.Vault, all)
		// Without the former key.
		k.Former = nil
		b.opens(b.mustUnlock(k).Vault, all)
	}
	rewrap(vault.Keys{Current: one, Former: []config.Secret{file}})
	if err := os.Remove(b.file); err != nil {
		t.Fatal(err)
	}
	rewrap(vault.Keys{Current: two, Former: []config.Secret{one}})
	rewrap(vault.Keys{Former: []config.Secret{two}}) // makes a file
	if used, retired := b.names(); len(used) != 1 || len(retired) != 3 {
		t.Errorf("used %v, retired %v", used, retired)
	}
}

// A start with a new key alone, before everything is sealed with it, is
// refused, and so is one with the former key alone: both have sealed something.
func TestBothKeysAreNeededMeanwhile(t *testing.T) {
	b := newBooks(t)
	one, two := vault.URL(vault.NewKey()), vault.URL(vault.NewKey())
	b.fill(1, b.sealing(b.mustUnlock(vault.Keys{Current: one}).Vault))
	b.mustUnlock(vault.Keys{Current: two, Former: []config.Secret{one}})
	for _, alone := range []config.Secret{one, two} {
		if _, err := b.unlock(vault.Keys{Current: alone}); err == nil || !strings.Contains(err.Error(), "former_secrets") {
			t.Errorf("%v", err)
		}
	}
	b.mustUnlock(vault.Keys{Current: one, Former: []config.Secret{two}})
}

// A ledger from before: its secrets are plain, and the file holds the root. The
// first start seals them and parts the two, wherever it is cut off.
func TestLedgerFromBefore(t *testing.T) {
	rootText := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32)) + "\n"
	// The commits of a whole start: 2 × 12 rows in batches of 7, and the key.
	for failing := range 7 {
		b := newBooks(t)
		b.put(rootText)
		all := b.fill(12, unsealed)
		var n atomic.Int64
		fault := func() error {
			if n.Add(1) > int64(failing) {
				return errors.New("the power is gone")
			}
			return nil
		}
		b.fault.Store(&fault)
		_, err := b.unlock()
		b.fault.Store(nil)
		if cut := err != nil; cut != (n.Load() > int64(failing)) {
			t.Fatalf("failing from commit %d on: %v", failing, err)
		}
		u := b.mustUnlock()
		b.opens(u.Vault, all)
		if string(u.Root) != strings.Repeat("\x09", 32) {
			t.Errorf("the root is not what the file held")
		}
		if now := b.inFile(); strings.Contains(now, rootText) || strings.Count(now, "\n") != 1 {
			t.Errorf("the file still holds the root, or two keys")
		}
	}
}

func TestLedgerFromBeforeUnderAConfiguredKey(t *testing.T) {
	b := newBooks(t)
	all := b.fill(2, unsealed)
	k := vault.Keys{Current: vault.URL(vault.NewKey())}
	// Without the file its callback addresses would be strangers.
	if _, err := b.unlock(k); err == nil || !strings.Contains(err.Error(), "secret.key is missing") {
		t.Errorf("%v", err)
	}
	b.put(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32)))
	u := b.mustUnlock(k)
	b.opens(u.Vault, all)
	if err := os.Remove(b.file); err != nil {
		t.Fatal(err)
	}
	if again := b.mustUnlock(k); string(again.Root) != strings.Repeat("\x09", 32) {
		t.Error("another root")
	}
	if _, err := os.Stat(b.file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

// Once a ledger has its secrets sealed, a plain one is not taken for one from
// before.
func TestPlainIsNotSealedLater(t *testing.T) {
	b := newBooks(t)
	b.mustUnlock()
	b.fill(1, unsealed)
	b.mustUnlock()
	for id, held := range b.held() {
		if _, _, sealed := held.Current.Parts(); sealed {
			t.Errorf("%s was sealed", id)
		}
	}
}

// A root that is damaged, or differs from key to key, stops the start.
func TestDamagedRoot(t *testing.T) {
	one, two := vault.NewKey(), vault.NewKey()
	both := vault.Keys{Current: vault.URL(two), Former: []config.Secret{vault.URL(one)}}
	for name, root := range map[string]ledger.Sealed{
		"another": seal(t, open(t, two), [16]byte{}, strings.Repeat("x", 32)), "short": seal(t, open(t, two), [16]byte{}, "x"),
		"of a row": seal(t, open(t, two), alice, strings.Repeat("x", 32)), "cut": "sealed:1:" + ledger.Sealed(open(t, two).Key()) + ":AAAA", "none": "",
	} {
		b := newBooks(t)
		b.mustUnlock(vault.Keys{Current: vault.URL(one)})
		b.do(ledger.AddWrappingKey{Header: store.NewHeader(""), Name: open(t, two).Key(), Root: root})
		if _, err := b.unlock(both); err == nil || !strings.Contains(err.Error(), "restore the ledger from a backup") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unaware is a reader that does not see the keys the first time it looks.
type unaware struct {
	store.Reader
	looked bool
}

// WrappingKeys hides what is there once.
func (u *unaware) WrappingKeys(ctx context.Context) ([]ledger.WrappingKey, error) {
	if !u.looked {
		u.looked = true
		return nil, nil
	}
	return u.Reader.WrappingKeys(ctx)
}

// Two nodes that make a ledger at the same moment with different keys: the
// later one does not start, and the earlier one's ledger is as if it had not
// been.
func TestTwoFirstStarts(t *testing.T) {
	b := newBooks(t)
	first := vault.Keys{Current: vault.URL(vault.NewKey())}
	root := b.mustUnlock(first).Root
	second := vault.Keys{Current: vault.URL(vault.NewKey()), File: b.file}
	if _, err := vault.Unlock(t.Context(), b.commit, &unaware{Reader: b.driver}, second); err == nil || !strings.Contains(err.Error(), "give the other one in secrets") {
		t.Errorf("the second node: %v, want that it is told of the other key", err)
	}
	if again := b.mustUnlock(first); !bytes.Equal(again.Root, root) {
		t.Error("the first node's root has changed")
	}
	same, err := vault.Unlock(t.Context(), b.commit, &unaware{Reader: b.driver}, vault.Keys{Current: first.Current, File: b.file})
	if err != nil || !bytes.Equal(same.Root, root) {
		t.Errorf("a second node with the same key: %v, or another root", err)
	}
}
