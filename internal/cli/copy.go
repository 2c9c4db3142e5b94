package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
	"github.com/pawlhq/pawl/internal/store/sqlite"
)

type copyCmd struct {
	From string `required:"" help:"The ledger: the data folder of a stopped server, or a postgres:// URL without nodes." placeholder:"DIR|URL"`
	To   string `required:"" help:"Where it goes: an empty database, or an empty folder." placeholder:"DIR|URL"`
}

// Help teaches the whole move.
func (copyCmd) Help() string {
	return `The whole ledger is copied from SQLite to PostgreSQL, or back. Stop its servers first: what is served is refused, and so is a target that holds anything. The copy may be interrupted at any moment, by kill -9 too: the same command goes on from there. Until it is finished no server starts on it. At the end the rows of every table are counted on both sides, and the rules are checked on both.

The source is only read, so it is the way back until the first server starts on the copy. From then on never serve the source again: both would create the same jobs.

Secrets stay sealed with the same wrapping key: give it to the nodes, "secrets: base64key://${file:DIR/secret.key}", or as "former_secrets" beside a new one, and then "pawl key rewrap". Captured files are not in the ledger: "artifacts.store" must name a folder that holds them and that all nodes share.

The password of a database may be left to PGPASSWORD, which others on the machine do not see.

` + examples(`pawl copy --from /var/lib/pawl --to postgres://pawl@db/pawl`, `pawl copy --from postgres://pawl@db/pawl --to /var/lib/pawl-back --json`)
}

// sideOf takes a folder or a URL.
func sideOf(flag, text string) (config.Config, error) {
	cfg := config.Config{}
	secret, err := config.NewSecret(text)
	if err == nil {
		cfg.Database = secret
	}
	if err != nil || !cfg.Shared() {
		cfg = config.Config{Data: text}
	}
	if text == "" {
		return cfg, usage("%s: name a data folder or a postgres:// URL", flag)
	}
	return cfg, nil
}

func (c *copyCmd) Run(s *session) (err error) {
	from, err := sideOf("--from", c.From)
	if err != nil {
		return err
	}
	to, err := sideOf("--to", c.To)
	if err != nil {
		return err
	}
	if c.From == c.To || !from.Shared() && !to.Shared() && filepath.Clean(c.From) == filepath.Clean(c.To) {
		return usage("--from and --to are the same ledger")
	}
	run := &copying{s: s, line: &stepLine{s: s}, started: s.Now()}
	err = run.all(from, to)
	run.line.clear()
	if s.ctx.Err() != nil {
		return errors.New("interrupted: the same command goes on from there")
	}
	if err != nil {
		return err
	}
	return run.print(from)
}

// copying is one run of a copy.
type copying struct {
	s       *session
	line    *stepLine
	started time.Time

	counts  []store.TableCount
	already bool
	sums    [2]store.Summary
}

type closer interface{ Close() error }

// openSource opens a ledger that nobody serves.
func openSource(ctx context.Context, cfg config.Config) (interface {
	store.Whole
	closer
}, error) {
	if !cfg.Shared() {
		return sqlite.OpenStopped(ctx, cfg.Data)
	}
	if err := postgres.Unserved(ctx, cfg.Database.Reveal()); err != nil {
		return nil, err
	}
	return postgres.OpenReadOnly(ctx, cfg.Database.Reveal())
}

// openTarget opens what the ledger is copied into.
func openTarget(ctx context.Context, cfg config.Config) (interface {
	store.CopyTarget
	closer
}, error) {
	if !cfg.Shared() {
		return sqlite.Open(ctx, cfg.Data, sqlite.Options{Copying: true})
	}
	if err := postgres.Unserved(ctx, cfg.Database.Reveal()); err != nil {
		return nil, err
	}
	return postgres.Open(ctx, cfg.Database.Reveal(), postgres.Options{Copying: true})
}

func (r *copying) all(fromCfg, toCfg config.Config) (err error) {
	from, err := openSource(r.s.ctx, fromCfg)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openTarget(r.s.ctx, toCfg)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	r.counts, err = store.Copy(r.s.ctx, from, to, func(p store.CopyProgress) { r.line.show(p.Table+", rows", p.Done, p.Total) })
	if r.already = errors.Is(err, store.ErrCopied); err != nil && !r.already {
		return err
	}
	report := &checkReport{s: r.s}
	for i, side := range [...]struct {
		name  string
		facts store.Facts
	}{{"source", from}, {"copy", to}} {
		r.sums[i], err = store.Check(r.s.ctx, side.facts, report.violation, func(n int) {
			r.line.show(fmt.Sprintf("checking the %s, operations: %d", side.name, n), 0, 0)
		})
		r.line.clear()
		if err != nil {
			return fmt.Errorf("the %s could not be checked: %w", side.name, err)
		}
	}
	if r.sums[0] != r.sums[1] {
		return fmt.Errorf("the two are not the same: %+v in the source and %+v in the copy; empty the target and begin anew", r.sums[0], r.sums[1])
	}
	return nil
}

func (r *copying) print(from config.Config) error {
	total := int64(0)
	tables := make(map[string]int64)
	for _, t := range r.counts {
		total += t.Rows
		tables[t.Table] = t.Rows
	}
	took := r.s.Now().Sub(r.started).Round(100 * time.Millisecond)
	if r.s.flags.JSON {
		text, err := encode(struct {
			Rows       int64            `json:"rows"`
			Tables     map[string]int64 `json:"tables"`
			Before     bool             `json:"copied_before"`
			Seconds    float64          `json:"seconds"`
			Violations int              `json:"violations"`
		}{total, tables, r.already, took.Seconds(), r.sums[1].Violations})
		if err == nil {
			err = r.s.printJSON(text)
		}
		if err != nil {
			return err
		}
	} else if err := r.s.print(r.text(from, total, took)); err != nil {
		return err
	}
	if r.sums[1].Violations > 0 {
		return errShown
	}
	return nil
}

func (r *copying) text(from config.Config, total int64, took time.Duration) string {
	did := "copied"
	if r.already {
		did = "were copied before"
	}
	text := fmt.Sprintf("%d rows of %d tables %s, the same number on both sides, in %s; %d operations checked on both: %d violations\n",
		total, len(r.counts), did, took, r.sums[1].Operations, r.sums[1].Violations)
	if !from.Shared() {
		text += nextAfterCopy(from.Data)
	}
	return text + "never serve the source again once a server runs on the copy: both would create the same jobs\n"
}

// nextAfterCopy says what the nodes need besides the database, as it is written
// into their configuration: by whole paths, since theirs may lie anywhere.
func nextAfterCopy(data string) string {
	if whole, err := filepath.Abs(data); err == nil {
		data = whole
	}
	return fmt.Sprintf("next: give the nodes the wrapping key, secrets: base64key://${file:%s} (or what \"secrets\" says until now), and the captured files, artifacts.store: %s\n",
		plain(filepath.Join(data, "secret.key")), &url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(data, "artifacts"))})
}
