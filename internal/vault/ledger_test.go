package vault_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/vault"
)

// books is a ledger in memory with a key file in a folder of its own.
type books struct {
	*testing.T
	driver *memory.Store
	commit *store.Committer
	file   string
	// fault, where set, fails a commit. It is called by the committer's goroutine.
	fault atomic.Pointer[func() error]
}

func newBooks(t *testing.T) *books {
	b := &books{T: t, file: filepath.Join(t.TempDir(), "secret.key")}
	b.driver = memory.New(memory.Options{Fault: func(s memory.Step) error {
		if fault := b.fault.Load(); fault != nil && s == memory.OnSave {
			return (*fault)()
		}
		return nil
	}})
	b.commit = store.NewCommitter(b.driver, store.Options{Batch: 7})
	t.Cleanup(func() { _ = b.commit.Close() })
	return b
}

// unlock unlocks with the key of the file, unless other keys are given.
func (b *books) unlock(keys ...vault.Keys) (*vault.Unlocked, error) {
	k := vault.Keys{}
	if len(keys) > 0 {
		k = keys[0]
	}
	k.File = b.file
	return vault.Unlock(b.Context(), b.commit, b.driver, k)
}

func (b *books) mustUnlock(keys ...vault.Keys) *vault.Unlocked {
	b.Helper()
	u, err := b.unlock(keys...)
	if err != nil {
		b.Fatal(err)
	}
	return u
}

func (b *books) do(c ledger.Command) {
	b.Helper()
	out, err := b.commit.Do(b.Context(), c)
	if err != nil || out.Err != nil {
		b.Fatalf("%T: %v %v", c, err, out.Err)
	}
}

// inFile is what the key file holds.
func (b *books) inFile() string {
	b.Helper()
	text, err := os.ReadFile(b.file)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// plain are the secrets that rows were made with, by the row.
type plain map[pawl.ID][2]string

// fill makes n API keys and n endpoints whose secrets are made by seal; every
// second one has a former secret too.
func (b *books) fill(n int, seal func(owner pawl.ID, secret string) ledger.Sealed) plain {
	b.Helper()
	all := make(plain)
	var commands []ledger.Command
	for i := range n {
		key, hook := pawl.NewID(pawl.Time(2_000_000+i), uint64(i)), pawl.NewID(pawl.Time(3_000_000+i), uint64(i))
		for id, kind := range map[pawl.ID]string{key: "key", hook: "hook"} {
			all[id] = [2]string{kind + " secret " + id.String(), ""}
			if i%2 == 1 {
				all[id] = [2]string{all[id][0], kind + " former " + id.String()}
			}
		}
		sealed := func(id pawl.ID) (ledger.Sealed, ledger.Sealed) { return seal(id, all[id][0]), seal(id, all[id][1]) }
		k := ledger.APIKey{ID: key, Tenant: "acme", Hash: ledger.Digest{byte(i), byte(i >> 8), 1}, Scopes: ledger.ScopeSubmit}
		k.WebhookSecret, k.FormerSecret = sealed(key)
		commands = append(commands, ledger.CreateKey{Header: store.NewHeader(""), Key: k})
		e := ledger.Endpoint{ID: hook, Tenant: "acme", URL: "https://example.com", Scheme: "standard-webhooks"}
		e.Secret, e.FormerSecret = sealed(hook)
		commands = append(commands, ledger.CreateEndpoint{Header: store.NewHeader(""), Endpoint: e})
	}
	for _, result := range b.commit.DoAll(b.Context(), commands...) {
		if result.Err != nil || result.Outcome.Err != nil {
			b.Fatal(result.Err, result.Outcome.Err)
		}
	}
	return all
}

// held are the sealed secrets of every row that the ledger has.
func (b *books) held() map[pawl.ID]ledger.SealedPair {
	b.Helper()
	all := make(map[pawl.ID]ledger.SealedPair)
	keys, err := b.driver.APIKeys(b.Context(), store.APIKeyFilter{}, store.Page{Limit: 1 << 20})
	endpoints, err2 := b.driver.Endpoints(b.Context(), store.EndpointFilter{}, store.Page{Limit: 1 << 20})
	if err := errors.Join(err, err2); err != nil {
		b.Fatal(err)
	}
	for _, k := range keys {
		all[k.ID] = ledger.SealedPair{Current: k.WebhookSecret, Former: k.FormerSecret}
	}
	for _, e := range endpoints {
		all[e.ID] = ledger.SealedPair{Current: e.Secret, Former: e.FormerSecret}
	}
	return all
}

// opens insists that the vault opens every secret, and that all are sealed with
// its current key.
func (b *books) opens(v *vault.Vault, want plain) {
	b.Helper()
	held := b.held()
	if len(held) != len(want) {
		b.Errorf("%d rows, want %d", len(held), len(want))
	}
	for id, texts := range want {
		for i, s := range []ledger.Sealed{held[id].Current, held[id].Former} {
			if got, err := v.Open(b.Context(), id, s); err != nil || got != texts[i] {
				b.Errorf("%s: %q, %v; want %q", id, got, err, texts[i])
			}
			if name, _, sealed := s.Parts(); s != "" && (!sealed || name != v.Key()) {
				b.Errorf("%s is sealed with %q, want %q", id, name, v.Key())
			}
		}
	}
}

// sealing is a vault's Seal for [books.fill].
func (b *books) sealing(v *vault.Vault) func(pawl.ID, string) ledger.Sealed {
	return func(owner pawl.ID, secret string) ledger.Sealed {
		s, err := v.Seal(context.Background(), owner, secret)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
}

func unsealed(_ pawl.ID, secret string) ledger.Sealed { return ledger.Sealed(secret) }

// names are the keys in use and those that are retired.
func (b *books) names() (used, retired []string) {
	b.Helper()
	all, err := b.driver.WrappingKeys(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range all {
		if k.RetiredAt == 0 {
			used = append(used, k.Name)
		} else {
			retired = append(retired, k.Name)
			if k.Root != "" {
				b.Errorf("the retired key %s still opens the root", k.Name)
			}
		}
	}
	return used, retired
}
