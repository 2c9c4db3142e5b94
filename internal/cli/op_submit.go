package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/strict"
)

type opSubmitCmd struct {
	once
	Upstream     string            `required:"" help:"The provider, by its name in the configuration." placeholder:"NAME"`
	Model        string            `required:"" help:"What to run there." placeholder:"NAME"`
	Input        string            `required:"" help:"The job as a JSON object: itself, @FILE, or - for standard input." placeholder:"JSON"`
	CallbackURL  string            `name:"callback-url" help:"Where to tell the outcome to." placeholder:"URL"`
	Metadata     map[string]string `help:"Your own words about it; may be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Correlation  string            `help:"Your own id: only one unfinished operation may have it." placeholder:"ID"`
	ExpectedCost string            `help:"What to reserve, such as 0.12:USD." placeholder:"AMOUNT:CUR"`
	Deadline     string            `help:"How long it may take, such as 2h, or until when (RFC 3339)." placeholder:"TIME"`
	Owner        string            `help:"Who answers for it." placeholder:"TEXT"`
	Hold         bool              `help:"Withhold the result until it is released."`
	Account      string            `help:"The account that pays, acct_…." placeholder:"ID"`
	DryRun       bool              `xor:"outcome" help:"Only say what would happen: everything is judged, and nothing recorded."`
	Wait         bool              `xor:"outcome" help:"Wait for the outcome, as \"pawl op wait\" does."`
	Timeout      time.Duration     `default:"10m" help:"How long --wait waits."`
}

// Help teaches by example.
func (opSubmitCmd) Help() string {
	return `The job is handed in under an idempotency key that is remembered until its answer was printed: after a timeout or Ctrl-C the same command goes on with the same job instead of making a second one, and says so. After an answer the same command is a new job.

` + examples(
		`pawl op submit --upstream studio --model kling-2 --input '{"prompt":"a pawl"}'`,
		`pawl op submit --upstream studio --model kling-2 --input @job.json --expected-cost 0.12:USD --wait`,
		`pawl op submit --upstream studio --model kling-2 --input @job.json --dry-run`,
		`jq .job big.json | pawl op submit --upstream studio --model kling-2 --input - --deadline 2h`)
}

// submission is the body of POST /v1/operations but for the input.
type submission struct {
	Upstream      string            `json:"upstream"`
	Model         string            `json:"model"`
	CallbackURL   string            `json:"callback_url,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	CorrelationID string            `json:"correlation_id,omitempty"`
	ExpectedCost  *cost             `json:"expected_cost,omitempty"`
	Deadline      string            `json:"deadline,omitempty"`
	Owner         string            `json:"owner,omitempty"`
	Release       string            `json:"release,omitempty"`
	Account       string            `json:"account,omitempty"`
}

// cost is money on the wire.
type cost struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

func (c *opSubmitCmd) Run(s *session) error {
	input, err := s.object("--input", c.Input)
	if err != nil {
		return err
	}
	body, err := c.submission(s.Now())
	if err != nil {
		return err
	}
	text, err := withInput(body, input)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.dryRun(s, text)
	}
	body.Deadline = c.Deadline // As it was typed: "2h" is the same command a minute later.
	call := onceCall{
		method: http.MethodPost, path: operations, body: text,
		arguments: []any{body, string(input)},
	}
	return s.sendOnce(c.once, call, func(client *client, a *answer) error {
		if !c.Wait {
			return s.answer(a)
		}
		return s.follow(client, a, c.Timeout)
	})
}

// dryRun asks what would happen. Nothing is done, so no key is remembered.
func (c *opSubmitCmd) dryRun(s *session, body []byte) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	key := firstOf(c.IdempotencyKey, newKey())
	a, err := client.call(s.ctx, http.MethodPost, operations, url.Values{"dry_run": {"true"}}, body, "Idempotency-Key", key)
	if err != nil {
		return err
	}
	return s.answer(a)
}

func (c *opSubmitCmd) submission(now time.Time) (submission, error) {
	b := submission{
		Upstream: c.Upstream, Model: c.Model, CallbackURL: c.CallbackURL, Metadata: c.Metadata,
		CorrelationID: c.Correlation, Owner: c.Owner, Account: c.Account, Release: held(c.Hold),
	}
	var err error
	if c.ExpectedCost != "" {
		if b.ExpectedCost, err = parseCost("--expected-cost", c.ExpectedCost); err != nil {
			return b, err
		}
	}
	b.Deadline, err = parseMoment("--deadline", c.Deadline, now)
	return b, err
}

// parseCost reads AMOUNT:CURRENCY.
func parseCost(flag, text string) (*cost, error) {
	amount, currency, _ := strings.Cut(text, ":")
	a, err := pawl.ParseAmount(amount)
	if err != nil || !pawl.ValidCurrency(currency) {
		return nil, usage("%s must be an amount with at most nine decimal places and a currency, such as 0.12:USD", flag)
	}
	return &cost{a.String(), currency}, nil
}

// parseMoment makes a moment of a duration from now, or of a moment.
func parseMoment(flag, text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	at, err := strict.ParseTime(text)
	if d, bad := time.ParseDuration(text); bad == nil && d > 0 {
		at, err = now.Add(d), nil
	}
	// A moment that stands for "none" would not be sent at all.
	if err != nil || !pawl.TimeOf(at).IsSet() {
		return "", usage("%s must be a duration such as 2h, or a time such as 2026-01-31T18:00:00Z", flag)
	}
	return pawl.TimeOf(at).String(), nil
}

// withInput puts the input into the body byte for byte (1-product A2).
func withInput(b submission, input []byte) ([]byte, error) {
	rest, err := encode(b)
	if err != nil {
		return nil, err
	}
	text := append([]byte(`{"input":`), input...)
	return append(append(text, ','), rest[1:]...), nil
}

// object is a JSON object that is the argument itself, in the file behind an
// @, or on standard input.
func (s *session) object(flag, argument string) ([]byte, error) {
	text := []byte(argument)
	var err error
	if name, ok := strings.CutPrefix(argument, "@"); ok {
		text, err = s.file(name)
	} else if argument == "-" {
		text, err = s.file(argument)
	}
	if err != nil {
		return nil, usage("%s: %w", flag, err)
	}
	text = bytes.TrimSpace(text)
	if !json.Valid(text) || text[0] != '{' {
		return nil, usage(`%s is not a JSON object such as {"name":"value"}; give a file as @FILE`, flag)
	}
	return text, nil
}

// held is the API's word for a result that is withheld.
func held(hold bool) string {
	if hold {
		return "hold"
	}
	return ""
}
