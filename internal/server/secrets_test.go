package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/vault"
)

// The wrapping key changes while the node is stopped: the callback of a job from
// before is known afterwards, and what it comes to is signed with the same
// secrets.
func TestRewrapBetweenStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	op, c := w.running("k")
	w.drain()
	path := filepath.Join(w.cfg.Data, "secret.key")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rewrapStopped(t, w.cfg)
	if now, err := os.ReadFile(path); err != nil || bytes.Equal(was, now) || bytes.Count(now, []byte("\n")) != 1 {
		t.Errorf("the key in the file is the former one, or not alone: %v", err)
	}
	w.start()
	w.finish(op, c)
	w.told(op, "operation.running", "operation.succeeded")
	// With the former file the ledger does not start.
	w.drain()
	if err := os.WriteFile(path, was, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), w.cfg, Options{AdminKey: adminKey})
	if err == nil || !strings.Contains(err.Error(), "put back the "+path+" that belongs to this ledger") {
		t.Errorf("a start with the former key: %v", err)
	}
}

func rewrapStopped(t *testing.T, cfg config.Config) {
	t.Helper()
	driver, err := sqlite.Open(t.Context(), cfg.Data, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	committer := store.NewCommitter(driver, store.Options{})
	keys := WrappingKeys(cfg)
	keys.Renew = true
	u, err := vault.Unlock(t.Context(), committer, driver, keys)
	if err == nil {
		_, err = vault.Total(t.Context(), func(ctx context.Context, after string) (vault.Step, error) {
			return u.Rewrapper.Step(ctx, "", after)
		}, nil)
	}
	if err := errors.Join(err, committer.Close(), driver.Close()); err != nil {
		t.Fatal(err)
	}
}

// The key goes from the file into the configuration as the error of the first
// try says, and from there to another, through the API of the running node.
func TestRewrapOfRunningNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	op, c := w.running("k")
	w.drain()
	w.cfg.Secrets = vault.URL(vault.NewKey())
	_, err := Start(t.Context(), w.cfg, Options{AdminKey: adminKey})
	path := filepath.Join(w.cfg.Data, "secret.key")
	if err == nil || !strings.Contains(err.Error(), `add former_secrets: ["base64key://${file:`+path+`}"] to the configuration`) {
		t.Fatalf("%v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	former, err := config.NewSecret("base64key://" + strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	w.cfg.FormerSecrets = []config.Secret{former}
	w.start()
	w.rewrapRunning()
	w.drain()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.cfg.Secrets, w.cfg.FormerSecrets = vault.URL(vault.NewKey()), []config.Secret{w.cfg.Secrets}
	w.start()
	w.rewrapRunning()
	w.drain()
	w.cfg.FormerSecrets = nil
	w.start()
	w.finish(op, c)
	w.told(op, "operation.running", "operation.succeeded")
}

func (w *world) rewrapRunning() {
	w.Helper()
	var last reply
	for after, steps := "", 0; last.fields["done"] != true && steps < 9; steps++ {
		last = w.want(http.StatusOK, w.call(http.MethodPost, "/v1/secrets/rewrap", map[string]any{"after": after}))
		after = last.at("next")
	}
	if retired, _ := last.fields["retired"].([]any); len(retired) != 1 {
		w.Errorf("%v", last.fields)
	}
}

// A wrapping key that cannot be used is a fault of the configuration, with its
// line and without the key; nothing is served.
func TestWrappingKeysRefused(t *testing.T) {
	t.Parallel()
	const canary = "bWFyaWdvbGQgbWFyaWdvbGQ"
	for text, want := range map[string]string{
		"secrets: base64key://" + canary:                              "p.yaml:1: secrets: the key behind base64key:// must be 32 random bytes in base64",
		"secrets: \"base64key://${EMPTY}\"":                           "p.yaml:1: secrets: the key behind base64key:// must be 32 random bytes in base64",
		"secrets: awskms://alias/" + canary:                           "p.yaml:1: secrets: keys of a cloud's key service are not compiled into this program",
		"drain: 1s\nformer_secrets: [\"base64key://" + canary + "\"]": "p.yaml:2: former_secrets[0]: the key behind base64key:// must be",
	} {
		cfg, err := config.Parse("p.yaml", []byte(text), func(string) (string, bool) { return "", true })
		if err != nil {
			t.Fatal(err)
		}
		cfg.Data, cfg.Listen, cfg.AdminListen = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "127.0.0.1:0"
		_, err = Start(t.Context(), cfg, Options{AdminKey: adminKey})
		var problems config.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A ledger from before, whose secrets are plain and whose key file is what
// callback addresses are derived from, goes on as it was.
func TestLedgerFromBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	op, c := w.running("k")
	w.drain()
	makeOld(t, w.cfg)
	w.start()
	w.finish(op, c)
	w.told(op, "operation.running", "operation.succeeded")
	w.drain()
	for _, name := range []string{"pawl.db", "pawl.db-wal"} {
		text, err := os.ReadFile(filepath.Join(w.cfg.Data, name))
		if err == nil && name == "pawl.db" && !bytes.Contains(text, []byte("sealed:1:")) {
			t.Error("nothing is sealed")
		}
	}
}

// makeOld takes everything apart that seals a ledger.
func makeOld(t *testing.T, cfg config.Config) {
	t.Helper()
	driver, err := sqlite.Open(t.Context(), cfg.Data, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	committer := store.NewCommitter(driver, store.Options{})
	u, err := vault.Unlock(t.Context(), committer, driver, WrappingKeys(cfg))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := driver.APIKeys(t.Context(), store.APIKeyFilter{}, store.Page{Limit: 9})
	endpoints, err2 := driver.Endpoints(t.Context(), store.EndpointFilter{Kind: ledger.WebhookEndpoint}, store.Page{Limit: 9})
	if err := errors.Join(err, err2); err != nil || len(keys) == 0 || len(endpoints) == 0 {
		t.Fatal(err)
	}
	var commands []ledger.Command
	for _, k := range keys {
		plain, err := u.Vault.Open(t.Context(), k.ID, k.WebhookSecret)
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, ledger.Rewrap{APIKey: k.ID, Was: ledger.SealedPair{Current: k.WebhookSecret}, Now: ledger.SealedPair{Current: ledger.Sealed(plain)}})
	}
	for _, e := range endpoints {
		plain, err := u.Vault.Open(t.Context(), e.ID, e.Secret)
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, ledger.Rewrap{Endpoint: e.ID, Was: ledger.SealedPair{Current: e.Secret}, Now: ledger.SealedPair{Current: ledger.Sealed(plain)}})
	}
	for _, r := range committer.DoAll(t.Context(), commands...) {
		if r.Err != nil || r.Outcome.Err != nil {
			t.Fatal(r.Err, r.Outcome.Err)
		}
	}
	if err := errors.Join(committer.Close(), driver.Close()); err != nil {
		t.Fatal(err)
	}
	sqliteExec(t, filepath.Join(cfg.Data, "pawl.db"), "DELETE FROM wrapping_keys")
	root := base64.StdEncoding.EncodeToString(u.Root) + "\n"
	if err := os.WriteFile(filepath.Join(cfg.Data, "secret.key"), []byte(root), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sqliteExec(t *testing.T, path, sql string) {
	t.Helper()
	c, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Exec(sql), c.Close()); err != nil {
		t.Fatal(err)
	}
}
