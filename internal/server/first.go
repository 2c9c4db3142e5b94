package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/vault"
	"github.com/pawlhq/pawl/webhook"
)

// DefaultTenant is the tenant of a node without a configuration.
const DefaultTenant = "default"

// firstThings does what a start does before it serves: tenants and their
// opening credit, and the admin key.
func (n *Node) firstThings(ctx context.Context, o Options) error {
	if err := n.tenants(ctx, n.cfg); err != nil {
		return err
	}
	if err := n.adminKey(ctx, o); err != nil {
		return err
	}
	return n.anonymousKey(ctx, n.cfg.Fronts)
}

// tenants makes every tenant that the configuration names anywhere, with an
// account only if one is given (7-rules R51).
func (n *Node) tenants(ctx context.Context, cfg config.Config) error {
	all := map[string]config.Tenant{DefaultTenant: {}}
	for _, up := range cfg.Upstreams {
		for _, name := range up.Tenants {
			all[name] = config.Tenant{}
		}
	}
	for _, source := range cfg.Sources {
		if source.Tenant != "" {
			all[source.Tenant] = config.Tenant{}
		}
	}
	if front := cfg.Fronts.BodyTimestamp.Tenant; front != "" {
		all[front] = config.Tenant{}
	}
	maps.Copy(all, cfg.Tenants)
	for name, t := range all {
		c := ledger.EnsureTenant{Header: store.NewHeader(""), Name: name}
		if t.Account != nil {
			c.Currency, c.Opening = t.Account.Currency, t.Account.Credit
		}
		if err := n.do(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) do(ctx context.Context, c ledger.Command) error {
	out, err := n.store.Do(ctx, c)
	if err != nil {
		return err
	}
	if out.Err != nil {
		return out.Err
	}
	return nil
}

// adminKeyID is the id of the admin key that the start makes: always the same,
// so that a new secret replaces the former one (7-rules R46).
var adminKeyID = pawl.NewID(1, 1)

// minKey is how many characters a given admin key has after its prefix.
const minKey = 32

// checkAdminKey judges a given admin key; empty stands for none.
func checkAdminKey(secret string) error {
	rest, ok := strings.CutPrefix(secret, api.KeyPrefix)
	hidden := func(r rune) bool { return r <= ' ' || r > '~' }
	if secret != "" && (!ok || len(rest) < minKey || strings.ContainsFunc(rest, hidden)) {
		return fmt.Errorf("PAWL_ADMIN_KEY must be %q and at least %d more visible characters", api.KeyPrefix, minKey)
	}
	return nil
}

// adminKey makes the admin key at the very first start and writes it to a
// file that only its owner can read; a key given in the environment wins.
func (n *Node) adminKey(ctx context.Context, o Options) error {
	path := filepath.Join(n.cfg.Data, "admin.key")
	secret := o.AdminKey
	if secret != "" {
		_, err := n.putAdminKey(ctx, secret, false)
		return err
	}
	keys, err := n.driver.APIKeys(ctx, store.APIKeyFilter{}, store.Page{Limit: 1})
	if err != nil || len(keys) > 0 {
		return err
	}
	if secret, err = api.NewKeySecret(); err != nil {
		return err
	}
	// The file first: a crash in between leaves a key that is not valid yet and
	// is replaced at the next start.
	if err := vault.WriteFile(path, secret+"\n"); err != nil {
		return fmt.Errorf("the admin key could not be written: %w", err)
	}
	valid, err := n.putAdminKey(ctx, secret, true)
	if err != nil {
		return err
	}
	if !valid {
		return n.otherAdminKey(path, secret)
	}
	o.Notice("an admin key was made; it is in " + path)
	return nil
}

// otherAdminKey takes back a file whose key never became valid, since another
// node that shares the ledger was first: its row in the ledger decides.
func (n *Node) otherAdminKey(path, secret string) error {
	text, err := os.ReadFile(path)
	if err == nil && string(text) == secret+"\n" {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the admin key of another node is in force, and this one's could not be removed: %w", err)
	}
	n.log.Warn("the admin key is not in this node's data folder: another node made it at the same moment, and it is in admin.key of that node's", "not_in", path)
	return nil
}

// putAdminKey makes the admin key and reports whether it is the one in force. It
// replaces the one that exists, unless that is to be kept.
func (n *Node) putAdminKey(ctx context.Context, secret string, keep bool) (bool, error) {
	mine := sha256.Sum256([]byte(secret))
	made, err := n.putKey(ctx, ledger.APIKey{
		ID: adminKeyID, Tenant: DefaultTenant, Name: "admin", Hash: mine,
		Scopes: ledger.ScopeSubmit | ledger.ScopeRead | ledger.ScopeOperate | ledger.ScopePayloads | ledger.ScopeAdmin,
	}, keep)
	return made.Hash == mine, err
}

// putKey makes an API key with a webhook secret of its own and gives it as it is
// in the ledger. Of one that exists only hash and scopes change, and they too
// not if it is to be kept.
func (n *Node) putKey(ctx context.Context, key ledger.APIKey, keep bool) (ledger.APIKey, error) {
	webhookSecret, err := webhook.NewSecret(nil)
	if err != nil {
		return ledger.APIKey{}, err
	}
	if key.WebhookSecret, err = n.vault.Seal(ctx, key.ID, webhookSecret); err != nil {
		return ledger.APIKey{}, err
	}
	out, err := n.store.Do(ctx, ledger.CreateKey{Header: store.NewHeader(""), Key: key, Keep: keep})
	if err != nil {
		return ledger.APIKey{}, err
	}
	if out.Err != nil {
		return ledger.APIKey{}, out.Err
	}
	return out.Value.(ledger.APIKey), nil
}
