package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

type eventPublishCmd struct {
	once
	Type   string `required:"" help:"Its type, such as order.paid; endpoints choose by it." placeholder:"TYPE"`
	Data   string `required:"" help:"A JSON value: itself, @FILE, or - for standard input." placeholder:"JSON"`
	ID     string `name:"id" help:"Your own id of the event: receivers know it by this, and the same id again is the same event." placeholder:"ID"`
	Tenant string `help:"Of this tenant (keys with scope admin)." placeholder:"NAME"`
}

// Help teaches by example.
func (eventPublishCmd) Help() string {
	return "The event goes to the tenant's endpoints, signed and tried again like every other. With --id it may be published any number of times and is one event; without, the same command is one event until its answer was printed.\n\n" +
		examples(`pawl event publish --type order.paid --id order-7 --data '{"total":"1.10"}'`, `pawl event publish --type report.ready --data @report.json`)
}

func (c *eventPublishCmd) Run(s *session) error {
	data, err := s.value("--data", c.Data)
	if err != nil {
		return err
	}
	head, err := encode(struct {
		ID   string `json:"id,omitempty"`
		Type string `json:"type"`
	}{c.ID, c.Type})
	if err != nil {
		return err
	}
	body := append(append(append(head[:len(head)-1:len(head)-1], `,"data":`...), data...), '}')
	path := events
	if c.Tenant != "" {
		path += "?tenant=" + queryEscape(c.Tenant)
	}
	return s.sendOnce(c.once, onceCall{method: http.MethodPost, path: path, body: body, arguments: []any{string(head), string(data)}},
		func(_ *client, a *answer) error { return s.answer(a) })
}

// value is a JSON value that is the argument itself, in the file behind an @, or
// on standard input.
func (s *session) value(flag, argument string) ([]byte, error) {
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
	if !json.Valid(text) {
		return nil, usage(`%s is not JSON such as {"name":"value"} or "text"; give a file as @FILE`, flag)
	}
	return text, nil
}
