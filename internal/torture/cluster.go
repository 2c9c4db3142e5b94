package torture

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/demo"
	"github.com/pawlhq/pawl/internal/sim"
)

// cluster is the nodes on one ledger, behind one address.
type cluster struct {
	nodes []*node
	key   string
	// front spreads connections over the nodes, as a load balancer does.
	front *proxy
	// database is nil on SQLite.
	database *database
	// ledger is where the ledger is, without proxies.
	ledger config.Config
}

func newCluster(ctx context.Context, dir string, o Options, provider string, s *sim.Server) (_ *cluster, err error) {
	c := &cluster{key: "pawl_sk_" + random(40)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close(false))
		}
	}()
	if o.Database != "" {
		if c.database, err = newDatabase(ctx, o.Database); err != nil {
			return nil, err
		}
		if c.ledger.Database, err = config.NewSecret(c.database.through(c.database.url.Host)); err != nil {
			return nil, err
		}
	}
	if c.front, err = newProxy(c.addresses); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	wrapping := make([]byte, 32)
	_, _ = rand.Read(wrapping) // Never fails (crypto/rand).
	for i := range o.Nodes {
		n := &node{number: i + 1, program: program, env: []string{"PAWL_ADMIN_KEY=" + c.key}, data: filepath.Join(dir, fmt.Sprint("node-", i+1))}
		n.log, n.config = n.data+".log", n.data+".yaml"
		c.nodes = append(c.nodes, n)
		text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\npublic_url: http://%s\ndata: %q\ndrain: 2s\nartifacts: {store: %q}\n%s%s",
			c.front.address(), n.data, "file://"+filepath.Join(dir, "artifacts"), demo.Upstreams(provider, s), ownWork)
		c.ledger.Data = n.data
		if c.database != nil {
			if n.database, err = newProxy(func() []string { return []string{c.database.url.Host} }); err != nil {
				return nil, err
			}
			n.database.start()
			text += fmt.Sprintf("database: %q\nsecrets: base64key://%s\n", c.database.through(n.database.address()), base64.URLEncoding.EncodeToString(wrapping))
		}
		if err := errors.Join(os.MkdirAll(n.data, 0o700), os.WriteFile(n.config, []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
	c.front.start() // Only now: it looks at the nodes.
	return c, nil
}

// ownWork is an upstream of own workers, whose leases end soon.
const ownWork = "  hands: {preset: worker, lease: 1s, attempts: 50, deadline: 1h}\n"

// addresses are those of the living nodes, in an order of chance.
func (c *cluster) addresses() []string {
	var out []string
	for _, n := range c.nodes {
		if a := n.address(); a != "" {
			out = append(out, a)
		}
	}
	mathrand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// stop has all nodes end by themselves.
func (c *cluster) stop() (err error) {
	for _, n := range c.nodes {
		err = errors.Join(err, n.stop())
	}
	return err
}

// close kills what still runs and closes the rest. The database is dropped
// unless it is kept.
func (c *cluster) close(keep bool) (err error) {
	for _, n := range c.nodes {
		n.kill()
		if n.database != nil {
			err = errors.Join(err, n.database.close())
		}
	}
	if c.front != nil {
		err = errors.Join(err, c.front.close())
	}
	if c.database != nil && !keep {
		err = errors.Join(err, c.database.drop())
	}
	return err
}
