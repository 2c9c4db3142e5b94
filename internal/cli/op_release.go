package cli

import "net/http"

type opReleaseCmd struct {
	ID   string `arg:"" help:"The operation, op_…."`
	Note string `help:"Why; it is kept in the audit and the timeline." placeholder:"TEXT"`
}

// Help teaches by example.
func (opReleaseCmd) Help() string {
	return `The result, its files and the event that they are ready are withheld from everybody until then.

` + examples(`pawl op release op_01… --note "rights checked"`)
}

func (c *opReleaseCmd) Run(s *session) error {
	return s.send(http.MethodPost, operations+"/"+id(c.ID)+"/release", struct {
		Note string `json:"note,omitempty"`
	}{c.Note})
}
