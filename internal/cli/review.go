package cli

import "net/http"

// reviewCmd are the commands about reviews.
type reviewCmd struct {
	List    reviewListCmd    `cmd:"" help:"List what a person must decide."`
	Show    reviewShowCmd    `cmd:"" help:"Show a review and what may be decided."`
	Assign  reviewAssignCmd  `cmd:"" help:"Say who is to decide a review."`
	Note    reviewNoteCmd    `cmd:"" help:"Remark something on a review before it is decided."`
	Resolve reviewResolveCmd `cmd:"" help:"Decide a review."`
}

const reviews = "/v1/reviews"

// reviewArg names a review.
type reviewArg struct {
	ID string `arg:"" help:"The review, rev_…."`
}

func (a reviewArg) path() string { return reviews + "/" + id(a.ID) }

type reviewListCmd struct {
	listing
	Reason    string `help:"For this reason, such as unconfirmed or dead_letter." placeholder:"WORD"`
	Operation string `help:"About this operation." placeholder:"ID"`
	Overdue   bool   `help:"Only those that should have been decided by now."`
	Open      bool   `help:"Only those that are not decided." default:"true" negatable:""`
}

func (c *reviewListCmd) Run(s *session) error {
	open := ""
	if c.Open {
		open = "true"
	}
	late := ""
	if c.Overdue {
		late = "true"
	}
	query := c.query("reason", c.Reason, "operation", c.Operation, "open", open, "overdue", late)
	return s.list(reviews, query, "id", "reason", "operation_id", "event_id", "owner", "opened_at", "due_at", "overdue", "decisions", "decision")
}

type reviewShowCmd struct{ reviewArg }

func (c *reviewShowCmd) Run(s *session) error { return s.show(c.path()) }

type reviewAssignCmd struct {
	reviewArg
	Owner string `arg:"" help:"Who; an empty text for nobody."`
}

// Help teaches by example.
func (reviewAssignCmd) Help() string { return examples(`pawl review assign rev_01… bea`) }

func (c *reviewAssignCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/assign", struct {
		Owner string `json:"owner"`
	}{c.Owner})
}

type reviewNoteCmd struct {
	reviewArg
	Note string `arg:"" help:"What was found out; it is kept with the review."`
}

// Help teaches by example.
func (reviewNoteCmd) Help() string {
	return examples(`pawl review note rev_01… "the provider's list has no such task"`)
}

func (c *reviewNoteCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/notes", struct {
		Note string `json:"note"`
	}{c.Note})
}

type reviewResolveCmd struct {
	reviewArg
	Decision string `arg:"" help:"What to do; \"pawl review show\" lists what is possible."`
	Task     string `help:"With the decision created: the provider's task id." placeholder:"ID"`
	To       string `help:"With the decision attach: the operation that the task belongs to." placeholder:"ID"`
	Note     string `help:"Why; it is kept." placeholder:"TEXT"`
}

// Help teaches by example.
func (reviewResolveCmd) Help() string {
	return examples(`pawl review resolve rev_01… retry --note "receiver is up again"`,
		`pawl review resolve rev_01… attach --to op_01…`)
}

func (c *reviewResolveCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/resolve", struct {
		Decision  string `json:"decision"`
		Task      string `json:"task_id,omitempty"`
		Operation string `json:"operation_id,omitempty"`
		Note      string `json:"note,omitempty"`
	}{c.Decision, c.Task, c.To, c.Note})
}
