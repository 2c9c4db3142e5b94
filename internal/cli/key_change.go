package cli

import (
	"net/http"
)

// keyLimits are what an API key is limited to, on the wire.
type keyLimits struct {
	Rate      *keyRate `json:"rate,omitempty"`
	Budget    *cost    `json:"budget,omitempty"`
	Upstreams []string `json:"upstreams,omitempty"`
}

type keyRate struct {
	PerSecond float64 `json:"per_second"`
	Burst     int     `json:"burst,omitempty"`
}

// keyLimitFlags are limits as they are typed; what is not given is not limited,
// or stays.
type keyLimitFlags struct {
	Rate     float64  `help:"At most so many calls a second." placeholder:"N"`
	Burst    int      `help:"At most so many calls at once; with --rate." placeholder:"N"`
	Budget   string   `help:"What its operations may hold and cost in all, such as 50:USD." placeholder:"AMOUNT:CUR"`
	Upstream []string `help:"The only upstreams that it may submit to." placeholder:"NAME"`
}

func (f keyLimitFlags) given() bool {
	return f.Rate != 0 || f.Burst != 0 || f.Budget != "" || len(f.Upstream) > 0
}

func (f keyLimitFlags) change(l *keyLimits) (err error) {
	if f.Burst != 0 && f.Rate == 0 {
		return usage("--burst goes with --rate")
	}
	if f.Rate != 0 {
		l.Rate = &keyRate{f.Rate, f.Burst}
	}
	if f.Budget != "" {
		l.Budget, err = parseCost("--budget", f.Budget)
	}
	if len(f.Upstream) > 0 {
		l.Upstreams = f.Upstream
	}
	return err
}

// keyArg names an API key.
type keyArg struct {
	ID string `arg:"" help:"The key, key_…."`
}

func (a keyArg) path() string { return keys + "/" + id(a.ID) }

type keyGetCmd struct{ keyArg }

func (c *keyGetCmd) Run(s *session) error { return s.show(c.path()) }

type keyUpdateCmd struct {
	keyArg
	keyLimitFlags
	NoLimits bool    `help:"Take all limits away that are not given here."`
	Name     *string `help:"What it is for." placeholder:"TEXT"`
	Expires  string  `help:"When it ends: after a while such as 720h, at a time (RFC 3339), or never." placeholder:"TIME"`
}

// Help teaches by example.
func (keyUpdateCmd) Help() string {
	return `Limits that are not given stay as they are.

` + examples(`pawl key update key_01… --budget 100:USD`, `pawl key update key_01… --no-limits --expires never`)
}

func (c *keyUpdateCmd) Run(s *session) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	now, err := client.call(s.ctx, http.MethodGet, c.path(), nil, nil)
	if err != nil {
		return err
	}
	body, err := c.body(s, now)
	if err != nil {
		return err
	}
	text, err := encode(body)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return usage("nothing to change: give at least one of --name, --expires, --rate, --budget, --upstream, --no-limits")
	}
	changed, err := client.call(s.ctx, http.MethodPatch, c.path(), nil, text, "If-Match", now.header.Get("ETag"))
	if err != nil {
		return err
	}
	return s.answer(changed)
}

// body is the change of a key that was read just now.
func (c *keyUpdateCmd) body(s *session, now *answer) (map[string]any, error) {
	body := make(map[string]any)
	if c.Name != nil {
		body["name"] = *c.Name
	}
	switch {
	case c.Expires == "never":
		body["expires_at"] = nil
	case c.Expires != "":
		at, err := parseMoment("--expires", c.Expires, s.Now())
		if err != nil {
			return nil, err
		}
		body["expires_at"] = at
	}
	if !c.NoLimits && !c.given() {
		return body, nil
	}
	var present struct {
		Limits keyLimits `json:"limits"`
	}
	if !c.NoLimits {
		if err := decode(now.body, &present); err != nil {
			return nil, err
		}
	}
	err := c.change(&present.Limits)
	body["limits"] = present.Limits
	return body, err
}

// keyOverlap says how long a former secret goes on.
type keyOverlap struct {
	Overlap string `json:"overlap,omitempty" help:"How long the former secret goes on, such as 24h, at most 720h; 0s ends it now. 24h if not given." placeholder:"DURATION"`
	Until   string `json:"until,omitempty" help:"When the former secret ends, in place of --overlap." placeholder:"TIME"`
}

type keyRotateCmd struct {
	keyArg
	keyOverlap
}

// Help teaches by example.
func (keyRotateCmd) Help() string {
	return `The key keeps its id, its limits and what it has submitted.

` + examples(`pawl key rotate key_01…`, `pawl key rotate key_01… --overlap 0s`, `pawl key rotate key_01… --until 2030-01-02T15:04:05Z`)
}

func (c *keyRotateCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/rotate", c.keyOverlap)
}

type keyRotateWebhookCmd struct {
	keyArg
	keyOverlap
}

// Help teaches by example.
func (keyRotateWebhookCmd) Help() string {
	return examples(`pawl key rotate-webhook-secret key_01…`, `pawl key rotate-webhook-secret key_01… --overlap 72h`)
}

func (c *keyRotateWebhookCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/rotate-webhook-secret", c.keyOverlap)
}
