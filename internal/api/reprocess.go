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
	// reprocessMost is how many events one call judges at most, reprocessDefault
	// how many if it does not say.
	reprocessMost    = 500
	reprocessDefault = 100
	// reprocessTime is how long one call goes on to the next event.
	reprocessTime = 10 * time.Second
	// reprocessLook is how many stored events are looked at together.
	reprocessLook = 200
)

// rejudgment is the latest judgment of a stored event that was judged anew.
type rejudgment struct {
	At      pawl.Time `json:"at" format:"date-time"`
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason"`
	Actor   string    `json:"actor,omitempty"`
}

func rejudgmentShape(e ledger.Event) *rejudgment {
	if e.Rejudged.Verdict == 0 {
		return nil
	}
	return &rejudgment{e.Rejudged.At, e.Rejudged.Verdict.String(), e.Rejudged.Reason, e.Rejudged.Actor}
}

// reprocessed is what an event came to.
type reprocessed struct {
	EventID string `json:"event_id"`
	First   string `json:"first" doc:"The verdict at its receipt."`
	Verdict string `json:"verdict" doc:"The verdict now; empty where it could not be judged."`
	Reason  string `json:"reason"`
}

// reprocessRequest asks to judge stored events anew.
type reprocessRequest struct {
	Filter reprocessFilter `json:"filter,omitempty"`
	DryRun bool            `json:"dry_run,omitempty" doc:"Say what each would come to by itself now, and change nothing."`
	After  string          `json:"after,omitempty" doc:"Where to go on: next of the answer before."`
	Limit  int             `json:"limit,omitempty" minimum:"0" maximum:"500" doc:"Events to judge at most; 100 if it is left out."`
}

// reprocessFilter says which; members that are left out do not restrict.
type reprocessFilter struct {
	Source  string `json:"source,omitempty"`
	Verdict string `json:"verdict,omitempty" doc:"The verdict at receipt. Events whose key is used up are left out unless it is named."`
	Type    string `json:"type,omitempty"`
	TaskID  string `json:"task_id,omitempty"`
	From    string `json:"from,omitempty" format:"date-time" doc:"Received at that time or later."`
	Until   string `json:"until,omitempty" format:"date-time" doc:"Received before that time."`
}

// reprocessAnswer is how far a call came.
type reprocessAnswer struct {
	DryRun   bool             `json:"dry_run"`
	Matched  int              `json:"matched" doc:"Events that this call has judged."`
	Verdicts map[string]int64 `json:"verdicts" doc:"What they came to."`
	Items    []reprocessed    `json:"items"`
	Next     string           `json:"next,omitempty" doc:"Give it as after in the next call. Absent at the end."`
}

func (a *api) reprocessRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/events/{id}/reprocess", name: "reprocessEvent", tag: "events", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Judge a stored inbound event anew, by today's description and the same rules",
		refuses: reasons{http.StatusConflict: {"not_inbound", "source_unknown", "body_gone"}, http.StatusServiceUnavailable: {"too_many_orphans"}},
	}, reprocessOne)
	handle(a, route{
		method: http.MethodPost, path: "/v1/events/reprocess", name: "reprocessEvents", tag: "events", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Judge stored inbound events anew in the order they were received, a bounded number a call",
	}, reprocessMany)
}

func reprocessOne(c *call, _ none) (storedEvent, error) {
	e, err := c.event()
	if err != nil {
		return storedEvent{}, err
	}
	if _, err := c.reprocess(e, false); err != nil {
		return storedEvent{}, err
	}
	e, err = c.event()
	return eventShape(e), err
}

// reprocess judges one stored event anew, or says what it would come to.
func (c *call) reprocess(e ledger.Event, dry bool) (ledger.Received, error) {
	if e.Direction != ledger.Inbound {
		return ledger.Received{}, refuse(http.StatusConflict, "not_inbound", "only inbound events are judged")
	}
	reread, ok := c.reader(e.Source)
	if !ok {
		return ledger.Received{}, refuse(http.StatusConflict, "source_unknown", "its source is no longer configured, so that nobody knows how to read it")
	}
	id := ledger.PayloadID{Owner: e.ID, Kind: ledger.BodyPayload}
	payloads, err := c.opts.Reader.Payloads(c.ctx, id)
	if err != nil {
		return ledger.Received{}, err
	}
	body, ok := payloads[id]
	if !ok {
		return ledger.Received{}, refuse(http.StatusConflict, "body_gone", "its body is no longer stored")
	}
	cmd := ledger.ReprocessEvent{ReceiveEvent: reread(e, []byte(body)), Tenant: c.tenant, ID: e.ID, Whose: e.Tenant}
	cmd.Header, cmd.Token = c.head(), e.Operation
	var out ledger.Outcome
	if dry {
		if out, _, err = store.Preview(c.ctx, c.opts.Reader, cmd); err == nil && out.Err != nil {
			err = out.Err
		}
	} else {
		out, err = c.do(c.ctx, cmd)
	}
	if err != nil {
		return ledger.Received{}, err
	}
	return out.Value.(ledger.Received), nil
}

// reader is how a source's stored events are read today.
func (c *call) reader(source string) (func(ledger.Event, []byte) ledger.ReceiveEvent, bool) {
	if s, ok := c.live.sources[source]; ok {
		return s.Reread, true
	}
	up, ok := c.opts.Upstreams.Now()[source]
	return up.Reread, ok
}

func reprocessMany(c *call, in reprocessRequest) (reprocessAnswer, error) {
	f, after, err := c.selection(in)
	if err != nil {
		return reprocessAnswer{}, err
	}
	limit := in.Limit
	if limit == 0 {
		limit = reprocessDefault
	}
	return c.judgeMany(f, after, limit, in.DryRun, func(ledger.Event) bool { return true })
}

// judgeMany judges those of the selected events anew that are meant, in the order
// they were received, for as long as one call may take.
func (c *call) judgeMany(f store.EventFilter, after pawl.ID, limit int, dry bool, meant func(ledger.Event) bool) (reprocessAnswer, error) {
	out := reprocessAnswer{DryRun: dry, Verdicts: map[string]int64{}, Items: []reprocessed{}}
	for began := time.Now(); ; {
		events, err := c.opts.Reader.Events(c.ctx, f, store.Page{After: after, Limit: reprocessLook, Oldest: true})
		if err != nil {
			return out, err
		}
		for _, e := range events {
			if out.Matched == limit || time.Since(began) > reprocessTime {
				out.Next = after.Text(pawl.PrefixEvent)
				return out, nil
			}
			after = e.ID
			if !meant(e) || !e.Open() && f.Verdict == 0 {
				continue
			}
			item, err := c.reprocessed(e, dry)
			if err != nil {
				return out, err
			}
			out.Matched++
			out.Verdicts[item.Verdict]++
			out.Items = append(out.Items, item)
		}
		if len(events) < reprocessLook {
			return out, nil
		}
	}
}

// reprocessed judges one of many: what cannot be judged does not keep the others
// from it.
func (c *call) reprocessed(e ledger.Event, dry bool) (reprocessed, error) {
	item := reprocessed{EventID: e.ID.Text(pawl.PrefixEvent), First: e.Verdict.String()}
	got, err := c.reprocess(e, dry)
	if p := asError[*problem](err); p != nil {
		item.Reason = p.Reason
		return item, nil
	}
	if refused := asError[*pawl.Error](err); refused != nil {
		item.Reason = refused.Reason
		return item, nil
	}
	item.Verdict, item.Reason = got.Verdict.String(), got.Reason
	return item, err
}

// selection reads which events are meant, and after which one to go on.
func (c *call) selection(in reprocessRequest) (f store.EventFilter, after pawl.ID, err error) {
	f = store.EventFilter{Tenant: c.tenant, Direction: ledger.Inbound, Source: in.Filter.Source, Task: in.Filter.TaskID, Type: in.Filter.Type}
	var bad faults
	if in.Filter.Verdict != "" {
		verdict, ok := pawl.ParseVerdict(in.Filter.Verdict)
		bad.check(ok, "/filter/verdict", "is no verdict, such as unknown_type or rejected")
		f.Verdict = verdict
	}
	for _, end := range [...]struct {
		text, pointer string
		into          *pawl.Time
	}{{in.Filter.From, "/filter/from", &f.From}, {in.Filter.Until, "/filter/until", &f.Until}} {
		if end.text == "" {
			continue
		}
		at, err := strict.ParseTime(end.text)
		bad.check(err == nil, end.pointer, "must be a time such as 2026-01-31T18:00:00Z")
		*end.into = max(1, pawl.TimeOf(at))
	}
	if in.After != "" {
		after, err = pawl.ParseID(pawl.PrefixEvent, in.After)
		bad.check(err == nil, "/after", "must be next of the answer before")
	}
	bad.check(in.Limit >= 0 && in.Limit <= reprocessMost, "/limit", "must be from 1 to 500")
	return f, after, bad.err()
}

// reprocessUnknown judges a source's events of unknown types anew, those of the
// tenant that the review of them is about, for as long as one call may take, and
// gives the review as it is then: nothing left has closed it.
func (c *call) reprocessUnknown(r ledger.Review) (ledger.Review, error) {
	f := store.EventFilter{Tenant: r.Tenant, Direction: ledger.Inbound, Source: r.Source, Verdict: pawl.UnknownType}
	mine := func(e ledger.Event) bool { return e.Tenant == r.Tenant }
	var after pawl.ID
	for began := time.Now(); ; {
		out, err := c.judgeMany(f, after, reprocessMost, false, mine)
		if err != nil {
			return r, err
		}
		if out.Next == "" || time.Since(began) > reprocessTime {
			return c.review()
		}
		if after, err = pawl.ParseID(pawl.PrefixEvent, out.Next); err != nil {
			return r, err
		}
	}
}

// discardUnknown marks that nothing will be done with a generic source's events of
// unknown types, those of the tenant that the review of them is about.
func (c *call) discardUnknown(r ledger.Review) (ledger.Review, error) {
	f := store.EventFilter{Tenant: r.Tenant, Direction: ledger.Inbound, Source: r.Source, Inbox: pawl.InboxReview}
	p := store.Page{Limit: reprocessLook, Oldest: true}
	for {
		events, err := c.opts.Reader.Events(c.ctx, f, p)
		if err != nil {
			return r, err
		}
		for _, e := range events {
			p.After = e.ID
			if e.Tenant != r.Tenant || e.Judged() != pawl.UnknownType {
				continue
			}
			if _, err := c.do(c.ctx, ledger.DiscardUnknown{Header: c.head(), Event: e.ID, Tenant: r.Tenant}); err != nil {
				return r, err
			}
		}
		if len(events) < p.Limit {
			return c.review()
		}
	}
}
