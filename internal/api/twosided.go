package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/listing"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/strict"
)

// Lists reads the lists of upstreams and sources (1-product E3).
type Lists struct {
	Client *egress.Client
	// Turn waits for a turn among an upstream's reads; done ends what has it.
	Turn func(ctx context.Context, upstream string) (done func(), err error)
	// pace spaces the pages of generic sources out.
	pace listing.Pace
}

// twoSidedRequest asks for the next page of a source's list.
type twoSidedRequest struct {
	Since string `json:"since,omitempty" format:"date-time" doc:"Nothing older; the same in every call of a walk. Refused where the list tells no times."`
	Fetch bool   `json:"fetch,omitempty" doc:"Make a read due of every operation of which something is missing. Without it nothing is changed."`
	After string `json:"after,omitempty" maxLength:"49152" doc:"Where to go on: next of the answer before."`
}

// twoSidedAnswer is what a page came to.
type twoSidedAnswer struct {
	Source     string    `json:"source"`
	Kind       string    `json:"kind" enum:"upstream,source"`
	Lists      string    `json:"lists" enum:"tasks,events" doc:"What its list is one of. An operation whose task a whole list of tasks lacks is unknown to the provider."`
	Listed     int       `json:"listed" doc:"Entries that were held against the ledger."`
	Matched    int       `json:"matched" doc:"Those of them that have arrived."`
	Repeated   int       `json:"repeated" doc:"Entries that the list has told before."`
	Unreadable int       `json:"unreadable" doc:"Entries without a usable id."`
	Items      []finding `json:"items" doc:"What is missing, and what is foreign."`
	Operations []string  `json:"operations" doc:"The operations that entries are of."`
	Next       string    `json:"next,omitempty" doc:"Give it as after in the next call. Absent at the end."`
}

// finding is an entry that has not simply arrived.
type finding struct {
	Finding     string     `json:"finding" enum:"missing,foreign_task"`
	Reason      string     `json:"reason" doc:"missing: event, end, state or other_end is what never came; foreign_task: unknown_task, or parked where events of it wait."`
	TaskID      string     `json:"task_id,omitempty"`
	EventID     string     `json:"event_id,omitempty"`
	Word        string     `json:"upstream_state,omitempty"`
	At          *pawl.Time `json:"at,omitempty" format:"date-time" doc:"When it was, by the list."`
	OperationID string     `json:"operation_id,omitempty"`
	State       string     `json:"state,omitempty" doc:"The operation's."`
	Read        string     `json:"read,omitempty" doc:"With fetch: due, or the reason why it is not read."`
}

func (a *api) twoSidedRoutes() {
	handle(a, route{
		method: http.MethodPost, path: "/v1/sources/{id}/reconcile", name: "reconcileSource", tag: "sources", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Hold one page of what a source lists against the ledger. It asks the provider once, within its limit of reads",
		refuses: reasons{
			http.StatusForbidden: {"source_shared"}, http.StatusConflict: {"no_list", "list_untimed"},
			http.StatusBadGateway: {"list_unreadable"}, http.StatusServiceUnavailable: {"list_busy"},
		},
	}, twoSided)
}

func twoSided(c *call, in twoSidedRequest) (twoSidedAnswer, error) {
	source, list, err := c.listOf(c.r.PathValue("id"))
	if err != nil {
		return twoSidedAnswer{}, err
	}
	since, at, err := c.walk(in, list)
	if err != nil {
		return twoSidedAnswer{}, err
	}
	page, err := c.page(source, list, at, since)
	if err != nil {
		return twoSidedAnswer{}, err
	}
	out := twoSidedAnswer{
		Source: source.Name, Kind: source.Kind, Lists: "tasks", Listed: len(page.Entries), Repeated: page.Repeated, Unreadable: page.Unreadable,
		Items: []finding{}, Operations: []string{},
	}
	if list.Spec.Fields.Event != "" {
		out.Lists = "events"
	}
	if page.Next != nil {
		out.Next = c.pages.seal(page.Next.Text(), c.walkBound(in))
	}
	return out, c.compare(&out, list, page, in.Fetch)
}

// listOf is a source that the call may see all of, with its list.
func (c *call) listOf(name string) (sourceJSON, listing.List, error) {
	for _, s := range c.sources() {
		if s.Name != name {
			continue
		}
		list, ok := c.live.sources[name].List()
		if s.Kind == "upstream" {
			list, ok = c.opts.Upstreams.Now()[name].List()
		}
		switch {
		case c.tenant != "" && s.Tenant != c.tenant:
			return s, list, refuse(http.StatusForbidden, "source_shared", "its list shows what other tenants have there; use a key with the scope admin")
		case !ok || c.opts.Lists == nil:
			return s, list, refuse(http.StatusConflict, "no_list", "neither its description nor the configuration says how to list what it has")
		}
		return s, list, nil
	}
	return sourceJSON{}, listing.List{}, errNotFound
}

// walk reads where a walk has come to.
func (c *call) walk(in twoSidedRequest, list listing.List) (since pawl.Time, at listing.Cursor, err error) {
	var bad faults
	if in.Since != "" {
		from, err := strict.ParseTime(in.Since)
		bad.check(err == nil, "/since", "must be a time such as 2026-01-31T18:00:00Z")
		since = max(1, pawl.TimeOf(from))
		if list.Spec.Fields.Time == "" {
			return 0, at, refuse(http.StatusConflict, "list_untimed", "the list tells no times, so that it can only be read whole; leave since out")
		}
	}
	if in.After != "" {
		text, ok := c.pages.open(in.After, c.walkBound(in))
		if ok {
			at, err = listing.ParseCursor(text)
		}
		bad.check(ok && err == nil, "/after", "must be next of the answer before, with the same since")
	}
	return since, at, bad.err()
}

// walkBound is what the place in a walk is bound to.
func (c *call) walkBound(in twoSidedRequest) string {
	return c.r.URL.Path + "\n" + c.tenant + "\n" + in.Since
}

// page asks for a page in its turn.
func (c *call) page(s sourceJSON, list listing.List, at listing.Cursor, since pawl.Time) (listing.Page, error) {
	busy := refuse(http.StatusServiceUnavailable, "list_busy", "other reads of the source are before this one; repeat it").with("Retry-After", "5")
	// The page itself needs its time within the call's.
	waiting, cancel := context.WithTimeout(c.ctx, requestTimeout-list.Timeout-time.Second)
	defer cancel()
	if s.Kind == "upstream" {
		done, err := c.opts.Lists.Turn(waiting, s.Name)
		if err != nil {
			return listing.Page{}, busy
		}
		defer done()
	} else if c.opts.Lists.pace.Turn(waiting, s.Name, c.live.sources[s.Name].ListEvery()) != nil {
		return listing.Page{}, busy
	}
	page, err := list.Read(c.ctx, c.opts.Lists.Client, at, since)
	var failed *listing.Failure
	switch {
	case !errors.As(err, &failed):
		return page, err
	case failed.RetryAfter > 0:
		return page, refuse(http.StatusServiceUnavailable, "list_busy", "the source wants to be asked later").with("Retry-After", strconv.Itoa(int(failed.RetryAfter/time.Second)+1))
	}
	return page, refuse(http.StatusBadGateway, "list_unreadable", fmt.Sprintf("page %d of the list: %s", at.Pages+1, failed.Reason))
}

// compare holds the entries of a page against the ledger.
func (c *call) compare(out *twoSidedAnswer, list listing.List, page listing.Page, fetch bool) error {
	var keys ledger.Keys
	listed := make([]ledger.Listed, len(page.Entries))
	for i, e := range page.Entries {
		listed[i] = ledger.Listed{Source: out.Source, Generic: out.Kind == "source", Task: e.Task, Event: e.Event, State: list.State(e.Word)}
		listed[i].Keys(&keys)
	}
	rows, err := c.load(c.ctx, keys)
	if err != nil {
		return err
	}
	told := make(map[pawl.ID]bool)
	for i, e := range page.Entries {
		got := listed[i].Compare(rows)
		if !got.Operation.IsZero() && !told[got.Operation] {
			told[got.Operation] = true
			out.Operations = append(out.Operations, got.Operation.Text(pawl.PrefixOperation))
		}
		if got.Finding == ledger.Missing {
			refused, err := c.keyless(listed[i])
			if err != nil {
				return err
			}
			if refused {
				got.Finding = ledger.Matched
			}
		}
		if got.Finding == ledger.Matched {
			out.Matched++
			continue
		}
		op, _ := rows.Operations.Get(got.Operation)
		item := finding{
			Finding: got.Finding.String(), Reason: got.Reason, TaskID: e.Task, EventID: e.Event, Word: e.Word, At: isSet(e.At),
			OperationID: op.ID.Text(pawl.PrefixOperation), State: op.State.String(),
		}
		if fetch && got.Finding == ledger.Missing && !op.ID.IsZero() {
			if item.Read, err = c.readMissed(op, e.Event, got.Reason); err != nil {
				return err
			}
		}
		out.Items = append(out.Items, item)
	}
	return nil
}

// keylessLook is how many events of one task are looked at.
const keylessLook = 200

// keyless reports whether an event has come that took no key, since it was
// refused or nobody knew its type: it is not missing, and can be judged anew.
func (c *call) keyless(l ledger.Listed) (bool, error) {
	if l.Event == "" || l.Task == "" {
		return false, nil
	}
	f := store.EventFilter{Direction: ledger.Inbound, Source: l.Source, Task: l.Task}
	events, err := c.opts.Reader.Events(c.ctx, f, store.Page{Limit: keylessLook})
	for _, e := range events {
		if e.ExternalID == l.Event {
			return true, err
		}
	}
	return false, err
}

// readMissed makes a read of an operation due, and says what came of it.
func (c *call) readMissed(op ledger.Operation, event, reason string) (string, error) {
	read := ledger.ReadNow{Header: c.head(), Tenant: c.tenant, Operation: op.ID, Up: c.upstream(op.Upstream)}
	out, err := c.do(c.ctx, ledger.ReadMissed{ReadNow: read, Event: event, Reason: reason})
	if refused := asError[*pawl.Error](err); refused != nil {
		return refused.Reason, nil
	}
	return out.Reason, err
}
