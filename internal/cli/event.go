package cli

import "time"

// eventCmd are the commands about events.
type eventCmd struct {
	List      eventListCmd      `cmd:"" help:"Find events."`
	Show      eventShowCmd      `cmd:"" help:"Show an event."`
	Publish   eventPublishCmd   `cmd:"" help:"Publish an event of your own to the endpoints."`
	Types     eventTypesCmd     `cmd:"" help:"List the types of events that endpoints can get, with examples."`
	Reprocess eventReprocessCmd `cmd:"" help:"Judge stored inbound events anew."`
}

const events = "/v1/events"

type eventListCmd struct {
	listing
	Direction string `help:"inbound or outbound." placeholder:"WORD"`
	Source    string `help:"Received from this source." placeholder:"NAME"`
	State     string `help:"Of a generic source, and come so far: received, waiting, done or review." placeholder:"STATE"`
	Verdict   string `help:"With this verdict, such as orphan or rejected." placeholder:"WORD"`
	Task      string `help:"About this task of the provider." placeholder:"ID"`
	External  string `name:"external-id" help:"With the id that its sender gave it." placeholder:"ID"`
	Type      string `help:"Of this type." placeholder:"TYPE"`
	Operation string `help:"Of this operation." placeholder:"ID"`
	Since     string `help:"Received or made since then: a time (RFC 3339), or so long ago, such as 2h." placeholder:"TIME"`
	Until     string `help:"Received or made before then." placeholder:"TIME"`
	Follow    bool   `help:"Go on printing events as they come, one a line, until it is interrupted."`

	Every time.Duration `help:"With --follow: how often to ask." default:"1s"`
}

// Help teaches by example.
func (eventListCmd) Help() string {
	return examples(`pawl event list --direction inbound --verdict orphan`, `pawl event list --operation op_01…`,
		`pawl event list --source payments --state review`, `pawl event list --follow --json | jq .type`)
}

func (c *eventListCmd) Run(s *session) error {
	from, err := moment("--since", c.Since, s.Now())
	if err != nil {
		return err
	}
	until, err := moment("--until", c.Until, s.Now())
	if err != nil {
		return err
	}
	q := c.query("from", from, "until", until, "direction", c.Direction, "source", c.Source, "verdict", c.Verdict, "state", c.State, "task_id", c.Task, "external_id", c.External, "type", c.Type, "operation", c.Operation)
	if c.Follow {
		if s.csv || c.PageToken != "" || c.Until != "" {
			return usage("--follow goes on from now: --csv, --page-token and --until do not go with it")
		}
		return s.followEvents(q, c.Every, "id", "at", "direction", "type", "source", "verdict", "reason", "task_id", "operation_id")
	}
	return s.list(events, q, "id", "at", "direction", "type", "source", "verdict", "reason", "reprocessed.verdict", "state", "next_try_at", "owner", "task_id", "operation_id")
}

type eventShowCmd struct {
	ID string `arg:"" help:"The event, evt_…."`
}

func (c *eventShowCmd) Run(s *session) error { return s.show(events + "/" + id(c.ID)) }
