package cli

// sourceCmd are the commands about sources.
type sourceCmd struct {
	List sourceListCmd `cmd:"" help:"List the sources of inbound events."`
	Show sourceShowCmd `cmd:"" help:"Show a source: what came from it, and a sample of what was refused."`
}

const sources = "/v1/sources"

type sourceListCmd struct{ listing }

// Help teaches what is shown.
func (sourceListCmd) Help() string {
	return "Every upstream is a source; those of kind source are generic. Parked events wait for their task to be known; refused requests could not be verified, counted since the node's start.\n\n" +
		examples(`pawl source list`, `pawl source show studio`)
}

func (c *sourceListCmd) Run(s *session) error {
	return s.list(sources, c.query(), "name", "kind", "scheme", "trust", "orphans", "types", "handshake", "last_event_at", "parked", "unknown_types", "counts.verdicts.refused", "owner")
}

type sourceShowCmd struct {
	Name string `arg:"" help:"The source's name in the configuration."`
}

func (c *sourceShowCmd) Run(s *session) error { return s.show(sources + "/" + id(c.Name)) }
