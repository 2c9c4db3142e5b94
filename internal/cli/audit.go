package cli

// auditCmd are the commands about the audit.
type auditCmd struct {
	List auditListCmd `cmd:"" help:"List what was done by whom."`
}

type auditListCmd struct {
	listing
	Actor   string `help:"Done with this API key." placeholder:"ID"`
	Action  string `help:"Of this kind, such as endpoint.create." placeholder:"WORD"`
	Subject string `help:"Done to this." placeholder:"ID"`
	Since   string `help:"Done since then: a time (RFC 3339), or so long ago, such as 2h." placeholder:"TIME"`
	Until   string `help:"Done before then." placeholder:"TIME"`
}

// Help teaches by example.
func (auditListCmd) Help() string {
	return examples(`pawl audit list --since 24h`, `pawl audit list --subject ep_01…`, `pawl audit list --actor key_01… --action event.body --csv`)
}

func (c *auditListCmd) Run(s *session) error {
	from, err := moment("--since", c.Since, s.Now())
	if err != nil {
		return err
	}
	until, err := moment("--until", c.Until, s.Now())
	if err != nil {
		return err
	}
	q := c.query("actor", c.Actor, "action", c.Action, "subject", c.Subject, "from", from, "until", until)
	return s.list("/v1/audit", q, "at", "actor", "action", "subject", "detail", "tenant")
}
