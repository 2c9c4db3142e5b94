package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

type restoreCmd struct {
	From string `help:"Backup to bring back, made by \"pawl backup\"." placeholder:"FILE"`
	where
}

// Help says why a restored ledger is not what it was.
func (restoreCmd) Help() string {
	return `A backup is older than the world: jobs were created at providers after it, and it knows nothing of them. So that none is created twice,
 - operations that the backup holds as yet to be created are marked: they are repeated only where the provider takes the same idempotency key for the same job, and become "unconfirmed" elsewhere;
 - creates are paused at every upstream until you resume them. Reads, callbacks and deliveries go on.

Nothing is written over: the folder must hold no ledger, and no server may run on it. The file is checked, gets this program's schema, and its rules are checked, before it gets its name.

Then: put secret.key, artifacts and the configuration back, start the server, compare both sides ("pawl reconcile --source NAME", "pawl review list"), and let creates go on with "pawl upstream resume NAME". docs/backup.md tells it step by step.

A ledger in PostgreSQL is brought back by PostgreSQL's own tools (pg_restore, or to a point in time); then, before the first node starts, "pawl restore --database URL" without --from marks it in the same way.

` + examples(`pawl restore --from /backup/pawl-2026-01-31.db --data /var/lib/pawl`, `pawl restore --database postgres://pawl@db/pawl`)
}

func (c *restoreCmd) Run(s *session) error {
	cfg, err := c.config()
	switch {
	case err != nil:
		return err
	case cfg.Shared() && c.From != "":
		return usage("--from is a backup of a ledger in SQLite; bring the database back with pg_restore, then run this without --from")
	case !cfg.Shared() && c.From == "":
		return usage("name the backup with --from, or with --database the database that PostgreSQL's own tools have brought back")
	}
	r := &restoring{s: s, line: &stepLine{s: s}}
	r.report = &checkReport{s: s}
	if cfg.Shared() {
		err = r.database(cfg)
	} else {
		err = sqlite.Restore(s.ctx, c.From, c.Data, func(d *sqlite.Driver, since pawl.Time) error { return r.ready(d, since) }, r.line.show)
	}
	r.line.clear()
	if s.ctx.Err() != nil {
		return errors.New("interrupted: run the same command again")
	}
	if err != nil {
		return err
	}
	return r.print(c)
}

// restoring makes a restored ledger safe to serve.
type restoring struct {
	s      *session
	line   *stepLine
	report *checkReport

	since  pawl.Time
	doubts store.Doubts
	sum    store.Summary
}

func (r *restoring) database(cfg config.Config) (err error) {
	if err := postgres.Unserved(r.s.ctx, cfg.Database.Reveal()); err != nil {
		return err
	}
	all, err := postgres.Migrations(r.s.ctx, cfg.Database.Reveal())
	if err != nil {
		return err
	}
	if !store.Begun(all) {
		return errors.New("there is no ledger in this database: bring it back with PostgreSQL's own tools first")
	}
	d, err := server.OpenLedger(r.s.ctx, cfg, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	since, err := d.LastCommit(r.s.ctx)
	if err != nil {
		return err
	}
	return r.ready(d, since)
}

// ready marks what is in doubt and checks the rules.
func (r *restoring) ready(d store.Driver, since pawl.Time) (err error) {
	r.since = since
	committer := store.NewCommitter(d, store.Options{})
	r.doubts, err = store.Doubt(r.s.ctx, committer, d, since)
	if err = errors.Join(err, committer.Close()); err != nil {
		return err
	}
	r.sum, err = store.Check(r.s.ctx, d, r.report.violation, func(n int) { r.line.show(fmt.Sprintf("checking operations: %d", n), 0, 0) })
	return err
}

func (r *restoring) print(c *restoreCmd) error {
	last := "never"
	if r.since.IsSet() {
		last = r.since.String()
	}
	if r.s.flags.JSON {
		text, err := encode(struct {
			LastCommit string   `json:"last_commit"`
			Operations int      `json:"operations"`
			Doubtful   int      `json:"doubtful"`
			Paused     []string `json:"paused_upstreams"`
			Violations int      `json:"violations"`
		}{last, r.sum.Operations, r.doubts.Operations, append([]string{}, r.doubts.Upstreams...), r.sum.Violations})
		if err == nil {
			err = r.s.printJSON(text)
		}
		if err != nil || r.sum.Violations > 0 {
			return errors.Join(err, errShown)
		}
		return nil
	}
	text := fmt.Sprintf("restored as of %s: %d operations, %d of them may have been created since; checked: %d violations\n", last, r.sum.Operations, r.doubts.Operations, r.sum.Violations)
	if len(r.doubts.Upstreams) > 0 {
		text += "creates are paused at: " + plain(strings.Join(r.doubts.Upstreams, ", ")) + "\n"
	}
	text += "next: put back the wrapping key (secret.key, or \"secrets\" of the configuration) and the captured files, start the server, compare both sides (\"pawl reconcile --source NAME\"), then let creates go on (\"pawl upstream resume NAME\")\n"
	if c.Database == "" {
		text += fmt.Sprintf("secret.key and artifacts belong into %s\n", plain(c.Data))
	}
	if err := r.s.print(text); err != nil {
		return err
	}
	if r.sum.Violations > 0 {
		return errShown
	}
	return nil
}
