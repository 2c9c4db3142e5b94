package cli

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/webhook"
)

type signCmd struct {
	signing
	ID        string `name:"id" help:"The event's id, for schemes that send one." placeholder:"ID"`
	Timestamp int64  `help:"When it is sent, in Unix seconds; else now." placeholder:"UNIX"`
}

// Help teaches by example.
func (signCmd) Help() string {
	return `The headers to send are printed one a line, "Name: value". With several secrets the receiver may know either one, where the scheme can say so.

` + examples(
		`pawl sign --scheme standard-webhooks --secret whsec_… --id msg_1 --body event.json`,
		`pawl sign --scheme standard-webhooks-v1a --secret whsk_… --id msg_1 --body event.json`,
		`pawl sign --scheme stripe --secret whsec_… --body event.json`,
		`pawl sign --scheme media-v2 --secret whsec_… --timestamp 1780000000 --body - < callback.json`)
}

func (c *signCmd) Run(s *session) error {
	scheme, err := c.scheme(false)
	if err != nil {
		return err
	}
	if c.ID == "" && scheme.IDHeader() != "" {
		return usage("%s signs the event's id: give --id", scheme.Name())
	}
	body, err := s.file(c.Body)
	if err != nil {
		return usage("--body: %w", err)
	}
	keys, err := parseKeys(scheme, c.Secret)
	if err != nil {
		return err
	}
	if c.Timestamp == 0 {
		c.Timestamp = s.Now().Unix()
	}
	h, err := scheme.Sign(webhook.Message{ID: c.ID, TaskID: c.TaskID, Timestamp: c.Timestamp, URL: c.URL, Body: body}, keys...)
	if err != nil {
		return err
	}
	h = spelled(h)
	if s.flags.JSON {
		text, err := encode(h)
		if err != nil {
			return err
		}
		return s.printJSON(text)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	return s.print(out.String())
}

// spelled are the headers under the names that their specifications write:
// Standard Webhooks has them in lower case (SW-01).
func spelled(canonical http.Header) http.Header {
	h := make(http.Header, len(canonical))
	for name, values := range canonical {
		if strings.HasPrefix(name, "Webhook-") {
			name = strings.ToLower(name)
		}
		name = strings.Replace(name, "X-Github-", "X-GitHub-", 1)
		h[name] = values
	}
	return h
}
