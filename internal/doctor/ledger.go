package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl"
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
	if e.cfg.Shared() {
		e.shared(limited)
		return
	}
	path := filepath.Join(e.cfg.Data, "pawl.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		e.say("database", OK, noLedger, "")
		return
	}
	r, err := sqlite.OpenUntouched(limited, e.cfg.Data)
	if errors.Is(err, sqlite.ErrNoIndex) {
		e.say("database", Warning, "the ledger was copied with its log and not looked at since: reading it would change the folder", "the next start reads it; pawl ledger check does so now, as the user of the node")
		return
	}
	if err != nil {
		e.say("database", Fault, err.Error(), "do what it says; docs/backup.md tells more")
		return
	}
	defer func() { _ = r.Close() }()
	all, err := r.Migrations(limited)
	if !e.schema(all, err) || !e.read(limited, r) {
		return
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > logLarge {
		e.say("database", Warning, fmt.Sprintf("the log of the ledger has %d MiB", info.Size()>>20), "something reads the ledger without an end: find it (lsof "+path+"-wal) and stop it")
	}
	e.clock(limited, "this ledger's last commit", r.LastCommit)
}

const noLedger = "there is no ledger yet; the first start makes one"

// shared looks at a ledger in PostgreSQL.
func (e *exam) shared(ctx context.Context) {
	advice := "do what it says; docs/postgresql.md tells more"
	if u, err := url.Parse(e.cfg.Database.Reveal()); err == nil && u.Query().Get("pooler") != "" {
		advice = "the pooler at " + u.Host + " is in between: if it answers there, what is wrong is between it and the database (SHOW DATABASES in its console, and its log)"
	}
	all, err := postgres.Migrations(ctx, e.cfg.Database.Reveal())
	if err != nil {
		e.say("database", Fault, err.Error(), advice)
		return
	}
	if !e.schema(all, nil) {
		return
	}
	r, err := postgres.OpenReadOnly(ctx, e.cfg.Database.Reveal())
	if err != nil {
		e.say("database", Fault, err.Error(), advice)
		return
	}
	defer func() { _ = r.Close() }()
	if e.read(ctx, r) {
		e.hindrance(ctx, r.Hindrance)
		e.clock(ctx, "the database", r.Clock)
	}
}

// read reads the ledger's figures, for which most of its tables must be sound.
func (e *exam) read(ctx context.Context, r store.Reader) bool {
	began := time.Now()
	if _, err := r.Stats(ctx); err != nil {
		e.say("database", Fault, "the ledger opens and cannot be read: "+err.Error(), "pawl ledger check reads all of it; bring a backup back where it is damaged")
		return false
	}
	e.say("database", OK, fmt.Sprintf("the ledger opens and is read (%s)", time.Since(began).Round(time.Millisecond)), "")
	return true
}

// schema tells of steps that the next start makes, and says whether this program
// can read the ledger as it is.
func (e *exam) schema(all []store.Migration, err error) bool {
	pending := 0
	for _, m := range all {
		if m.AppliedAt == 0 {
			pending++
		}
	}
	switch refusal := store.CheckVersion(all); {
	case err != nil:
		e.say("database", Fault, err.Error(), "it is none, or damaged: bring a backup back (docs/backup.md)")
		return false
	case errors.Is(refusal, store.ErrNewerSchema):
		e.say("database", Fault, refusal.Error(), "docs/upgrading.md tells of the way back")
		return false
	case pending == len(all):
		e.say("database", OK, noLedger, "")
		return false
	case pending > 0:
		e.say("database", Warning, fmt.Sprintf("%d steps of the schema are pending, so the ledger was not read", pending), "the next start makes them; make a backup first (docs/upgrading.md)")
		return false
	}
	return true
}

// hindrance tells of a transaction that keeps the database from cleaning up.
func (e *exam) hindrance(ctx context.Context, look func(context.Context) (postgres.Hindrance, error)) {
	h, err := look(ctx)
	switch {
	case err != nil:
		e.say("database", Warning, "open transactions could not be looked at: "+err.Error(), "grant pg_monitor to the user of the ledger")
	case h.Age > e.old:
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
