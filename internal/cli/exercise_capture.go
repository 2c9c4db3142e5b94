package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/exercise"
	"github.com/pawlhq/pawl/internal/upstream"
)

// exerciseCaptureCmd makes a fixture of an operation that happened.
type exerciseCaptureCmd struct {
	Operation   string `required:"" help:"The operation." placeholder:"ID"`
	Out         string `required:"" help:"File for the fixture; it must not exist." placeholder:"FILE"`
	Description string `help:"The provider's description, if it is none of the presets." placeholder:"FILE"`
}

// Help teaches by example.
func (exerciseCaptureCmd) Help() string {
	return `The events of a real operation become a fixture that "pawl exercise --fixture" plays: what identifies, orders and prices the task stays, every other value is replaced. The key needs the scope payloads, since raw bodies are read, and each reading is audited.

` + examples(`pawl exercise capture --operation op_01… --out mine.json`, `pawl exercise --out receipts --fixture mine.json`)
}

func (c *exerciseCaptureCmd) Run(s *session) error {
	if _, err := os.Lstat(c.Out); err == nil {
		return usage("--out: %s is there already; name another file", c.Out)
	}
	api, err := s.connect()
	if err != nil {
		return err
	}
	captured, err := c.captured(s, api)
	if err != nil {
		return err
	}
	text, left, err := exercise.Capture(s.ctx, captured)
	if err != nil {
		return fmt.Errorf("%s cannot be played: %w", c.Operation, err)
	}
	f, err := os.OpenFile(c.Out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if left > 0 {
		s.say("%d left out: they come to something else without what the ledger does not keep", left)
	}
	s.say("%d steps; play them with: pawl exercise --out DIR --fixture %s", len(captured.Seen)-left, plain(c.Out))
	return nil
}

// captured fetches what there is of the operation.
func (c *exerciseCaptureCmd) captured(s *session, api *client) (out exercise.Captured, err error) {
	path := "/v1/operations/" + url.PathEscape(c.Operation)
	var op struct {
		TaskID  string `json:"task_id"`
		Adapter string `json:"adapter"`
	}
	if err := c.get(s, api, path, &op); err != nil {
		return out, err
	}
	name, _, _ := strings.Cut(op.Adapter, "/")
	switch {
	case name == config.PresetWorker:
		return out, fmt.Errorf("%s was done by an own worker: it has no provider whose callbacks could be played", c.Operation)
	case op.TaskID == "":
		return out, fmt.Errorf("%s has no task at a provider", c.Operation)
	}
	out.Task = op.TaskID
	if out.Description = upstream.PresetText(name); c.Description != "" {
		out.Description, err = s.file(c.Description)
	}
	if err != nil || out.Description == nil {
		return out, usage("--description: give the file that describes %s (%w)", plain(name), errors.Join(err, errors.New("it is no preset")))
	}
	var timeline struct {
		Items []struct {
			Kind, Verdict string
			State         pawl.State
			EventID       string `json:"event_id"`
		}
	}
	if err := c.get(s, api, path+"/timeline", &timeline); err != nil {
		return out, err
	}
	for _, item := range timeline.Items {
		verdict, ok := pawl.ParseVerdict(item.Verdict)
		seen := exercise.Seen{Verdict: verdict, State: item.State}
		switch {
		case item.Kind == "callback" && item.EventID != "" && ok && !slices.ContainsFunc(out.Seen, func(e exercise.Seen) bool { return e.Event == item.EventID }):
			seen.Event = item.EventID
		case item.Kind == "read" && verdict == pawl.Applied:
		default:
			continue
		}
		out.Seen = append(out.Seen, seen)
	}
	return out, c.bodies(s, api, out.Seen)
}

// bodies fetches the raw bodies of the events, and gives each its sender's id.
func (c *exerciseCaptureCmd) bodies(s *session, api *client, all []exercise.Seen) error {
	for i, seen := range all {
		if seen.Event == "" {
			continue
		}
		var e struct {
			ExternalID string `json:"external_id"`
			Body       []byte `json:"body"`
		}
		if err := c.get(s, api, "/v1/events/"+url.PathEscape(seen.Event), &e); err != nil {
			return err
		}
		if e.Body == nil {
			return errors.New("the raw body of an event cannot be read: give a key with the scope payloads")
		}
		all[i].Event, all[i].Body = e.ExternalID, e.Body
	}
	return nil
}

func (c *exerciseCaptureCmd) get(s *session, api *client, path string, into any) error {
	a, err := api.call(s.ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(a.body, into)
}
