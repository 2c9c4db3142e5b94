package cli

import (
	"fmt"
	"net/http"
	"time"
)

// eraseCmd are the commands that erase content.
type eraseCmd struct {
	Operation eraseOperationCmd `cmd:"" help:"Erase what an operation holds, once it has ended."`
	Tenant    eraseTenantCmd    `cmd:"" help:"Erase what all operations and events of a tenant hold."`
	Show      eraseShowCmd      `cmd:"" help:"Show how far an erasure is."`
}

const erasures = "/v1/erasures"

// erasing are the flags of both.
type erasing struct {
	Reason string `required:"" help:"Why; it is kept in the audit. Name the request, not the person." placeholder:"TEXT"`
	DryRun bool   `help:"Count what would be erased, and change nothing."`
	Yes    bool   `help:"Erase: there is no way back. Without it the command only counts."`
	Wait   bool   `help:"Wait until nothing is left that can be erased now." default:"true" negatable:""`
}

type erasure struct {
	Operation  string `json:"operation_id"`
	Tenant     string `json:"tenant"`
	State      string `json:"state"`
	Operations int    `json:"operations"`
	Events     int    `json:"events"`
	HeldBack   int    `json:"held_back"`
	More       bool   `json:"more"`
}

type eraseOperationCmd struct {
	erasing
	ID string `arg:"" help:"The operation, op_…."`
}

// Help teaches by example.
func (eraseOperationCmd) Help() string {
	return `Input, metadata, result, files, callbacks, what was sent and free text go; ids, states, versions, money and keys stay. It may be run again at any time, and goes on by itself after a crash.

` + examples(`pawl erase operation op_01… --reason "request 4711"`, `pawl erase operation op_01… --reason "request 4711" --yes`)
}

func (c *eraseOperationCmd) Run(s *session) error {
	return c.erase(s, map[string]any{"operation_id": c.ID}, c.ID)
}

type eraseTenantCmd struct {
	erasing
	Name string `arg:"" help:"The tenant."`
}

// Help teaches by example.
func (eraseTenantCmd) Help() string {
	return `Everything that was made until now is erased, as by "pawl erase operation". What is unfinished or in review is held back and erased as soon as it is over. Revoke the tenant's keys and delete its endpoints first if nothing more is to come.

` + examples(`pawl erase tenant acme --reason "contract ended"`, `pawl erase tenant acme --reason "contract ended" --yes`)
}

func (c *eraseTenantCmd) Run(s *session) error {
	return c.erase(s, map[string]any{"tenant": c.Name}, c.Name)
}

type eraseShowCmd struct {
	Subject string `arg:"" help:"The operation, op_…, or the tenant."`
}

func (c *eraseShowCmd) Run(s *session) error { return s.show(erasures + "/" + id(c.Subject)) }

func (e erasing) erase(s *session, body map[string]any, subject string) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	dry := e.DryRun || !e.Yes
	body["reason"], body["dry_run"] = e.Reason, dry
	text, err := encode(body)
	if err != nil {
		return err
	}
	a, err := client.call(s.ctx, http.MethodPost, erasures, nil, text)
	if err != nil {
		return err
	}
	if dry && !e.DryRun {
		s.say("nothing was erased: repeat it with --yes to do so; there is no way back")
	}
	if dry || !e.Wait {
		return s.answer(a)
	}
	return s.awaitErasure(client, a, subject)
}

// awaitErasure shows what is left until nothing can be done any more.
func (s *session) awaitErasure(client *client, a *answer, subject string) error {
	clear := func() {}
	defer func() { clear() }()
	for {
		var got erasure
		if err := decode(a.body, &got); err != nil {
			return err
		}
		left := got.Operations + got.Events
		if got.State != "erasing" || left == 0 && got.HeldBack > 0 {
			clear()
			clear = func() {}
			return s.answer(a)
		}
		if s.watched() {
			fmt.Fprintf(s.Stderr, "\r\x1b[Kerasing: %d left, %d held back", left, got.HeldBack)
			clear = func() { fmt.Fprint(s.Stderr, "\r\x1b[K") }
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(time.Second):
		}
		var err error
		if a, err = client.call(s.ctx, http.MethodGet, erasures+"/"+id(subject), nil, nil); err != nil {
			return err
		}
	}
}
