package cli

import (
	"fmt"

	"github.com/pawlhq/pawl/internal/audit"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/vault"
)

// ledgerCmd are the commands about a ledger on disk.
type ledgerCmd struct {
	Check ledgerCheckCmd `cmd:"" help:"Prove that the ledger keeps its rules: states, versions, events, money."`
}

type ledgerCheckCmd struct {
	where
	Config string `help:"Configuration file of a node, for the key that the audit is sealed with; without it, secret.key of the data folder." placeholder:"FILE"`
}

// Help teaches by example.
func (ledgerCheckCmd) Help() string {
	return `Everything is read and nothing is changed. Each broken rule is one line; the exit status is 1 if there is any.

The lines of the audit are held against their seals. Without the key of the node it is found whether lines were removed or added by hand, but not whether they were changed.

` + examples(`pawl ledger check`, `pawl ledger check --data /var/lib/pawl --json`, `pawl ledger check --database postgres://pawl@db/pawl`)
}

func (c *ledgerCheckCmd) Run(s *session) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	r, err := server.OpenReadOnly(s.ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	report := &checkReport{s: s}
	sum, err := store.Check(s.ctx, r, report.violation, report.progress)
	report.clear()
	if err != nil {
		return fmt.Errorf("the check did not end: %w", err)
	}
	seals, err := report.audit(c, cfg, r, &sum)
	if err != nil {
		return fmt.Errorf("the check of the audit did not end: %w", err)
	}
	if err := report.close(sum, seals); err != nil {
		return err
	}
	if sum.Violations > 0 {
		return errShown
	}
	return nil
}

// checkReport prints what the check finds as it finds it.
type checkReport struct {
	s     *session
	found []ledger.Violation
	shown bool
}

// violation prints one line; with --json all are kept for one document.
func (r *checkReport) violation(v ledger.Violation) error {
	if r.s.flags.JSON {
		r.found = append(r.found, v)
		return nil
	}
	r.clear()
	return r.s.print(fmt.Sprintf("%s: %s: %s\n", plain(v.Row), plain(v.Rule), plain(v.Detail)))
}

func (r *checkReport) progress(n int) {
	if r.s.watched() {
		fmt.Fprintf(r.s.Stderr, "\r\x1b[K%d operations checked", n)
		r.shown = true
	}
}

func (r *checkReport) clear() {
	if r.shown {
		fmt.Fprint(r.s.Stderr, "\r\x1b[K")
		r.shown = false
	}
}

// sealsChecked says how many seals of the audit there are, and whether they were
// checked with their key.
type sealsChecked struct {
	Seals int  `json:"seals"`
	Key   bool `json:"key"`
}

// audit holds the audit against its seals.
func (r *checkReport) audit(c *ledgerCheckCmd, cfg config.Config, from store.Reader, sum *store.Summary) (done sealsChecked, err error) {
	if c.Config != "" {
		own, err := config.Load(c.Config, r.s.LookupEnv)
		if err != nil {
			return done, err
		}
		cfg.Secrets, cfg.FormerSecrets = own.Secrets, own.FormerSecrets
	}
	root, err := vault.Root(r.s.ctx, from, server.WrappingKeys(cfg))
	if err != nil {
		return done, err
	}
	var key audit.Key
	if done.Key = root != nil; done.Key {
		if key, err = audit.KeyOf(root); err != nil {
			return done, err
		}
	}
	done.Seals, err = audit.Check(r.s.ctx, from, key, func(v ledger.Violation) error {
		sum.Violations++
		return r.violation(v)
	})
	return done, err
}

func (r *checkReport) close(sum store.Summary, seals sealsChecked) error {
	if !r.s.flags.JSON {
		if seals.Seals > 0 && !seals.Key {
			r.s.say("the %d seals of the audit were checked without their key: changed lines are not found; give the configuration of a node with --config", seals.Seals)
		}
		return r.s.print(fmt.Sprintf("%d operations, %d accounts, %d endpoints checked: %d violations\n",
			sum.Operations, sum.Accounts, sum.Endpoints, sum.Violations))
	}
	type row struct {
		Row    string `json:"row"`
		Rule   string `json:"rule"`
		Detail string `json:"detail"`
	}
	out := struct {
		Operations int          `json:"operations"`
		Accounts   int          `json:"accounts"`
		Endpoints  int          `json:"endpoints"`
		Violations []row        `json:"violations"`
		Audit      sealsChecked `json:"audit"`
	}{sum.Operations, sum.Accounts, sum.Endpoints, []row{}, seals}
	for _, v := range r.found {
		out.Violations = append(out.Violations, row{v.Row, v.Rule, v.Detail})
	}
	text, err := encode(out)
	if err != nil {
		return err
	}
	return r.s.printJSON(text)
}
