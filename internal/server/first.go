package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
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
		return n.putAdminKey(ctx, secret)
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
	if err := n.putAdminKey(ctx, secret); err != nil {
		return err
	}
	o.Notice("an admin key was made; it is in " + path)
	return nil
}

func (n *Node) putAdminKey(ctx context.Context, secret string) error {
	return n.putKey(ctx, ledger.APIKey{
		ID: adminKeyID, Tenant: DefaultTenant, Name: "admin", Hash: sha256.Sum256([]byte(secret)),
		Scopes: ledger.ScopeSubmit | ledger.ScopeRead | ledger.ScopeOperate | ledger.ScopePayloads | ledger.ScopeAdmin,
	})
}

// putKey makes an API key with a webhook secret of its own; of one that exists
// only hash and scopes change.
func (n *Node) putKey(ctx context.Context, key ledger.APIKey) error {
	webhookSecret, err := webhook.NewSecret(nil)
	if err != nil {
		return err
	}
	if key.WebhookSecret, err = n.vault.Seal(ctx, key.ID, webhookSecret); err != nil {
		return err
	}
	return n.do(ctx, ledger.CreateKey{Header: store.NewHeader(""), Key: key})
}
