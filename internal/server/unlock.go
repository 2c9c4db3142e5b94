package server

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/vault"
)

// WrappingKeys are those of a node of this configuration.
func WrappingKeys(cfg config.Config) vault.Keys {
	return vault.Keys{Current: cfg.Secrets, Former: cfg.FormerSecrets, File: filepath.Join(cfg.Data, "secret.key")}
}

// SettingProblem tells of a wrapping key that cannot be used as of any other
// setting.
func SettingProblem(cfg config.Config, err error) error {
	var wrong *vault.SettingError
	if errors.As(err, &wrong) {
		return config.Problems{cfg.Problem(wrong.Key, wrong.What)}
	}
	return err
}

// unlock opens the secrets of the ledger: a wrong key stops the start before
// anything is served. It gives the key that callback addresses and page tokens
// are derived from.
func (n *Node) unlock(ctx context.Context) ([]byte, error) {
	u, err := vault.Unlock(ctx, n.store, n.driver, WrappingKeys(n.cfg))
	if err != nil {
		return nil, SettingProblem(n.cfg, err)
	}
	n.vault, n.rewrap = u.Vault, u.Rewrapper
	return u.Root, nil
}

// revealed joins secrets, for comparing lists of them.
func revealed(secrets []config.Secret) string {
	var all []string
	for _, s := range secrets {
		all = append(all, s.Reveal())
	}
	return strings.Join(all, "\n")
}
