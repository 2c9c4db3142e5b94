package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

type backupCmd struct {
	Data string `help:"Data folder of a server, running or stopped." default:"${data}" placeholder:"DIR"`
	Out  string `required:"" help:"File to write; it must not exist." placeholder:"FILE"`
}

// Help says what is in a backup and what is not.
func (backupCmd) Help() string {
	return `The ledger in SQLite is written into one file, as it is at one moment, while the server goes on. The file is checked before it gets its name: that it is whole, that it holds what the ledger held, and that it keeps the ledger's rules. It is readable by its owner only. A backup that is interrupted leaves nothing.

The file is not all that is needed: keep the wrapping key (secret.key, or what "secrets" in the configuration names) apart from it, the captured files (artifacts), and the configuration. What the data folder holds beside the ledger is named at the end. A ledger in PostgreSQL is backed up by PostgreSQL's own tools: docs/backup.md.

` + examples(`pawl backup --out /backup/pawl-2026-01-31.db`, `pawl backup --data /var/lib/pawl --out /backup/pawl.db --json`)
}

func (c *backupCmd) Run(s *session) error {
	line := &stepLine{s: s}
	broken := &checkReport{s: s}
	got, err := sqlite.Backup(s.ctx, c.Data, c.Out, func(v ledger.Violation) error {
		line.clear()
		return broken.violation(v)
	}, line.show)
	line.clear()
	if s.ctx.Err() != nil {
		return errors.New("interrupted: nothing was kept")
	}
	if err != nil {
		return err
	}
	beside, err := besideLedger(c.Data)
	if err != nil {
		return err
	}
	if err := c.print(s, got, beside); err != nil {
		return err
	}
	if got.Sum.Violations > 0 {
		s.say("the backup was kept; the ledger breaks its rules in %d places", got.Sum.Violations)
		return errShown
	}
	return nil
}

func (c *backupCmd) print(s *session, got *sqlite.BackedUp, beside []string) error {
	if s.flags.JSON {
		text, err := encode(struct {
			File       string           `json:"file"`
			Bytes      int64            `json:"bytes"`
			Schema     int64            `json:"schema"`
			Tables     map[string]int64 `json:"tables"`
			Checked    bool             `json:"checked"`
			Violations int              `json:"violations"`
			Beside     []string         `json:"not_in_it"`
		}{c.Out, got.Bytes, got.Schema, got.Tables, got.Checked, got.Sum.Violations, append([]string{}, beside...)})
		if err != nil {
			return err
		}
		return s.printJSON(text)
	}
	judged := fmt.Sprintf("checked: %d violations", got.Sum.Violations)
	if !got.Checked {
		judged = "whole, of an older schema: its rules can be checked after \"pawl migrate up\""
	}
	text := fmt.Sprintf("%s: %d operations, %d bytes, schema %d, %s\n", plain(c.Out), got.Tables["operations"], got.Bytes, got.Schema, judged)
	for _, what := range beside {
		text += "not in it: " + plain(what) + "\n"
	}
	return s.print(text)
}

// besideLedger names what else in a data folder is worth keeping.
func besideLedger(dir string) (all []string, err error) {
	for _, f := range [...]struct{ name, why string }{
		{"secret.key", "the wrapping key; without it the secrets in the backup cannot be opened; keep it apart from the backup"},
		{"admin.key", "the admin key; PAWL_ADMIN_KEY replaces it"},
		{"artifacts", "the captured files"},
	} {
		_, stat := os.Stat(filepath.Join(dir, f.name))
		if stat == nil {
			all = append(all, filepath.Join(dir, f.name)+" ("+f.why+")")
		} else if !errors.Is(stat, fs.ErrNotExist) {
			err = errors.Join(err, stat)
		}
	}
	return all, err
}
