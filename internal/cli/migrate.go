package cli

import (
	"fmt"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

// migrateCmd are the commands about the schema of a ledger.
type migrateCmd struct {
	Status migrateStatusCmd `cmd:"" help:"Show which steps of the schema a ledger has, and which are pending."`
	Up     migrateUpCmd     `cmd:"" help:"Bring the schema of a ledger up to date."`
}

// where is a ledger: a folder, or a database.
type where struct {
	Data     string `help:"Data folder of a server." default:"${data}" placeholder:"DIR"`
	Database string `help:"URL of the PostgreSQL database that holds the ledger, in place of --data." placeholder:"URL"`
}

// config is the configuration that names the ledger.
func (w where) config() (config.Config, error) {
	cfg := config.Config{Data: w.Data}
	if w.Database != "" && w.Database != "sqlite" {
		var err error
		if cfg.Database, err = config.NewSecret(w.Database); err != nil || !cfg.Shared() {
			return cfg, usage("--database: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, or give the folder of a ledger in SQLite with --data")
		}
	}
	return cfg, nil
}

func (s *session) migrations(cfg config.Config) ([]store.Migration, error) {
	if cfg.Shared() {
		return postgres.Migrations(s.ctx, cfg.Database.Reveal())
	}
	return sqlite.Migrations(s.ctx, cfg.Data)
}

type migrateStatusCmd struct{ where }

// Help teaches by example.
func (migrateStatusCmd) Help() string {
	return `Nothing is changed, and the ledger may be in use. A step that this program does not know is one of a newer version.

` + examples(`pawl migrate status`, `pawl migrate status --data /var/lib/pawl --json`, `pawl migrate status --database postgres://pawl@db/pawl`)
}

func (c *migrateStatusCmd) Run(s *session) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	all, err := s.migrations(cfg)
	if err != nil {
		return err
	}
	return s.printMigrations(all)
}

type migrateUpCmd struct{ where }

// Help says when it is needed.
func (migrateUpCmd) Help() string {
	return `A server brings the schema up to date by itself when it starts. This command does it beforehand, so that an upgrade does in two steps what would otherwise be one: first the schema, then the nodes.

In PostgreSQL, nodes of the version before may run meanwhile and go on afterwards; a lock in a table lets one migrate at a time. An empty database gets its schema. A ledger in SQLite must not be served. There is no way back: make a backup first ("pawl backup", pg_dump).

` + examples(`pawl migrate up --data /var/lib/pawl`, `pawl migrate up --database postgres://pawl@db/pawl`)
}

func (c *migrateUpCmd) Run(s *session) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if cfg.Shared() {
		err = postgres.Migrate(s.ctx, cfg.Database.Reveal())
	} else {
		err = sqlite.Migrate(s.ctx, cfg.Data)
	}
	if err != nil {
		return err
	}
	all, err := s.migrations(cfg)
	if err != nil {
		return err
	}
	return s.printMigrations(all)
}

// printMigrations prints one line a step, the oldest first.
func (s *session) printMigrations(all []store.Migration) error {
	type row struct {
		Version   int64      `json:"version"`
		Name      string     `json:"name"`
		State     string     `json:"state"`
		AppliedAt *pawl.Time `json:"applied_at"`
	}
	rows := []row{}
	text := ""
	for _, m := range all {
		r := row{m.Version, m.Name, "pending", nil}
		if m.AppliedAt != 0 {
			r.State, r.AppliedAt = "applied", &m.AppliedAt
		}
		if m.Name == "" {
			r.Name, r.State = "?", "unknown"
		}
		at := ""
		if r.AppliedAt != nil {
			at = m.AppliedAt.String()
		}
		text += fmt.Sprintf("%04d  %-24s %-8s %s\n", m.Version, r.Name, r.State, at)
		rows = append(rows, r)
	}
	if !s.flags.JSON {
		return s.print(text)
	}
	out, err := encode(struct {
		Migrations []row `json:"migrations"`
	}{rows})
	if err != nil {
		return err
	}
	return s.printJSON(out)
}
