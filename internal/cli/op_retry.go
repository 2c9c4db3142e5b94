package cli

import (
	"net/http"
	"time"
)

type opRetryCmd struct {
	once
	ID           string        `arg:"" help:"The operation that failed, expired or was canceled, op_…."`
	ExpectedCost string        `help:"What to reserve, such as 0.12:USD; the present price if not given." placeholder:"AMOUNT:CUR"`
	Deadline     string        `help:"How long it may take, such as 2h, or until when (RFC 3339)." placeholder:"TIME"`
	Account      string        `help:"The account that pays, acct_…; the former one if not given." placeholder:"ID"`
	Wait         bool          `help:"Wait for the outcome, as \"pawl op wait\" does."`
	Timeout      time.Duration `default:"10m" help:"How long --wait waits."`
}

// Help teaches by example.
func (opRetryCmd) Help() string {
	return `A new operation is made with the same upstream, model, input, callback address and metadata; it names the former one. The price and the deadline are those of today. As with "pawl op submit", the same command is not done twice before its answer was printed.

` + examples(`pawl op retry op_01…`, `pawl op retry op_01… --deadline 2h --wait`)
}

func (c *opRetryCmd) Run(s *session) error {
	body := struct {
		Deadline     string `json:"deadline,omitempty"`
		ExpectedCost *cost  `json:"expected_cost,omitempty"`
		Account      string `json:"account,omitempty"`
	}{Account: c.Account}
	var err error
	if body.Deadline, err = parseMoment("--deadline", c.Deadline, s.Now()); err != nil {
		return err
	}
	if c.ExpectedCost != "" {
		if body.ExpectedCost, err = parseCost("--expected-cost", c.ExpectedCost); err != nil {
			return err
		}
	}
	text, err := encode(body)
	if err != nil {
		return err
	}
	body.Deadline = c.Deadline // As it was typed: "2h" is the same command a minute later.
	call := onceCall{method: http.MethodPost, path: operations + "/" + id(c.ID) + "/retry", body: text, arguments: body}
	return s.sendOnce(c.once, call, func(client *client, a *answer) error {
		if !c.Wait {
			return s.answer(a)
		}
		return s.follow(client, a, c.Timeout)
	})
}
