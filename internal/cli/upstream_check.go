package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/internal/upstream"
)

// upstreamCheckCmd tries a description of one's own before a node uses it.
type upstreamCheckCmd struct {
	File     string   `arg:"" help:"The description (YAML), or - for standard input."`
	Create   []string `help:"A captured answer to a create; may be repeated." placeholder:"FILE" sep:"none"`
	Read     []string `help:"A captured answer to a status read; may be repeated." placeholder:"FILE" sep:"none"`
	Lookup   []string `help:"A captured answer to a lookup; may be repeated." placeholder:"FILE" sep:"none"`
	Callback []string `help:"The captured body of a callback; may be repeated." placeholder:"FILE" sep:"none"`
	Status   int      `help:"The HTTP status of the captured answers." default:"200" placeholder:"N"`
	Header   []string `help:"A header of the captured messages; may be repeated." placeholder:"'NAME: VALUE'" sep:"none"`
}

// Help teaches by example.
func (upstreamCheckCmd) Help() string {
	return `Says what is wrong with a description, or what it can do and what follows from what it leaves out; then what it makes of messages that you have captured from the provider. The configuration uses it as description: ${file:studio.yaml}. Exit status 1 if the description or a message cannot be used.

` + examples(`pawl upstream check studio.yaml`, `pawl upstream check studio.yaml --create created.json --read done.json --callback event.json`)
}

// checkedUpstream is what the command prints as JSON.
type checkedUpstream struct {
	Adapter string                `json:"adapter"`
	States  map[string]string     `json:"states"`
	Remarks []upstream.Remark     `json:"remarks"`
	Samples []upstream.Understood `json:"samples"`
}

func (c *upstreamCheckCmd) Run(s *session) error {
	text, err := s.file(c.File)
	if err != nil {
		return usage("%w", err)
	}
	spec, err := upstream.Parse(text)
	if err != nil {
		return fmt.Errorf("%s cannot be used:\n%s", c.File, strings.TrimPrefix(err.Error(), "upstream: "))
	}
	out := checkedUpstream{Adapter: spec.Adapter(), States: make(map[string]string), Remarks: spec.Remarks(), Samples: []upstream.Understood{}}
	for word, state := range spec.States {
		out.States[word] = state.String()
	}
	if out.Samples, err = c.samples(s, spec); err != nil {
		return err
	}
	if err := c.print(s, out); err != nil {
		return err
	}
	if slices.ContainsFunc(out.Samples, func(u upstream.Understood) bool { return !u.Good }) {
		return errShown
	}
	return nil
}

func (c *upstreamCheckCmd) samples(s *session, spec upstream.Spec) ([]upstream.Understood, error) {
	header, err := parseHeaders(c.Header)
	if err != nil {
		return nil, err
	}
	all := []upstream.Understood{}
	for _, kind := range []struct {
		name  string
		files []string
	}{{"create", c.Create}, {"read", c.Read}, {"lookup", c.Lookup}, {"callback", c.Callback}} {
		for _, file := range kind.files {
			u, err := c.sample(s, spec, kind.name, file, header)
			if err != nil {
				return nil, err
			}
			all = append(all, u)
		}
	}
	return all, nil
}

func (c *upstreamCheckCmd) sample(s *session, spec upstream.Spec, kind, file string, header http.Header) (upstream.Understood, error) {
	body, err := s.file(file)
	if err != nil {
		return upstream.Understood{}, usage("--%s: %w", kind, err)
	}
	u, err := spec.Understand(upstream.Sample{Kind: kind, Status: c.Status, Header: header, Body: body})
	if err != nil {
		return u, usage("--%s: the description has no %s", kind, kind)
	}
	return u, nil
}

func (c *upstreamCheckCmd) print(s *session, out checkedUpstream) error {
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	if s.flags.JSON {
		return s.printJSON(text)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s can be used.\n", plain(out.Adapter))
	for _, r := range out.Remarks {
		fmt.Fprintf(&b, "  %s: %s\n", r.What, r.Then)
	}
	for _, u := range out.Samples {
		b.WriteString(understood(u))
	}
	return s.print(b.String())
}

// understood is a line about a sample.
func understood(u upstream.Understood) string {
	line := fmt.Sprintf("%s: %s", u.Kind, u.Outcome)
	for _, f := range [][2]string{
		{"reason", u.Reason}, {"event", u.Event}, {"type", u.Type}, {"task", u.Task}, {"state", u.State},
		{"upstream_state", u.Word}, {"cost", u.Cost}, {"currency", u.Currency}, {"error", u.Error},
	} {
		if f[1] != "" {
			line += fmt.Sprintf("  %s=%s", f[0], plain(f[1]))
		}
	}
	if u.Result {
		line += "  with a result"
	}
	return line + "\n"
}
