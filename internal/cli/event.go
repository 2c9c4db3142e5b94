package cli

// eventCmd are the commands about events.
type eventCmd struct {
	List eventListCmd `cmd:"" help:"Find events."`
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
}

// Help teaches by example.
func (eventListCmd) Help() string {
	return examples(`pawl event list --direction inbound --verdict orphan`, `pawl event list --operation op_01…`)
}

func (c *eventListCmd) Run(s *session) error {
	q := c.query("direction", c.Direction, "source", c.Source, "verdict", c.Verdict, "task_id", c.Task, "type", c.Type, "operation", c.Operation)
	return s.list(events, q, "id", "at", "direction", "type", "source", "verdict", "reason", "task_id", "operation_id")
}

type eventShowCmd struct {
	ID string `arg:"" help:"The event, evt_…."`
}

func (c *eventShowCmd) Run(s *session) error { return s.show(events + "/" + id(c.ID)) }
