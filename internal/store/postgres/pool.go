package postgres

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/internal/store"
)

// dialTimeout bounds one try to connect, unless the URL says otherwise.
const dialTimeout = 3 * time.Second

// pool is a bounded set of connections. Whoever finds all taken waits for one.
type pool struct {
	*pgxpool.Pool
	prepares bool
	closed   atomic.Bool
}

// Close waits for what is under way and closes the connections.
func (p *pool) Close() {
	p.closed.Store(true)
	p.Pool.Close()
}

// address is a database and how it is reached.
type address struct {
	config *pgxpool.Config
	pooled bool
}

// errURL does not repeat the URL: it holds a password.
var errURL = errors.New("it must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, as PostgreSQL's own programs take it")

// locate takes the URL of a database. pooler=transaction says that a pooler
// hands out connections for a transaction at a time.
func locate(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return address{}, errURL
	}
	query := u.Query()
	pooler := query.Get("pooler")
	if pooler != "" && pooler != "transaction" {
		return address{}, errors.New("pooler must be transaction, or left out")
	}
	query.Del("pooler")
	u.RawQuery = query.Encode()
	cfg, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return address{}, errURL
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = dialTimeout
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "pawl"
	}
	return address{cfg, pooler != ""}, nil
}

// pool makes a pool of at most n connections; it connects when it is asked. The
// settings are those of its sessions, where it has sessions of its own.
func (a address) pool(ctx context.Context, n int, settings map[string]string) (*pool, error) {
	cfg := a.config.Copy()
	if !a.pooled {
		maps.Copy(cfg.ConnConfig.RuntimeParams, settings)
	}
	cfg.MaxConns, cfg.MinConns = int32(n), 0
	cfg.MaxConnIdleTime = 5 * time.Minute
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &pool{Pool: p, prepares: !a.pooled}, nil
}

// use runs fn on a connection. Where the connection turns out to be dead before
// the server can have done anything (fn says so by errDead), the others of the
// pool are too, most likely, and fn is run once more on a new one.
func (p *pool) use(ctx context.Context, fn func(*conn) error) error {
	for fresh := false; ; fresh = true {
		held, err := p.Acquire(ctx)
		if err != nil {
			if p.closed.Load() {
				return store.ErrClosed
			}
			return err
		}
		c := p.conn(held.Conn())
		err = func() error {
			defer held.Release()
			return fn(c)
		}()
		if fresh || !errors.Is(err, errDead) || ctx.Err() != nil {
			return err
		}
		p.Reset()
	}
}

// errDead: a connection was dead before anything was done on it.
var errDead = errors.New("the connection was closed")

// dead marks an error as one of a connection that died before anything was
// done on it.
func (c *conn) dead(err error) error {
	if err != nil && (c.broken || pgconn.SafeToRetry(err)) {
		return errors.Join(errDead, err)
	}
	return err
}
