package cli

import (
	"fmt"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/store"
)

// ledgerCmd are the commands about a ledger on disk.
type ledgerCmd struct {
	Check ledgerCheckCmd `cmd:"" help:"Prove that the ledger keeps its rules: states, versions, events, money."`
}

type ledgerCheckCmd struct{ where }

// Help teaches by example.
func (ledgerCheckCmd) Help() string {
	return `Everything is read and nothing is changed. Each broken rule is one line; the exit status is 1 if there is any.

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
	if err := report.close(sum); err != nil {
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

func (r *checkReport) close(sum store.Summary) error {
	if !r.s.flags.JSON {
		return r.s.print(fmt.Sprintf("%d operations, %d accounts, %d endpoints checked: %d violations\n",
			sum.Operations, sum.Accounts, sum.Endpoints, sum.Violations))
	}
	type row struct {
		Row    string `json:"row"`
		Rule   string `json:"rule"`
		Detail string `json:"detail"`
	}
	out := struct {
		Operations int   `json:"operations"`
		Accounts   int   `json:"accounts"`
		Endpoints  int   `json:"endpoints"`
		Violations []row `json:"violations"`
	}{sum.Operations, sum.Accounts, sum.Endpoints, []row{}}
	for _, v := range r.found {
		out.Violations = append(out.Violations, row{v.Row, v.Rule, v.Detail})
	}
	text, err := encode(out)
	if err != nil {
		return err
	}
	return r.s.printJSON(text)
}
