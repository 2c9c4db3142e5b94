package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
)

// replayItem is a replay of many as the API shows it.
type replayItem struct {
	ID         string            `json:"id"`
	Tenant     string            `json:"tenant"`
	What       string            `json:"what"`
	Filter     map[string]string `json:"filter"`
	DryRun     bool              `json:"dry_run"`
	Force      bool              `json:"force"`
	Rate       int32             `json:"rate"`
	State      string            `json:"state"`
	Total      *int64            `json:"total"`
	Done       int64             `json:"done"`
	Outcomes   map[string]int64  `json:"outcomes"`
	Actor      string            `json:"actor"`
	CreatedAt  pawl.Time         `json:"created_at"`
	FinishedAt *pawl.Time        `json:"finished_at"`
}

// Of says which rows it is about.
func (r replayItem) Of() string {
	parts := make([]string, 0, len(r.Filter))
	for _, name := range slices.Sorted(maps.Keys(r.Filter)) {
		parts = append(parts, name+" "+r.Filter[name])
	}
	return strings.Join(parts, ", ")
}

// Ended reports whether nothing more is done.
func (r replayItem) Ended() bool { return r.State == "done" || r.State == "canceled" }

// replaysView is the list of replays, and the form for a new one with what the
// page that led here asks for.
type replaysView struct {
	Items []replayItem
	Next  string
	Query url.Values
}

func (v *visit) replays() error {
	query := v.filters()
	var found list[replayItem]
	if err := v.get("/v1/replays", query, &found); err != nil {
		return err
	}
	return v.showLive(http.StatusOK, "replays", "Replays", newest(query), replaysView{found.Items, found.link(v.r), v.r.URL.Query()})
}

// replayFilters are the fields of the form that say which rows.
var replayFilters = map[string][]string{
	"deliveries": {"endpoint", "event", "operation", "state", "from", "until"},
	"events":     {"source", "verdict", "type", "task_id", "from", "until"},
}

// addReplay begins a replay, or counts what it would be about, and leads to it.
func (v *visit) addReplay() error {
	why, err := v.reason()
	if err != nil {
		return err
	}
	form := v.r.PostForm
	what := form.Get("what")
	filter := make(map[string]string)
	for _, name := range replayFilters[what] {
		if value := strings.TrimSpace(form.Get(name)); value != "" {
			filter[name] = value
		}
	}
	body := map[string]any{"what": what, "filter": filter, "dry_run": form.Has("dry_run"), "force": form.Has("force")}
	var made replayItem
	once := form.Get("once")
	if form.Has("dry_run") {
		once += "-dry"
	}
	if err := v.do(call{method: http.MethodPost, path: "/v1/replays", query: v.forTenant(), body: body, why: why, once: once}, &made); err != nil {
		return err
	}
	return v.redirect("/console/replays/" + made.ID)
}

// replayView is one replay.
type replayView struct {
	Replay   replayItem
	Outcomes []figure
	// Again are the fields of the form that begins the same in earnest.
	Again map[string]string
}

// figure is a word and how often it came to that.
type figure struct {
	Word  string
	Count int64
}

func (v *visit) replay() error {
	id := v.r.PathValue("id")
	var out replayView
	if err := v.get("/v1/replays/"+url.PathEscape(id), nil, &out.Replay); err != nil {
		return err
	}
	for _, word := range slices.Sorted(maps.Keys(out.Replay.Outcomes)) {
		out.Outcomes = append(out.Outcomes, figure{word, out.Replay.Outcomes[word]})
	}
	if out.Replay.DryRun && out.Replay.State == "done" {
		out.Again = maps.Clone(out.Replay.Filter)
		out.Again["what"] = out.Replay.What
		if out.Replay.Force {
			out.Again["force"] = "true"
		}
	}
	return v.showLive(http.StatusOK, "replay", fmt.Sprintf("Replay %s", short(id)), livePath, out)
}
