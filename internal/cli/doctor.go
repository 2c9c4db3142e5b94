package cli

import (
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/internal/doctor"
)

type doctorCmd struct {
	Config      string `help:"Configuration file of the node; without one, the defaults." placeholder:"FILE"`
	Data        string `help:"Folder of the ledger and the keys; ${data} unless the configuration says otherwise." placeholder:"DIR"`
	Database    string `help:"Where the ledger is, if not where the configuration says." placeholder:"URL"`
	Listen      string `help:"Address of the API, if not that of the configuration." placeholder:"ADDR"`
	AdminListen string `help:"Address of metrics and health, likewise." placeholder:"ADDR"`
	Online      bool   `help:"Ask upstreams for their lists, with their keys: harmless reads, where descriptions know one."`
}

// Help teaches by example.
func (doctorCmd) Help() string {
	return `Run it where the node runs, as the user that it runs as, with the same flags and environment, while it runs or before it does. Each line says ok, warning or fault, what was seen, and what to do. It looks at the configuration, the disk and its folder, the files with keys, the database (it opens, its schema, its log or open transactions), the clock beside the database's, the ports (free, or held by a Pawl), the names of upstreams and sources in DNS, the keys of upstreams, the public address that callbacks are sent to, and the admin key.

Nothing is changed. Nobody outside is asked but DNS, the database, and the public address; upstreams only with --online. Exit status 1 if there is a fault, 0 otherwise.

` + examples(`pawl doctor`, `pawl doctor --config pawl.yaml --online`, `pawl doctor --config pawl.yaml --json`)
}

func (c *doctorCmd) Run(s *session) error {
	cfg, err := (&serveCmd{Config: c.Config, Data: c.Data, Database: c.Database, Listen: c.Listen, AdminListen: c.AdminListen}).config(s)
	var found []doctor.Finding
	if err != nil {
		found = doctor.Problems(err)
	} else {
		found = doctor.Run(s.ctx, cfg, doctor.Options{Online: c.Online, AdminKey: firstOf(s.flags.Key, s.getenv("PAWL_ADMIN_KEY"), s.getenv("PAWL_KEY"))})
	}
	faults := 0
	var b strings.Builder
	for _, f := range found {
		if f.Level == doctor.Fault {
			faults++
		}
		fmt.Fprintf(&b, "%-8s %-10s %s\n", f.Level, f.Check, plain(f.Seen))
		if f.Do != "" {
			fmt.Fprintf(&b, "%19s → %s\n", "", plain(f.Do))
		}
	}
	if s.flags.JSON {
		text, err := encode(struct {
			Faults   int              `json:"faults"`
			Findings []doctor.Finding `json:"findings"`
		}{faults, found})
		if err != nil {
			return err
		}
		if err := s.printJSON(text); err != nil {
			return err
		}
	} else if err := s.print(b.String()); err != nil {
		return err
	}
	if faults > 0 {
		return errShown
	}
	return nil
}
