package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// threeNodes is how many nodes serve one ledger beside a single one.
const threeNodes = 3

// cluster is a PostgreSQL of the bench's own, which syncs as it should.
type cluster struct{ *pgtest.Server }

func onPostgres(ctx context.Context, st *stage) (err error) {
	server, err := pgtest.Start(ctx, "fsync=on", "shared_buffers=256MB", "max_wal_size=4GB")
	if err != nil {
		return err
	}
	c := cluster{server}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if st.s.hot > 0 {
		return c.hot(ctx, st)
	}
	one, err := c.ledger(ctx, st, "one", 1)
	if err != nil {
		return err
	}
	defer one.stop()
	three, err := c.ledger(ctx, st, "three", threeNodes)
	if err != nil {
		return err
	}
	defer three.stop()
	database, err := c.database(ctx, "direct")
	if err != nil {
		return err
	}
	d, err := openDirect(ctx, st, database)
	if err != nil {
		return err
	}
	defer d.close()
	all := []*measurement{
		st.bareline(),
		{key: "b1", name: "intake, one node", run: one.intake},
		{key: "b3", name: "intake, three nodes", run: three.intake},
		{key: "c1", name: "submit, one node", run: one.submit},
		{key: "c3", name: "submit, three nodes", run: three.submit},
		{key: "d1", name: "whole life, one node", run: one.cycle},
		{key: "d3", name: "whole life, three nodes", run: three.cycle},
		{key: "p", name: fmt.Sprintf("no HTTP: events, one transaction each on %d connections", plainLanes), run: d.plain},
		{key: "g", name: "no HTTP: events, group commit", run: d.grouped},
	}
	if err := st.s.measure(ctx, all); err != nil {
		return err
	}
	rate := make(map[string]float64)
	for _, m := range all {
		rate[m.key] = m.rate()
	}
	fmt.Printf("\nintake %.2f of (a) · group commit %.1f × the plain way · three nodes %.2f (intake), %.2f (submit), %.2f (life) of one\n",
		rate["b1"]/rate["a"], rate["g"]/rate["p"], rate["b3"]/rate["b1"], rate["c3"]/rate["c1"], rate["d3"]/rate["d1"])
	return one.closing(ctx)
}

// database makes one and gives its URL.
func (c cluster) database(ctx context.Context, name string) (string, error) {
	u, err := url.Parse(c.URL())
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	u.Path = "/" + name
	return u.String(), err
}

// analyze tells the planner what is there.
func analyze(ctx context.Context, database string) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	return errors.Join(err, conn.Close(ctx))
}

func (c cluster) ledger(ctx context.Context, st *stage, name string, nodes int) (*bench, error) {
	database, err := c.database(ctx, name)
	if err != nil {
		return nil, err
	}
	return st.ledger(ctx, name, database, nodes)
}

// hot sends events of ten operations to three nodes, one request in ten a whole
// life on the same account, and says what became of locks.
func (c cluster) hot(ctx context.Context, st *stage) error {
	b, err := c.ledger(ctx, st, "hot", threeNodes)
	if err != nil {
		return err
	}
	defer b.stop()
	if err := b.hold(ctx, 10); err != nil {
		return err
	}
	before, err := c.deadlocks(ctx)
	if err != nil {
		return err
	}
	s, k := scheme(providerSecret)
	var sent atomic.Int64
	began := time.Now()
	for int(sent.Load()) < st.s.hot && ctx.Err() == nil {
		first := int(sent.Load())
		_, err := b.load(ctx, b.pids(), func(ctx context.Context, n int) error {
			n += first
			if n > st.s.hot*11/10 {
				return nil
			}
			if n%11 == 0 {
				return b.submitOne(ctx, n, fmt.Sprint("hot-", n), false)
			}
			sent.Add(1)
			return post(b.client, b.api(n)+"/hooks/bench", eventBody(b.tasks[n%len(b.tasks)], n), s, k, fmt.Sprint("evt_", n))
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%d events after %s\n", sent.Load(), time.Since(began).Round(time.Second))
	}
	length := time.Since(began)
	if err := b.drained(ctx); err != nil {
		return err
	}
	after, err := c.deadlocks(ctx)
	if err != nil {
		return err
	}
	log := c.Log()
	fmt.Printf("%d events of 10 operations and %d lives on one account in %s (%.0f events/s), three nodes: %d deadlocks, 40P01 %d times and 40001 %d times in the server's log\n",
		sent.Load(), sent.Load()/10, length.Round(time.Second), float64(sent.Load())/length.Seconds(), after-before,
		strings.Count(log, "40P01"), strings.Count(log, "40001"))
	return nil
}

// deadlocks are those of all databases so far.
func (c cluster) deadlocks(ctx context.Context) (n int64, err error) {
	conn, err := pgx.Connect(ctx, c.URL())
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	return n, conn.QueryRow(ctx, "SELECT coalesce(sum(deadlocks), 0)::bigint FROM pg_stat_database").Scan(&n)
}
