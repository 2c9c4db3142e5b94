package torture

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// random is a text of so many letters and digits.
func random(n int) string { return strings.ToLower((rand.Text() + rand.Text())[:n]) }

// database is one of our own on a server of PostgreSQL.
type database struct {
	name string
	url  *url.URL
	// server is the URL that was given.
	server string
}

// newDatabase makes a database on the server.
func newDatabase(ctx context.Context, server string) (*database, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" {
		return nil, errors.New("--database: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with a host: the connections go through proxies of our own")
	}
	if u.Port() == "" {
		u.Host += ":5432"
	}
	d := &database{name: "pawl_torture_" + random(12), server: server, url: u}
	if err := d.execute(ctx, `CREATE DATABASE "`+d.name+`" ENCODING 'UTF8' TEMPLATE template0`); err != nil {
		return nil, fmt.Errorf("make a database of our own: %w", err)
	}
	u.Path = "/" + d.name
	return d, nil
}

// through is the URL of the database by way of an address.
func (d *database) through(address string) string {
	u := *d.url
	u.Host = address
	return u.String()
}

// terminate ends most of the sessions of the nodes. The server may be away for a
// while.
func (d *database) terminate(ctx context.Context) (err error) {
	for range 100 {
		var n int
		if err = d.query(ctx, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid() AND random() < 0.8", &n); err == nil {
			return nil
		}
		if stopped := pause(ctx, 200*time.Millisecond); stopped != nil {
			return stopped
		}
	}
	return err
}

// deadlocks counts those that the server had to break.
func (d *database) deadlocks(ctx context.Context) (n int, err error) {
	err = d.query(ctx, "SELECT deadlocks FROM pg_stat_database WHERE datname = $1", &n)
	return n, err
}

func (d *database) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return d.execute(ctx, `DROP DATABASE "`+d.name+`" WITH (FORCE)`)
}

func (d *database) execute(ctx context.Context, statement string) error {
	return d.with(ctx, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, statement)
		return err
	})
}

func (d *database) query(ctx context.Context, question string, into any) error {
	return d.with(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, question, d.name).Scan(into) })
}

// with connects to the server; a pooler may be in between.
func (d *database) with(ctx context.Context, fn func(*pgx.Conn) error) error {
	u, err := url.Parse(d.server)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Del("pooler")
	u.RawQuery = q.Encode()
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil {
		return err
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(fn(c), c.Close(ctx))
}
