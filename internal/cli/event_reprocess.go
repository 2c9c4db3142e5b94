package cli

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

type eventReprocessCmd struct {
	ID      string `arg:"" optional:"" help:"One event, evt_…; without it, all that the flags select."`
	Source  string `help:"Received from this source." placeholder:"NAME"`
	Verdict string `help:"With this verdict at their receipt, such as unknown_type or rejected." placeholder:"WORD"`
	Type    string `help:"Of this type." placeholder:"TYPE"`
	Task    string `help:"About this task of the provider." placeholder:"ID"`
	Since   string `help:"Received since then: a time (RFC 3339), or so long ago, such as 2h." placeholder:"TIME"`
	Until   string `help:"Received before then." placeholder:"TIME"`
	All     bool   `help:"All that may come to something else now, without any other flag."`
	DryRun  bool   `help:"Say what each would come to by itself, and change nothing."`
	Tenant  string `help:"Of this tenant (keys with scope admin see all)." placeholder:"NAME"`
}

// Help teaches by example.
func (eventReprocessCmd) Help() string {
	return "Stored events are judged anew, in the order they were received, as today's description of their source reads them and by the same rules as a new one: what was counted once is not counted again. Each event keeps its first verdict; the latest is shown beside it. Without --verdict, events that have had their effect are left alone. It may be interrupted and run again.\n\n" +
		examples(`pawl event reprocess evt_01…`, `pawl event reprocess --source studio --verdict unknown_type --dry-run`, `pawl event reprocess --source studio --since 24h`)
}

// reprocessing is the body of a call, and what it answers with.
type reprocessing struct {
	Filter reprocessFilter `json:"filter"`
	DryRun bool            `json:"dry_run,omitempty"`
	After  string          `json:"after,omitempty"`
	Limit  int             `json:"limit,omitempty"`
}

type reprocessFilter struct {
	Source  string `json:"source,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Type    string `json:"type,omitempty"`
	TaskID  string `json:"task_id,omitempty"`
	From    string `json:"from,omitempty"`
	Until   string `json:"until,omitempty"`
}

type reprocessed struct {
	DryRun   bool             `json:"dry_run"`
	Matched  int              `json:"matched"`
	Verdicts map[string]int   `json:"verdicts"`
	Items    []map[string]any `json:"items"`
	Next     string           `json:"next,omitempty"`
}

func (c *eventReprocessCmd) Run(s *session) error {
	from, err := moment("--since", c.Since, s.Now())
	if err != nil {
		return err
	}
	until, err := moment("--until", c.Until, s.Now())
	if err != nil {
		return err
	}
	filter := reprocessFilter{c.Source, c.Verdict, c.Type, c.Task, from, until}
	switch one := c.ID != ""; {
	case one && (filter != (reprocessFilter{}) || c.All || c.DryRun):
		return usage("give one event, or flags that select several")
	case one:
		return s.send(http.MethodPost, events+"/"+id(c.ID)+"/reprocess", struct{}{})
	case filter == (reprocessFilter{}) && !c.All:
		return usage("give an event, or say which with --source, --verdict, --type, --task, --since or --until; --all means all")
	}
	return c.many(s, filter)
}

// many judges whatever the filter selects, a bounded number a call.
func (c *eventReprocessCmd) many(s *session, filter reprocessFilter) error {
	client, err := s.connect()
	if err != nil {
		return err
	}
	bar, total := &stepLine{s: s}, 0
	if s.watched() && !c.DryRun {
		counted, err := c.walk(s, client, reprocessing{Filter: filter, DryRun: true}, func(reprocessed) {})
		if err != nil {
			return err
		}
		total = counted.Matched
	}
	all, err := c.walk(s, client, reprocessing{Filter: filter, DryRun: c.DryRun}, func(so reprocessed) { bar.show("events", int64(so.Matched), int64(total)) })
	bar.clear()
	if err != nil {
		if all.Matched > 0 {
			s.say("%d events were judged before that; the same command goes on with the others", all.Matched)
		}
		return err
	}
	return s.reprocessed(all)
}

// walk makes calls until the server says that nothing follows.
func (c *eventReprocessCmd) walk(s *session, client *client, body reprocessing, show func(reprocessed)) (all reprocessed, err error) {
	all = reprocessed{DryRun: body.DryRun, Verdicts: map[string]int{}, Items: []map[string]any{}}
	query := url.Values{}
	if c.Tenant != "" {
		query.Set("tenant", c.Tenant)
	}
	for {
		text, err := encode(body)
		if err != nil {
			return all, err
		}
		a, err := client.call(s.ctx, http.MethodPost, events+"/reprocess", query, text)
		if err != nil {
			return all, err
		}
		var got reprocessed
		if err := decode(a.body, &got); err != nil {
			return all, err
		}
		all.Matched += got.Matched
		all.Items = append(all.Items, got.Items...)
		for verdict, n := range got.Verdicts {
			all.Verdicts[verdict] += n
		}
		show(all)
		if body.After = got.Next; body.After == "" {
			return all, nil
		}
	}
}

// reprocessed prints what the events came to.
func (s *session) reprocessed(all reprocessed) error {
	if s.flags.JSON {
		text, err := encode(all)
		if err != nil {
			return err
		}
		return s.printJSON(text)
	}
	if all.Matched == 0 {
		s.say("nothing to judge anew")
		return nil
	}
	if err := s.print(table(all.Items, "event_id", "first", "verdict", "reason")); err != nil {
		return err
	}
	did := "judged anew"
	if all.DryRun {
		did = "would be judged anew"
	}
	s.say("%d events %s: %s", all.Matched, did, verdictsText(all.Verdicts))
	return nil
}

// verdictsText lists counts by verdict; what could not be judged has none.
func verdictsText(by map[string]int) string {
	var parts []string
	for _, verdict := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d %s", by[verdict], firstOf(plain(verdict), "not judged")))
	}
	return strings.Join(parts, ", ")
}

// moment makes a time of a time, or of a duration before now.
func moment(flag, text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if d, bad := time.ParseDuration(text); bad == nil && d > 0 {
		at, err = now.Add(-d), nil
	}
	if err != nil {
		return "", usage("%s must be a time such as 2026-01-31T18:00:00Z, or so long ago, such as 2h", flag)
	}
	return pawl.TimeOf(at).String(), nil
}

func queryEscape(text string) string { return url.QueryEscape(text) }
