package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// replayCmd are the commands about replays of many.
type replayCmd struct {
	Deliveries replayDeliveriesCmd `cmd:"" help:"Send many deliveries again: dead letters, or what was delivered."`
	Events     replayEventsCmd     `cmd:"" help:"Judge many stored inbound events anew."`
	List       replayListCmd       `cmd:"" help:"List replays and how far they have come."`
	Show       replayShowCmd       `cmd:"" help:"Show a replay."`
	Watch      replayWatchCmd      `cmd:"" help:"Follow a replay until it ends."`
	Pause      replayPauseCmd      `cmd:"" help:"Stop a replay after the step under way."`
	Resume     replayResumeCmd     `cmd:"" help:"Let a paused replay go on."`
	Cancel     replayCancelCmd     `cmd:"" help:"End a replay; what was done stays done."`
}

const replays = "/v1/replays"

// replayArg names a replay.
type replayArg struct {
	ID string `arg:"" help:"The replay, rpl_…."`
}

func (a replayArg) path() string { return replays + "/" + id(a.ID) }

// replaying is the part that beginning a replay shares.
type replaying struct {
	once
	Since  string `help:"Made since then: a time (RFC 3339), or so long ago, such as 2h." placeholder:"TIME"`
	Until  string `help:"Made before then." placeholder:"TIME"`
	All    bool   `help:"All of them, without any other flag."`
	DryRun bool   `help:"Count what it would be about, and change nothing."`
	Rate   int    `help:"How many a second at most." default:"50"`
	Detach bool   `help:"Begin it and return at once; it goes on at the server."`
	Tenant string `help:"Of this tenant (keys with scope admin see all)." placeholder:"NAME"`
}

// replayFilter is what selects rows.
type replayFilter struct {
	Endpoint  string `json:"endpoint,omitempty"`
	Event     string `json:"event,omitempty"`
	Operation string `json:"operation,omitempty"`
	State     string `json:"state,omitempty"`
	Source    string `json:"source,omitempty"`
	Verdict   string `json:"verdict,omitempty"`
	Type      string `json:"type,omitempty"`
	Task      string `json:"task_id,omitempty"`
	From      string `json:"from,omitempty"`
	Until     string `json:"until,omitempty"`
}

// replayBody begins a replay.
type replayBody struct {
	What   string       `json:"what"`
	Filter replayFilter `json:"filter"`
	DryRun bool         `json:"dry_run,omitempty"`
	Force  bool         `json:"force,omitempty"`
	Rate   int          `json:"rate,omitempty"`
}

type replayDeliveriesCmd struct {
	replaying
	Endpoint  string `help:"To this endpoint." placeholder:"ID"`
	Event     string `help:"Of this event." placeholder:"ID"`
	Operation string `help:"Of this operation's events." placeholder:"ID"`
	State     string `help:"In this state: dead or delivered." default:"dead" enum:"dead,delivered"`
	Force     bool   `help:"Send to disabled endpoints too: one attempt each."`
}

// Help teaches by example.
func (replayDeliveriesCmd) Help() string {
	return "A dead letter gets a fresh schedule; what was delivered is sent once more and stays delivered. Event ids and bodies stay, so that receivers who know them count nothing twice. The replay is a job of the server: Ctrl-C ends the watching and not the job.\n\n" +
		examples(`pawl replay deliveries --endpoint ep_01… --dry-run`, `pawl replay deliveries --endpoint ep_01… --rate 20`, `pawl replay deliveries --state delivered --since 2h --endpoint ep_01…`)
}

func (c *replayDeliveriesCmd) Run(s *session) error {
	filter := replayFilter{Endpoint: c.Endpoint, Event: c.Event, Operation: c.Operation}
	return c.begin(s, replayBody{What: "deliveries", Filter: filter, Force: c.Force}, c.State, "--endpoint, --event, --operation")
}

type replayEventsCmd struct {
	replaying
	Source  string `help:"Received from this source." placeholder:"NAME"`
	Verdict string `help:"With this verdict at their receipt, such as unknown_type or rejected." placeholder:"WORD"`
	Type    string `help:"Of this type." placeholder:"TYPE"`
	Task    string `help:"About this task of the provider." placeholder:"ID"`
}

// Help teaches by example.
func (replayEventsCmd) Help() string {
	return "Stored events are judged anew in the order they were received, as \"pawl event reprocess\" does, by a job of the server: Ctrl-C ends the watching and not the job. What was counted once is not counted again.\n\n" +
		examples(`pawl replay events --source studio --verdict unknown_type --dry-run`, `pawl replay events --source studio --since 24h`)
}

func (c *replayEventsCmd) Run(s *session) error {
	filter := replayFilter{Source: c.Source, Verdict: c.Verdict, Type: c.Type, Task: c.Task}
	return c.begin(s, replayBody{What: "events", Filter: filter}, "", "--source, --verdict, --type, --task")
}

// begin creates the replay and follows it.
func (c *replaying) begin(s *session, body replayBody, state, flags string) (err error) {
	if body.Filter.From, err = moment("--since", c.Since, s.Now()); err != nil {
		return err
	}
	if body.Filter.Until, err = moment("--until", c.Until, s.Now()); err != nil {
		return err
	}
	if body.Filter == (replayFilter{}) && !c.All {
		return usage("say which with %s, --since or --until; --all means all", flags)
	}
	if c.Rate < 1 || c.Rate > 1000 {
		return usage("--rate must be from 1 to 1000")
	}
	body.Filter.State, body.DryRun, body.Rate = state, c.DryRun, c.Rate
	text, err := encode(body)
	if err != nil {
		return err
	}
	path := replays
	if c.Tenant != "" {
		path += "?tenant=" + url.QueryEscape(c.Tenant)
	}
	// Moments that are counted from now differ between two runs of one command.
	meant := body
	meant.Filter.From, meant.Filter.Until = c.Since, c.Until
	call := onceCall{method: http.MethodPost, path: path, arguments: meant, body: text}
	return s.sendOnce(c.once, call, func(client *client, a *answer) error {
		var r replayState
		if err := decode(a.body, &r); err != nil {
			return err
		}
		if c.Detach {
			s.say("the replay goes on at the server: pawl replay show %s", plain(r.ID))
			return s.answer(a)
		}
		return s.followReplay(client, r.ID, a)
	})
}

// replayState is how far a replay has come.
type replayState struct {
	ID       string         `json:"id"`
	What     string         `json:"what"`
	DryRun   bool           `json:"dry_run"`
	State    string         `json:"state"`
	Total    *int           `json:"total"`
	Done     int            `json:"done"`
	Outcomes map[string]int `json:"outcomes"`
}

func (r replayState) ended() bool { return r.State == "done" || r.State == "canceled" }

// replayPoll is how often a replay that is followed is looked at.
const replayPoll = 500 * time.Millisecond

// followReplay shows the progress until the replay ends, is paused, or the person
// has seen enough.
func (s *session) followReplay(client *client, id string, a *answer) error {
	var r replayState
	bar := &stepLine{s: s}
	for {
		if err := decode(a.body, &r); err != nil {
			return err
		}
		if r.ended() || r.State == "paused" {
			break
		}
		if r.Total != nil {
			bar.show("replayed", int64(r.Done), int64(*r.Total))
		}
		err := pause(s.ctx, replayPoll)
		if err == nil {
			a, err = client.call(s.ctx, http.MethodGet, replays+"/"+url.PathEscape(id), nil, nil)
		}
		if err != nil {
			bar.clear()
			s.say("the replay goes on at the server: \"pawl replay watch %s\" follows it, \"pawl replay cancel %s\" ends it", plain(id), plain(id))
			return err
		}
	}
	bar.clear()
	if err := s.answer(a); err != nil {
		return err
	}
	s.say("%s", r.told())
	return nil
}

// told says in a line what became of a replay.
func (r replayState) told() string {
	total := 0
	if r.Total != nil {
		total = *r.Total
	}
	if r.DryRun {
		return fmt.Sprintf("%d %s would be replayed; without --dry-run they are", total, plain(r.What))
	}
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(r.Outcomes)) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Outcomes[word], plain(word)))
	}
	text := fmt.Sprintf("%d of %d %s: %s", r.Done, max(total, r.Done), plain(r.What), plain(r.State))
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

type replayListCmd struct{ listing }

func (c *replayListCmd) Run(s *session) error {
	return s.list(replays, c.query(), "id", "what", "state", "done", "total", "dry_run", "force", "actor", "created_at", "finished_at")
}

type replayShowCmd struct{ replayArg }

func (c *replayShowCmd) Run(s *session) error { return s.show(c.path()) }

type replayWatchCmd struct{ replayArg }

func (c *replayWatchCmd) Run(s *session) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	a, err := client.call(s.ctx, http.MethodGet, c.path(), nil, nil)
	if err != nil {
		return err
	}
	return s.followReplay(client, c.ID, a)
}

type replayPauseCmd struct{ replayArg }

func (c *replayPauseCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/pause", json.RawMessage("{}"))
}

type replayResumeCmd struct{ replayArg }

func (c *replayResumeCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/resume", json.RawMessage("{}"))
}

type replayCancelCmd struct{ replayArg }

func (c *replayCancelCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/cancel", json.RawMessage("{}"))
}
