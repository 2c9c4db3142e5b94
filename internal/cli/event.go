package cli

// eventCmd are the commands about events.
type eventCmd struct {
	List eventListCmd `cmd:"" help:"Find events, or read an endpoint's stream by sequence."`
	Show eventShowCmd `cmd:"" help:"Show an event."`
}

const events = "/v1/events"

type eventListCmd struct {
	listing
	Direction string `help:"inbound or outbound." placeholder:"WORD"`
	Source    string `help:"Received from this source." placeholder:"NAME"`
	Verdict   string `help:"With this verdict, such as orphan or rejected." placeholder:"WORD"`
	Task      string `help:"About this task of the provider." placeholder:"ID"`
	Type      string `help:"Of this type." placeholder:"TYPE"`
	Operation string `help:"Of this operation." placeholder:"ID"`
	Endpoint  string `help:"The stream of this endpoint." placeholder:"ID"`
	After     string `help:"With --endpoint: after this sequence number." placeholder:"N"`
}

// Help teaches by example.
func (eventListCmd) Help() string {
	return examples(`pawl event list --direction inbound --verdict orphan`, `pawl event list --endpoint ep_01… --after 0 --json`)
}

func (c *eventListCmd) Run(s *session) error {
	if c.After != "" && c.Endpoint == "" {
		return usage("--after is a sequence number of one endpoint's stream: add --endpoint")
	}
	q := c.query("direction", c.Direction, "source", c.Source, "verdict", c.Verdict, "task_id", c.Task, "type", c.Type,
		"operation", c.Operation, "endpoint", c.Endpoint, "after", c.After)
	if c.Endpoint != "" && c.After != "" {
		return s.list(events, q, "sequence", "id", "type", "timestamp", "data.id")
	}
	return s.list(events, q, "id", "direction", "type", "source", "verdict", "task_id", "operation_id", "at")
}

type eventShowCmd struct {
	ID string `arg:"" help:"The event, evt_…."`
}

func (c *eventShowCmd) Run(s *session) error { return s.show(events + "/" + id(c.ID)) }
