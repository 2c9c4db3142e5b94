package cli

import (
	"fmt"
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
)

type opWaitCmd struct {
	ID      string        `arg:"" help:"The operation, op_…."`
	Timeout time.Duration `default:"10m" help:"How long to wait."`
}

// Help teaches by example.
func (opWaitCmd) Help() string {
	return `The server is asked after half a second, then ever more rarely, up to every 15 seconds. The exit status is 0 if the operation succeeded, and 1 for every other end and if the time is over; the operation itself goes on.

` + examples(`pawl op wait op_01… --timeout 2h`, `pawl op wait op_01… --json | jq .result`)
}

func (c *opWaitCmd) Run(s *session) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	a, err := client.call(s.ctx, http.MethodGet, operations+"/"+id(c.ID), nil, nil)
	if err != nil {
		return err
	}
	return s.follow(client, a, c.Timeout)
}

// progress is what waiting looks at.
type progress struct {
	ID       string     `json:"id"`
	State    pawl.State `json:"state"`
	Upstream string     `json:"upstream"`
	Word     string     `json:"upstream_state"`
	Progress *float64   `json:"progress"`
}

// stillGoing says that an operation has not ended in the time that was given to
// it. It was submitted all the same.
type stillGoing string

// Error is the text.
func (s stillGoing) Error() string { return string(s) }

// follow asks for an operation until it is finished, and prints it; only a
// success is good news. It starts from an answer that holds the operation.
func (s *session) follow(c *client, a *answer, limit time.Duration) error {
	return s.followTo(pawl.Succeeded, c, a, limit)
}

// followTo is follow where another end is the good one.
func (s *session) followTo(good pawl.State, c *client, a *answer, limit time.Duration) error {
	end := time.Now().Add(limit)
	wait := newBackoff(500*time.Millisecond, 15*time.Second)
	line := &statusLine{s: s}
	defer line.clear()
	for {
		var p progress
		if err := decode(a.body, &p); err != nil {
			return err
		}
		line.clear()
		if p.State.Terminal() {
			return s.outcome(a, p.State == good)
		}
		if !time.Now().Before(end) {
			return stillGoing(fmt.Sprintf("%s is still %s after %s; it goes on without us: \"pawl op wait %s\" waits on", plain(p.ID), p.State, limit, plain(p.ID)))
		}
		line.show(p)
		var err error
		if a, err = s.ask(c, p.ID, end, wait); err != nil {
			return err
		}
	}
}

// ask waits for its turn and reads the operation; a server that is away for a
// while is asked again, as long as there is time.
func (s *session) ask(c *client, op string, end time.Time, wait *backoff) (*answer, error) {
	for {
		if err := pause(s.ctx, min(wait.next(0), max(time.Until(end), 0))); err != nil {
			return nil, err
		}
		a, err := c.call(s.ctx, http.MethodGet, operations+"/"+id(op), nil, nil)
		if err == nil || final(err) || s.ctx.Err() != nil || !time.Now().Before(end) {
			return a, err
		}
	}
}

// outcome prints the finished operation; the exit status says whether its end
// is the good one.
func (s *session) outcome(a *answer, good bool) error {
	if err := s.answer(a); err != nil {
		return err
	}
	if !good {
		return errShown
	}
	return nil
}

// statusLine is one line on a terminal that is written over.
type statusLine struct {
	s     *session
	shown bool
}

func (l *statusLine) show(p progress) {
	if !l.s.watched() {
		return
	}
	text := plain(p.ID) + " " + p.State.String()
	if p.Word != "" {
		text += fmt.Sprintf(" (%s: %s)", plain(p.Upstream), plain(p.Word))
	}
	if p.Progress != nil {
		text += fmt.Sprintf(" %.0f %%", *p.Progress*100)
	}
	fmt.Fprintf(l.s.Stderr, "\r\x1b[K%s", text)
	l.shown = true
}

func (l *statusLine) clear() {
	if l.shown {
		fmt.Fprint(l.s.Stderr, "\r\x1b[K")
		l.shown = false
	}
}
