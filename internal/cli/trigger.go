package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/pawlhq/pawl"
)

type triggerCmd struct {
	Type     string   `arg:"" help:"Its type: one of Pawl's own, such as operation.succeeded, or of yours."`
	Data     string   `help:"A JSON value in place of the example: itself, @FILE, or - for standard input." placeholder:"JSON"`
	Endpoint []string `help:"To these endpoints, whatever types they ask for, in place of all that ask for the type." placeholder:"ID"`
	Tenant   string   `help:"Of this tenant (keys with scope admin)." placeholder:"NAME"`
}

// Help teaches by example.
func (triggerCmd) Help() string {
	return `An example event of the type goes to the endpoints, signed and in their streams as every other; its body says "test":true, and nothing else has happened. Publish a real event of your own with "pawl event publish".

` + examples(`pawl trigger operation.succeeded`, `pawl trigger order.paid --data '{"total":"1.10"}'`)
}

func (c *triggerCmd) Run(s *session) error {
	body, err := s.testBody(c.Type, c.Data)
	if err != nil {
		return err
	}
	client, err := s.connect()
	if err != nil {
		return err
	}
	to := c.Endpoint
	if len(to) == 0 {
		if to, err = c.asking(s, client); err != nil {
			return err
		}
		if len(to) == 0 {
			return fmt.Errorf("no endpoint that is enabled asks for %s: name one with --endpoint, or make one with \"pawl endpoint create\" or \"pawl listen\"", plain(c.Type))
		}
	}
	lines := &lineTable{columns: []string{"id", "endpoint_id", "event_id", "state"}}
	for _, ep := range to {
		a, err := client.call(s.ctx, http.MethodPost, endpoints+"/"+id(ep)+"/test", nil, body)
		if err != nil {
			return err
		}
		if err := s.printItem(lines, a.body); err != nil {
			return err
		}
	}
	return nil
}

// asking are the endpoints that would get a real event of the type.
func (c *triggerCmd) asking(s *session, client *client) (to []string, err error) {
	q := url.Values{"kind": {"webhook"}, "page_size": {"200"}}
	if c.Tenant != "" {
		q.Set("tenant", c.Tenant)
	}
	for {
		a, err := client.call(s.ctx, http.MethodGet, endpoints, q, nil)
		if err != nil {
			return nil, err
		}
		var p struct {
			Items []struct {
				ID, Scheme string
				Types      []string
				Disabled   bool
			} `json:"items"`
			Next string `json:"next_page_token"`
		}
		if err := decode(a.body, &p); err != nil {
			return nil, err
		}
		for _, ep := range p.Items {
			asks := slices.Contains(ep.Types, c.Type) || len(ep.Types) == 0 && c.Type != pawl.TypeProgress
			if asks && !ep.Disabled && ep.Scheme != "media-v2" && ep.Scheme != "body-timestamp" {
				to = append(to, ep.ID)
			}
		}
		if p.Next == "" {
			return to, nil
		}
		q.Set("page_token", p.Next)
	}
}

// testBody is the body of a request for a test event.
func (s *session) testBody(kind, argument string) ([]byte, error) {
	var data json.RawMessage
	if argument != "" {
		var err error
		if data, err = s.value("--data", argument); err != nil {
			return nil, err
		}
	}
	return encode(struct {
		Type string          `json:"type,omitempty"`
		Data json.RawMessage `json:"data,omitempty"`
	}{kind, data})
}
