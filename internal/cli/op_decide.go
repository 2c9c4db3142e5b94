package cli

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
)

type opCancelCmd struct {
	ID      string        `arg:"" help:"The operation, op_…."`
	Wait    bool          `help:"Wait for the end; the exit status is 0 if the operation was canceled, and 1 for every other end."`
	Timeout time.Duration `default:"10m" help:"How long --wait waits."`
}

// Help teaches by example.
func (opCancelCmd) Help() string {
	return `What was never created at the provider is canceled at once. All else is canceled there, and the provider says what became of it: an operation that succeeded first has succeeded. A provider that cannot cancel is a refusal.

` + examples(`pawl op cancel op_01…`, `pawl op cancel op_01… --wait --timeout 2m`)
}

func (c *opCancelCmd) Run(s *session) error {
	path := operations + "/" + id(c.ID) + "/cancel"
	if !c.Wait {
		return s.send(http.MethodPost, path, nil)
	}
	client, err := s.connect()
	if err != nil {
		return err
	}
	a, err := client.call(s.ctx, http.MethodPost, path, nil, nil)
	if err != nil {
		return err
	}
	return s.followTo(pawl.Canceled, client, a, c.Timeout)
}

type opResolveCmd struct {
	ID       string `arg:"" help:"The operation, op_…."`
	Decision string `arg:"" enum:"created,not_created,failed,succeeded,canceled,expired" help:"For an unconfirmed operation: created (it exists, --task names it), not_created (it does not: submit it once more), failed (give up and release the money). For a finished one, with --from and --note: the state that is the right one."`
	Task     string `help:"The provider's task id." placeholder:"ID"`
	From     string `enum:",succeeded,failed,canceled,expired" default:"" help:"The state that a correction leaves." placeholder:"STATE"`
	Charge   string `help:"What a corrected operation costs, such as 0.12:USD." placeholder:"AMOUNT:CUR"`
	Note     string `help:"Why; it is kept in the timeline, and told with a correction." placeholder:"TEXT"`
}

// Help teaches by example.
func (opResolveCmd) Help() string {
	return examples(`pawl op resolve op_01… created --task job_77 --note "seen in the provider's dashboard"`,
		`pawl op resolve op_01… not_created`,
		`pawl op resolve op_01… failed --from succeeded --note "the file is broken; the provider agrees"`)
}

func (c *opResolveCmd) Run(s *session) error {
	switch created := c.Decision == pawl.DecideCreated; {
	case created && c.Task == "":
		return usage("created needs --task ID: the provider's id of the task")
	case !created && c.Task != "":
		return usage("--task belongs to the decision created, and to no other")
	}
	if c.From != "" && c.Note == "" {
		return usage("a correction needs --note: it says why")
	}
	if c.Charge != "" && c.From == "" {
		return usage("--charge goes with a correction, which needs --from and --note")
	}
	var charge *cost
	if c.Charge != "" {
		var err error
		if charge, err = parseCost("--charge", c.Charge); err != nil {
			return err
		}
	}
	return s.send(http.MethodPost, operations+"/"+id(c.ID)+"/resolve", struct {
		Decision string `json:"decision"`
		Task     string `json:"task_id,omitempty"`
		From     string `json:"from,omitempty"`
		Charge   *cost  `json:"charge,omitempty"`
		Note     string `json:"note,omitempty"`
	}{c.Decision, c.Task, c.From, charge, c.Note})
}
