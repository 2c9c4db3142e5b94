package api

import (
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// reviewJSON is something that a person must decide (7-rules §6).
type reviewJSON struct {
	ID          string          `json:"id"`
	Tenant      string          `json:"tenant,omitempty"`
	Reason      string          `json:"reason"`
	Meaning     string          `json:"meaning"`
	Decisions   []string        `json:"decisions" doc:"What can be decided."`
	First       string          `json:"first" doc:"What to find out before deciding."`
	Choices     []pawl.Choice   `json:"choices" doc:"What each decision does; safe ones give nothing up for good."`
	Runbook     string          `json:"runbook" doc:"The section of the documentation about the reason."`
	OperationID string          `json:"operation_id,omitempty"`
	EventID     string          `json:"event_id,omitempty"`
	EndpointID  string          `json:"endpoint_id,omitempty"`
	DeliveryID  string          `json:"delivery_id,omitempty"`
	Source      string          `json:"source,omitempty"`
	Owner       string          `json:"owner,omitempty"`
	Detail      string          `json:"detail,omitempty"`
	Reported    *reported       `json:"reported,omitempty" doc:"What the provider says, where it can be accepted."`
	OpenedAt    pawl.Time       `json:"opened_at" format:"date-time"`
	DueAt       pawl.Time       `json:"due_at" format:"date-time" doc:"By when it is to be decided (reviews.due)."`
	Overdue     bool            `json:"overdue" doc:"It is open, and that moment is over."`
	Notes       []ledger.Remark `json:"notes" doc:"What was remarked before the decision, oldest first."`
	ClosedAt    *pawl.Time      `json:"closed_at,omitempty" format:"date-time"`
	Decision    string          `json:"decision,omitempty"`
	Note        string          `json:"note,omitempty"`
	DecidedBy   string          `json:"decided_by,omitempty"`
}

func (c *call) reviewShape(r ledger.Review) reviewJSON {
	rule, guide, due := r.Reason.Rule(), r.Reason.Guide(), c.reviewDue(r)
	v := reviewJSON{
		ID: r.ID.Text(pawl.PrefixReview), Tenant: r.Tenant, Reason: rule.Word, Meaning: rule.Meaning, Decisions: rule.Decisions,
		OperationID: r.Operation.Text(pawl.PrefixOperation), EventID: r.Event.Text(pawl.PrefixEvent),
		EndpointID: r.Endpoint.Text(pawl.PrefixEndpoint), DeliveryID: r.Delivery.Text(pawl.PrefixDelivery),
		Source: r.Source, Owner: r.Owner, Detail: r.Detail, OpenedAt: r.OpenedAt, ClosedAt: isSet(r.ClosedAt),
		Decision: r.Decision, Note: r.Note, DecidedBy: r.DecidedBy,
		First: guide.First, Choices: guide.Choices, Runbook: guide.Runbook, DueAt: due,
		Overdue: r.ClosedAt == 0 && due < pawl.TimeOf(time.Now()), Notes: r.Remarks(),
	}
	if v.Notes == nil {
		v.Notes = []ledger.Remark{}
	}
	if rep, ok := r.Report(); ok {
		v.Reported = &reported{State: rep.State.String(), UpstreamState: rep.Word}
		if rep.HasCost {
			v.Reported.Cost = &reportedCost{rep.Cost.String(), rep.Currency, rep.Settled != ledger.SettledNo}
		}
	}
	return v
}

// reviewDue is by when a review is to be decided.
func (c *call) reviewDue(r ledger.Review) pawl.Time {
	within := r.Reason.Guide().Within
	if c.opts.ReviewDue != nil {
		within = c.opts.ReviewDue(r.Reason)
	}
	return r.OpenedAt.Add(within)
}

// reported is an end that a provider named after another one was recorded.
type reported struct {
	State         string        `json:"state"`
	UpstreamState string        `json:"upstream_state,omitempty"`
	Cost          *reportedCost `json:"cost,omitempty"`
}

// reportedCost is the cost that comes with it; providers need not name a
// currency.
type reportedCost struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency,omitempty"`
	Settled  bool   `json:"settled"`
}

func (a *api) reviewRoutes() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/reviews", name: "listReviews", tag: "reviews", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "The reviews that are yet to be decided, newest first",
		query:   []param{{"open", "false for decided ones as well; without it, only those that are yet to be decided"}, {"reason", ""}, {"operation", ""}, {"overdue", "true for those alone that should have been decided by now"}},
	}, listReviews)
	handle(a, route{
		method: http.MethodGet, path: "/v1/reviews/{id}", name: "getReview", tag: "reviews", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "One review",
	}, getReview)
	handle(a, route{
		method: http.MethodPost, path: "/v1/reviews/{id}/assign", name: "assignReview", tag: "reviews", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Say who is to decide a review", refuses: reasons{409: {"already_decided"}},
	}, assignReview)
	handle(a, route{
		method: http.MethodPost, path: "/v1/reviews/{id}/notes", name: "noteReview", tag: "reviews", scope: ledger.ScopeOperate, status: http.StatusOK, keyed: optional,
		summary: "Remark something on a review before it is decided", refuses: reasons{409: {"already_decided", "too_many_notes"}},
	}, noteReview)
	handle(a, route{
		method: http.MethodPost, path: "/v1/reviews/{id}/resolve", name: "resolveReview", tag: "reviews", scope: ledger.ScopeOperate, status: http.StatusOK, keyed: optional,
		summary: "Decide a review with one of its decisions",
		refuses: reasons{
			400: {"unknown_decision", "task_id_missing", "operation_id_missing"}, 402: {"insufficient_credit"},
			409: {"already_decided", "task_of_another_operation", "endpoint_disabled", "other_upstream", "task_known", "never_created"},
		},
	}, resolveReview)
}

func listReviews(c *call, _ none) (page[reviewJSON], error) {
	f := store.ReviewFilter{Tenant: c.tenant}
	all, err := filterWord(c, "open", parseFalse)
	if err != nil {
		return page[reviewJSON]{}, err
	}
	f.Open = !all
	if f.Reason, err = filterWord(c, "reason", pawl.ParseReason); err != nil {
		return page[reviewJSON]{}, err
	}
	if f.Operation, err = c.filterID("operation", pawl.PrefixOperation); err != nil {
		return page[reviewJSON]{}, err
	}
	late, err := filterWord(c, "overdue", parseTrue)
	if err != nil {
		return page[reviewJSON]{}, err
	}
	read := func(p store.Page) ([]ledger.Review, error) { return c.opts.Reader.Reviews(c.ctx, f, p) }
	if late {
		f.Open = true
		read = func(p store.Page) ([]ledger.Review, error) { return c.lateReviews(f, p) }
	}
	return listed(c, read, func(r ledger.Review) pawl.ID { return r.ID }, each(c.reviewShape))
}

// lateReviews is a page of the reviews that are overdue: the open ones are few, and
// are gone through until there are enough.
func (c *call) lateReviews(f store.ReviewFilter, p store.Page) (late []ledger.Review, err error) {
	now, look := pawl.TimeOf(time.Now()), store.Page{After: p.After, Limit: reprocessLook, Look: &store.Look{Most: p.Look.Most}}
	for looked := 0; ; looked += look.Limit {
		if looked >= p.Look.Most {
			p.Look.End = look.After
			return late, nil
		}
		rows, err := c.opts.Reader.Reviews(c.ctx, f, look)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			look.After = r.ID
			if c.reviewDue(r) < now {
				late = append(late, r)
			}
			if len(late) == p.Limit {
				return late, nil
			}
		}
		if len(rows) < look.Limit {
			p.Look.End = look.Look.End
			return late, nil
		}
	}
}

// parseFalse reads a wish for more than what is open.
func parseFalse(text string) (value, ok bool) {
	return text == "false", text == "true" || text == "false"
}

// review is the review in the path, if the call may see it.
func (c *call) review() (ledger.Review, error) {
	id, err := c.id(pawl.PrefixReview)
	if err != nil {
		return ledger.Review{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Reviews: []pawl.ID{id}})
	if err != nil {
		return ledger.Review{}, err
	}
	r, ok := rows.Reviews.Get(id)
	if !ok || !c.sees(r.Tenant) {
		return r, errNotFound
	}
	return r, nil
}

func getReview(c *call, _ none) (reviewJSON, error) {
	r, err := c.review()
	return c.reviewShape(r), err
}

// reviewOwnerRequest says who is to decide a review.
type reviewOwnerRequest struct {
	Owner string `json:"owner" maxLength:"255" doc:"Empty for nobody."`
}

func assignReview(c *call, in reviewOwnerRequest) (reviewJSON, error) {
	r, err := c.review()
	if err != nil {
		return reviewJSON{}, err
	}
	var f faults
	f.check(plainText(in.Owner, maxWord), "/owner", "is longer than 255 bytes or holds control characters")
	if err := f.err(); err != nil {
		return reviewJSON{}, err
	}
	out, err := c.do(c.ctx, ledger.AssignReview{Header: c.head(), Tenant: c.tenant, Review: r.ID, Operation: r.Operation, Owner: in.Owner})
	if err != nil {
		return reviewJSON{}, err
	}
	return c.reviewShape(out.Value.(ledger.Review)), nil
}

// reviewNoteRequest is what somebody has found out.
type reviewNoteRequest struct {
	Note string `json:"note" minLength:"1" maxLength:"1000"`
}

func noteReview(c *call, in reviewNoteRequest) (reviewJSON, error) {
	r, err := c.review()
	if err != nil {
		return reviewJSON{}, err
	}
	var f faults
	f.check(in.Note != "" && plainText(in.Note, maxDescription), "/note", "is missing, longer than 1000 bytes or holds control characters")
	if err := f.err(); err != nil {
		return reviewJSON{}, err
	}
	out, err := c.decide(ledger.NoteReview{Header: c.head(), Once: c.once(), Tenant: c.tenant, Review: r.ID, Operation: r.Operation, Note: in.Note})
	if err != nil {
		return reviewJSON{}, err
	}
	return c.reviewShape(out.Value.(ledger.Review)), nil
}

// reviewDecisionRequest decides a review.
type reviewDecisionRequest struct {
	Decision    string `json:"decision" doc:"One of the review's decisions."`
	TaskID      string `json:"task_id,omitempty" maxLength:"255" doc:"The provider's id, with the decision created."`
	OperationID string `json:"operation_id,omitempty" doc:"The operation that the task belongs to, with the decision attach."`
	Note        string `json:"note,omitempty" maxLength:"1000"`
}

func resolveReview(c *call, in reviewDecisionRequest) (reviewJSON, error) {
	r, err := c.review()
	if err != nil {
		return reviewJSON{}, err
	}
	if err := decided(in.Decision, in.TaskID, in.Note).err(); err != nil {
		return reviewJSON{}, err
	}
	cmd := ledger.ResolveReview{
		Header: c.head(), Once: c.once(), Tenant: c.tenant, Review: r.ID, Operation: r.Operation, Event: r.Event, Delivery: r.Delivery, Endpoint: r.Endpoint,
		Source: r.Source, Whose: r.Tenant, Decision: in.Decision, Task: in.TaskID, Note: in.Note,
	}
	if in.OperationID != "" {
		if cmd.Target, err = pawl.ParseID(pawl.PrefixOperation, in.OperationID); err != nil {
			return reviewJSON{}, errNotFound
		}
	}
	if err := c.about(&cmd); err != nil {
		return reviewJSON{}, err
	}
	if r.Reason == pawl.ReviewUnknownType && r.Reason.Allows(in.Decision) && r.ClosedAt == 0 {
		// The key, the note and who decided are kept before anything is judged.
		begin := cmd
		begin.Begin = true
		if _, err := c.decide(begin); err != nil {
			return reviewJSON{}, err
		}
		settled := c.reprocessUnknown
		if in.Decision == pawl.DecideDiscard {
			settled = c.discardUnknown
		}
		if r, err = settled(r); err != nil || r.ClosedAt != 0 {
			return c.reviewShape(r), err
		}
		cmd.Begun, cmd.Once = true, ledger.Once{}
	}
	out, err := c.decide(cmd)
	if err != nil {
		return reviewJSON{}, err
	}
	return c.reviewShape(out.Value.(ledger.Review)), nil
}

// about adds what never changes of the rows that a review is about.
func (c *call) about(cmd *ledger.ResolveReview) error {
	var keys ledger.Keys
	if !cmd.Operation.IsZero() {
		keys.Operations = []pawl.ID{cmd.Operation}
	}
	if !cmd.Event.IsZero() {
		keys.Events = []pawl.ID{cmd.Event}
	}
	rows, err := c.load(c.ctx, keys)
	if err != nil {
		return err
	}
	up := cmd.Source
	if op, ok := rows.Operations.Get(cmd.Operation); ok {
		up = op.Upstream
	}
	cmd.Up = c.upstream(up)
	if e, ok := rows.Events.Get(cmd.Event); ok && cmd.Operation.IsZero() {
		cmd.EventTask = e.Task
	}
	return nil
}
