package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/scale"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// fill puts operations of others into the ledger of a node that is stopped
// meanwhile. They are only there to be in the way.
func (b *bench) fill(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	b.stop()
	d, err := b.open(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(b.pour(ctx, d, n), d.Close()); err != nil {
		return err
	}
	b.filled = time.Now()
	if b.database != "" {
		if err := analyze(ctx, b.database); err != nil {
			return err
		}
	}
	return b.serve()
}

func (b *bench) open(ctx context.Context) (store.Driver, error) {
	if b.database != "" {
		return postgres.Open(ctx, b.database, postgres.Options{})
	}
	return sqlite.Open(ctx, filepath.Join(b.dir, b.name+"-1"), sqlite.Options{})
}

// pour fills a ledger and says how far it is.
func (b *stage) pour(ctx context.Context, d store.Driver, n int) error {
	began, told := time.Now(), time.Now()
	err := scale.Fill(ctx, d, b.dir, n, func(done int) {
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d operations after %s\n", done, n, time.Since(began).Round(time.Second))
		}
	})
	fmt.Fprintf(os.Stderr, "filled in %s\n", time.Since(began).Round(100*time.Millisecond))
	return err
}

// pages fills a ledger and loads every page of it.
func (b *stage) pages(ctx context.Context) (err error) {
	ledger := &bench{stage: b, name: "pages"}
	if b.s.postgres {
		server, err := pgtest.Start(ctx, "fsync=off", "shared_buffers=512MB", "max_wal_size=8GB", "autovacuum=on")
		if err != nil {
			return err
		}
		c := cluster{server}
		defer func() { err = errors.Join(err, c.Stop()) }()
		if ledger.database, err = c.database(ctx, "pages"); err != nil {
			return err
		}
	}
	if err := errors.Join(ledger.serve(), ledger.fill(ctx, b.s.pages)); err != nil {
		return err
	}
	defer ledger.stop()
	site := scale.Site{API: ledger.apis[0], Admin: ledger.admin, Key: adminKey, Filled: ledger.filled}
	pages, err := site.Measure(ctx, b.s.rounds, os.Stderr)
	if err != nil {
		return err
	}
	var slow int
	for _, p := range pages {
		if p.P95 > 200*time.Millisecond {
			slow++
		}
	}
	fmt.Printf("%d pages and lists, each %d times: first byte p95 at most %s, above 200 ms %d of them\n\n| page | p50 | p95 |\n| --- | --- | --- |\n",
		len(pages), b.s.rounds, pages[0].P95.Round(10*time.Microsecond), slow)
	for _, p := range pages[:min(len(pages), 25+slow)] {
		fmt.Printf("| `%s` | %s | %s |\n", p.Path, p.P50.Round(10*time.Microsecond), p.P95.Round(10*time.Microsecond))
	}
	return nil
}
