package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/dialect"
	"github.com/pawlhq/pawl/internal/ledger"
)

// frontSettings is what the fronts are told of a configuration.
func frontSettings(c config.Fronts) dialect.Settings {
	s := dialect.Settings{Models: c.MediaV2.Models, Upstream: c.BodyTimestamp.Upstream, Model: c.BodyTimestamp.Model}
	if c.BodyTimestamp.Anonymous {
		s.Anonymous = anonymousKeyID(anonymousTenant(c))
	}
	return s
}

func anonymousTenant(c config.Fronts) string { return cmp.Or(c.BodyTimestamp.Tenant, DefaultTenant) }

// anonymousAllowed refuses anonymous calls on what is really listened on, which
// a name in the configuration or a reload may hide (7-rules R44).
func (n *Node) anonymousAllowed(cfg config.Config) error {
	if cfg.Fronts.BodyTimestamp.Anonymous && !addrPort(n.apiListener).Addr().Unmap().IsLoopback() {
		return config.Problems{cfg.Problem("fronts.body-timestamp.anonymous", config.AnonymousExposed)}
	}
	return nil
}

// anonymousKeyID is the id of the API key that anonymous calls for a tenant count
// as: always the same, so that they keep it from start to start.
func anonymousKeyID(tenant string) pawl.ID {
	sum := sha256.Sum256([]byte("anonymous " + tenant))
	return pawl.NewID(2, binary.BigEndian.Uint64(sum[:8]))
}

// anonymousKey makes the API key that anonymous calls count as, once. It has no
// secret that anybody could send: what is stored is a random digest. Whoever
// revokes it ends anonymous calls.
func (n *Node) anonymousKey(ctx context.Context, c config.Fronts) error {
	if !c.BodyTimestamp.Anonymous {
		return nil
	}
	tenant := anonymousTenant(c)
	id := anonymousKeyID(tenant)
	rows := new(ledger.Rows)
	if err := n.driver.Load(ctx, &ledger.Keys{APIKeys: []pawl.ID{id}}, rows); err != nil {
		return err
	}
	if key, ok := rows.APIKeys.Get(id); ok {
		if key.RevokedAt.IsSet() {
			n.log.Warn("the API key of anonymous calls is revoked: they are refused", "key", id.Text(pawl.PrefixKey))
		}
		return nil
	}
	key := ledger.APIKey{ID: id, Tenant: tenant, Name: "anonymous", Scopes: ledger.ScopeSubmit | ledger.ScopeRead}
	_, _ = rand.Read(key.Hash[:]) // Never fails (crypto/rand).
	_, err := n.putKey(ctx, key, true)
	return err
}
