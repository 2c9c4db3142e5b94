package api

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/strict"
)

const (
	// replayRate is how many rows a second a replay does if it does not say,
	// replayRateMost how many at most.
	replayRate, replayRateMost = 50, 1000
	// replayCount is how long the answer to a dry run waits for its count.
	replayCount, replayLook = 2 * time.Second, 50 * time.Millisecond
)

// The words for what is done again.
var replayWhat = map[string]ledger.ReplayKind{"deliveries": ledger.ReplayDeliveries, "events": ledger.ReplayEvents}

// replayRequest begins a replay.
type replayRequest struct {
	What   string       `json:"what,omitempty" enum:"deliveries,events" doc:"deliveries are sent again, each under its own event id; stored inbound events are judged anew. deliveries if it is left out."`
	Filter replayFilter `json:"filter,omitempty"`
	DryRun bool         `json:"dry_run,omitempty" doc:"Count what it would be about, and change nothing."`
	Force  bool         `json:"force,omitempty" doc:"Send to disabled endpoints too: one attempt each, past the pause."`
	Rate   int32        `json:"rate,omitempty" minimum:"0" maximum:"1000" doc:"How many a second at most; 50 if it is left out."`
}

// replayFilter says which; members that are left out do not restrict.
type replayFilter struct {
	Endpoint  string `json:"endpoint,omitempty" doc:"Of deliveries: to this endpoint."`
	Event     string `json:"event,omitempty" doc:"Of deliveries: of this event."`
	Operation string `json:"operation,omitempty" doc:"Of deliveries: of this operation's events."`
	State     string `json:"state,omitempty" enum:"dead,delivered" doc:"Of deliveries: dead if it is left out."`
	Source    string `json:"source,omitempty" doc:"Of events."`
	Verdict   string `json:"verdict,omitempty" doc:"Of events: the verdict at receipt. Events whose key is used up are left out unless it is named."`
	Type      string `json:"type,omitempty" doc:"Of events."`
	TaskID    string `json:"task_id,omitempty" doc:"Of events."`
	From      string `json:"from,omitempty" format:"date-time" doc:"Made, or received, at that time or later."`
	Until     string `json:"until,omitempty" format:"date-time" doc:"Made, or received, before that time; never later than the replay."`
}

// replayJSON is a replay of many (1-product H6, C10).
type replayJSON struct {
	ID         string           `json:"id"`
	Tenant     string           `json:"tenant,omitempty" doc:"Whose rows; absent for those of all tenants."`
	What       string           `json:"what" enum:"deliveries,events"`
	Filter     replayFilter     `json:"filter"`
	DryRun     bool             `json:"dry_run"`
	Force      bool             `json:"force"`
	Rate       int32            `json:"rate"`
	State      string           `json:"state" enum:"counting,running,paused,done,canceled"`
	Total      *int64           `json:"total,omitempty" doc:"What it is about; absent while that is being counted."`
	Done       int64            `json:"done"`
	Outcomes   map[string]int64 `json:"outcomes" doc:"What became of those that are done: due (will be sent), a verdict, or why not."`
	Actor      string           `json:"actor"`
	CreatedAt  pawl.Time        `json:"created_at" format:"date-time"`
	UpdatedAt  pawl.Time        `json:"updated_at" format:"date-time"`
	FinishedAt *pawl.Time       `json:"finished_at,omitempty" format:"date-time"`
}

func replayShape(r ledger.Replay) replayJSON {
	f := r.Filter
	v := replayJSON{
		ID: r.ID.Text(pawl.PrefixReplay), Tenant: r.Tenant, What: "deliveries", DryRun: r.DryRun, Force: r.Force, Rate: r.Rate,
		State: r.State.String(), Done: r.Done, Outcomes: r.Counts(), Actor: r.Actor,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, FinishedAt: isSet(r.FinishedAt),
		Filter: replayFilter{
			Endpoint: f.Endpoint.Text(pawl.PrefixEndpoint), Event: f.Event.Text(pawl.PrefixEvent), Operation: f.Operation.Text(pawl.PrefixOperation),
			State: f.State.String(), Source: f.Source, Verdict: f.Verdict.String(), Type: f.Type, TaskID: f.Task, Until: f.Until.String(),
		},
	}
	if r.Kind == ledger.ReplayEvents {
		v.What = "events"
	}
	if f.From != 0 {
		v.Filter.From = f.From.String()
	}
	if r.Counted {
		v.Total = &r.Total
	} else if r.State == pawl.ReplayRunning {
		v.State = "counting"
	}
	return v
}

func (a *api) replayRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/replays", name: "createReplay", tag: "replays", scope: ledger.ScopeOperate, status: http.StatusAccepted, keyed: required,
		summary: "Send many deliveries again, or judge many stored events anew, as a job of the server",
		headers: []answerHeader{{name: "Location"}},
		refuses: reasons{404: {"not_found"}, 409: {"endpoint_disabled", "endpoint_feed"}},
	}, createReplay)
	handle(a, route{
		method: http.MethodGet, path: "/v1/replays", name: "listReplays", tag: "replays", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "Replays, newest first",
	}, listReplays)
	handle(a, route{
		method: http.MethodGet, path: "/v1/replays/{id}", name: "getReplay", tag: "replays", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "One replay and how far it has come",
	}, getReplay)
	for _, act := range []struct {
		word, name, summary string
		to                  pawl.ReplayState
	}{
		{"pause", "pauseReplay", "Stop a replay after the step under way", pawl.ReplayPaused},
		{"resume", "resumeReplay", "Let a paused replay go on", pawl.ReplayRunning},
		{"cancel", "cancelReplay", "End a replay after the step under way; what was done stays done", pawl.ReplayCanceled},
	} {
		handle(a, route{
			method: http.MethodPost, path: "/v1/replays/{id}/" + act.word, name: act.name, tag: "replays", scope: ledger.ScopeOperate, status: http.StatusOK, keyed: optional,
			summary: act.summary, refuses: reasons{409: {"replay_finished"}},
		}, changeReplay(act.to))
	}
}

func createReplay(c *call, in replayRequest) (replayJSON, error) {
	r, err := c.replayOf(in)
	if err != nil {
		return replayJSON{}, err
	}
	out, err := c.decide(ledger.CreateReplay{Header: c.head(), Once: c.once(), Replay: r})
	if err != nil {
		return replayJSON{}, err
	}
	id := out.Value.(pawl.ID)
	c.header.Set("Location", "/v1/replays/"+id.Text(pawl.PrefixReplay))
	if r, err = c.counted(id); err != nil {
		return replayJSON{}, err
	}
	return replayShape(r), nil
}

// counted is a replay as it is now; for a dry run a count that comes soon is
// waited for.
func (c *call) counted(id pawl.ID) (ledger.Replay, error) {
	ticker := time.NewTicker(replayLook)
	defer ticker.Stop()
	for until := time.Now().Add(replayCount); ; {
		rows, err := c.load(c.ctx, ledger.Keys{Replays: []pawl.ID{id}})
		if err != nil {
			return ledger.Replay{}, err
		}
		r, ok := rows.Replays.Get(id)
		if !ok || !c.sees(r.Tenant) {
			return r, errNotFound
		}
		if !r.DryRun || r.State.Finished() || time.Now().After(until) {
			return r, nil
		}
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return r, c.ctx.Err()
		}
	}
}

// replayOf reads what is meant.
func (c *call) replayOf(in replayRequest) (r ledger.Replay, err error) {
	r = ledger.Replay{Tenant: c.tenant, Kind: ledger.ReplayDeliveries, DryRun: in.DryRun, Force: in.Force, Rate: replayRate}
	var bad faults
	if in.What != "" {
		kind, ok := replayWhat[in.What]
		bad.check(ok, "/what", "must be deliveries or events")
		r.Kind = kind
	}
	bad.check(in.Rate >= 0 && in.Rate <= replayRateMost, "/rate", "must be from 1 to 1000")
	if in.Rate > 0 {
		r.Rate = in.Rate
	}
	f := in.Filter
	ofEvents := f.Source != "" || f.Verdict != "" || f.Type != "" || f.TaskID != ""
	ofDeliveries := f.Endpoint != "" || f.Event != "" || f.Operation != "" || f.State != "" || in.Force
	if r.Kind == ledger.ReplayEvents {
		bad.check(!ofDeliveries, "/filter", "endpoint, event, operation, state and force are of deliveries; what is events")
	} else {
		bad.check(!ofEvents, "/filter", `source, verdict, type and task_id are of events; add "what":"events"`)
	}
	r.Filter = readReplayFilter(f, &bad)
	if r.Kind == ledger.ReplayDeliveries && f.State == "" {
		r.Filter.State = pawl.DeliveryDead
	}
	return r, bad.err()
}

func readReplayFilter(f replayFilter, bad *faults) (out ledger.ReplayFilter) {
	out = ledger.ReplayFilter{Source: f.Source, Type: f.Type, Task: f.TaskID}
	for _, id := range [...]struct {
		text, pointer, prefix string
		into                  *pawl.ID
	}{
		{f.Endpoint, "/filter/endpoint", pawl.PrefixEndpoint, &out.Endpoint}, {f.Event, "/filter/event", pawl.PrefixEvent, &out.Event},
		{f.Operation, "/filter/operation", pawl.PrefixOperation, &out.Operation},
	} {
		if id.text == "" {
			continue
		}
		got, err := pawl.ParseID(id.prefix, id.text)
		bad.check(err == nil, id.pointer, "must be an id that begins with "+id.prefix+"_")
		*id.into = got
	}
	if f.State != "" {
		state, _ := pawl.ParseDeliveryState(f.State)
		bad.check(state == pawl.DeliveryDead || state == pawl.DeliveryDelivered, "/filter/state", "must be dead or delivered: others are on their way, or skipped for good")
		out.State = state
	}
	if f.Verdict != "" {
		verdict, ok := pawl.ParseVerdict(f.Verdict)
		bad.check(ok, "/filter/verdict", "is no verdict, such as unknown_type or rejected")
		out.Verdict = verdict
	}
	for _, end := range [...]struct {
		text, pointer string
		into          *pawl.Time
	}{{f.From, "/filter/from", &out.From}, {f.Until, "/filter/until", &out.Until}} {
		if end.text == "" {
			continue
		}
		at, err := strict.ParseTime(end.text)
		bad.check(err == nil, end.pointer, "must be a time such as 2026-01-31T18:00:00Z")
		*end.into = max(1, pawl.TimeOf(at))
	}
	return out
}

func listReplays(c *call, _ none) (page[replayJSON], error) {
	read := func(p store.Page) ([]ledger.Replay, error) { return c.opts.Reader.Replays(c.ctx, c.tenant, p) }
	return listed(c, read, func(r ledger.Replay) pawl.ID { return r.ID }, each(replayShape))
}

func getReplay(c *call, _ none) (replayJSON, error) {
	id, err := c.id(pawl.PrefixReplay)
	if err != nil {
		return replayJSON{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Replays: []pawl.ID{id}})
	if err != nil {
		return replayJSON{}, err
	}
	r, ok := rows.Replays.Get(id)
	if !ok || !c.sees(r.Tenant) {
		return replayJSON{}, errNotFound
	}
	return replayShape(r), nil
}

func changeReplay(to pawl.ReplayState) func(*call, none) (replayJSON, error) {
	return func(c *call, _ none) (replayJSON, error) {
		id, err := c.id(pawl.PrefixReplay)
		if err != nil {
			return replayJSON{}, err
		}
		out, err := c.decide(ledger.ChangeReplay{Header: c.head(), Once: c.once(), Tenant: c.tenant, ID: id, To: to})
		if err != nil {
			return replayJSON{}, err
		}
		return replayShape(out.Value.(ledger.Replay)), nil
	}
}
