package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

const (
	// logLarge is a write-ahead log that no node keeps so large.
	logLarge = 256 << 20
	// clockOff is by how much the machine's clock may differ from the database's.
	clockOff = 2 * time.Second
	// transactionOld is how old a transaction may be.
	transactionOld = 5 * time.Minute
)

// database opens the ledger for reading and looks at its clock, too.
func (e *exam) database(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	path := filepath.Join(e.cfg.Data, "pawl.db")
	if _, err := os.Stat(path); !e.cfg.Shared() && errors.Is(err, fs.ErrNotExist) {
		e.say("database", OK, "there is no ledger yet; the first start makes one", "")
		return
	}
	r, err := server.OpenReadOnly(limited, e.cfg)
	if err != nil {
		e.say("database", Fault, err.Error(), "do what it says; docs/postgresql.md and docs/backup.md tell more")
		return
	}
	defer func() { _ = r.Close() }()
	e.schema(limited)
	began := time.Now()
	if _, err := r.Stats(limited); err != nil {
		e.say("database", Fault, "the ledger opens and cannot be read: "+err.Error(), "pawl ledger check reads all of it; bring a backup back where it is damaged")
		return
	}
	e.say("database", OK, fmt.Sprintf("the ledger opens and is read (%s)", time.Since(began).Round(time.Millisecond)), "")
	switch r := r.(type) {
	case *sqlite.Reader:
		if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > logLarge {
			e.say("database", Warning, fmt.Sprintf("the log of the ledger has %d MiB", info.Size()>>20), "something reads the ledger without an end: find it (lsof "+path+"-wal) and stop it")
		}
		e.clock(limited, "this ledger's last commit", r.LastCommit)
	case *postgres.Reader:
		e.hindrance(limited, r)
		e.clock(limited, "the database", r.Clock)
	}
}

// schema tells of steps that the next start makes.
func (e *exam) schema(ctx context.Context) {
	var all []store.Migration
	var err error
	if e.cfg.Shared() {
		all, err = postgres.Migrations(ctx, e.cfg.Database.Reveal())
	} else {
		all, err = sqlite.Migrations(ctx, e.cfg.Data)
	}
	pending := 0
	for _, m := range all {
		if m.AppliedAt == 0 {
			pending++
		}
	}
	if err == nil && pending > 0 {
		e.say("database", Warning, fmt.Sprintf("%d steps of the schema are pending", pending), "the next start makes them; make a backup first (docs/upgrading.md)")
	}
}

func (e *exam) hindrance(ctx context.Context, r *postgres.Reader) {
	h, err := r.Hindrance(ctx)
	switch {
	case err != nil:
		e.say("database", Warning, "open transactions could not be looked at: "+err.Error(), "grant pg_monitor to the user of the ledger")
	case h.Age > transactionOld:
		e.say("database", Warning, fmt.Sprintf("a transaction has been open for %s: %s; %d dead rows", h.Age, h.Who, h.DeadRows), "end it: until then all due work gets slower")
	}
}

// clock compares the machine's clock. Of a ledger in SQLite, whose clock is the
// machine's, nothing may have been written later than now.
func (e *exam) clock(ctx context.Context, whose string, read func(context.Context) (pawl.Time, error)) {
	before := time.Now()
	at, err := read(ctx)
	after := time.Now()
	switch {
	case err != nil || at == 0:
		return
	case at.Std().Sub(after) > clockOff:
		e.say("clock", Fault, fmt.Sprintf("the clock is %s behind %s", at.Std().Sub(after).Round(time.Second), whose), "set it right and keep it so (NTP): signatures of providers are refused when they seem to be from another time")
	case e.cfg.Shared() && before.Sub(at.Std()) > clockOff:
		e.say("clock", Fault, fmt.Sprintf("the clock is %s ahead of %s", before.Sub(at.Std()).Round(time.Second), whose), "set both right and keep them so (NTP)")
	default:
		e.say("clock", OK, "the clock agrees with "+whose, "")
	}
}
