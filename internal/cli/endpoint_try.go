package cli

import (
	"net/http"
	"time"
)

type endpointTestCmd struct {
	endpointArg
	Type    string        `help:"The event's type; the first that the endpoint asks for if not given." placeholder:"TYPE"`
	Data    string        `help:"A JSON value in place of the type's example: itself, @FILE, or - for standard input." placeholder:"JSON"`
	Timeout time.Duration `default:"20s" help:"How long to wait for the answer to the first attempt."`
}

// Help teaches by example.
func (endpointTestCmd) Help() string {
	return `An event that says "test":true goes to this endpoint alone, whatever types it asks for. The exit status is 0 once it was answered 2xx, or lies in the feed, and 1 if the first attempt failed; it is tried again like every other.

` + examples(`pawl endpoint test ep_01…`, `pawl endpoint test ep_01… --type operation.failed`)
}

func (c *endpointTestCmd) Run(s *session) error {
	body, err := s.testBody(c.Type, c.Data)
	if err != nil {
		return err
	}
	client, err := s.connect()
	if err != nil {
		return err
	}
	a, err := client.call(s.ctx, http.MethodPost, c.path()+"/test", nil, body)
	wait := newBackoff(50*time.Millisecond, time.Second)
	for end := time.Now().Add(c.Timeout); err == nil; {
		var d struct {
			ID, State string
			Attempts  int
		}
		if err := decode(a.body, &d); err != nil {
			return err
		}
		tried := d.Attempts > 0 && d.State != "delivering"
		if done := d.State == "delivered"; done || tried || d.State == "dead" || d.State == "skipped" || time.Now().After(end) {
			return s.outcome(a, done)
		}
		if err := pause(s.ctx, wait.next(0)); err != nil {
			return err
		}
		a, err = client.call(s.ctx, http.MethodGet, "/v1/deliveries/"+id(d.ID), nil, nil)
	}
	return err
}
