package upstream

import (
	"context"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
)

// ReadResult is what a read showed.
type ReadResult struct {
	Outcome     ledger.ReadOutcome
	Observation ledger.Observation
	// Reason says in a stable word why nothing was observed.
	Reason string
	// Status is as in [CreateResult].
	Status int
	// RetryAfter is how long the provider wants us to wait, 0 if it did not say.
	RetryAfter time.Duration
}

// The reason of asking a provider for what its description lacks.
const ReasonUnsupported = "unsupported"

// Read asks for the task's state.
func (u Upstream) Read(ctx context.Context, client *egress.Client, task string) ReadResult {
	return u.ask(ctx, client, u.spec.Read, values{task: task})
}

// Lookup finds a task by the client reference of its create (1-product B2).
// [ledger.ReadObserved] carries its id; [ledger.ReadNotFound] says that there is
// none.
func (u Upstream) Lookup(ctx context.Context, client *egress.Client, clientRef string) ReadResult {
	return u.ask(ctx, client, u.spec.Lookup, values{clientRef: clientRef})
}

func (u Upstream) ask(ctx context.Context, client *egress.Client, call *Call, v values) ReadResult {
	if call == nil || v.task != "" && !usableID(v.task) || v.task == "" && v.clientRef == "" {
		return ReadResult{Outcome: ledger.ReadUnreachable, Reason: ReasonUnsupported}
	}
	req, err := u.request(ctx, *call, v, nil)
	if err != nil {
		return ReadResult{Outcome: ledger.ReadUnreachable, Reason: ReasonUnsupported}
	}
	a, failure := u.send(ctx, client, req)
	if failure != nil {
		return ReadResult{Outcome: ledger.ReadUnreachable, Reason: failure.reason}
	}
	return u.readAnswer(a, call.Fields, v.task, time.Now())
}

// readAnswer judges a whole answer about the task that was asked for; an empty
// task stands for a lookup.
func (u Upstream) readAnswer(a answer, f Fields, task string, now time.Time) ReadResult {
	v := u.judge(a, f)
	r := ReadResult{Outcome: ledger.ReadUnreachable, Status: v.status, RetryAfter: a.retryAfter(now)}
	switch {
	case v.status == 0:
		r.Reason = ReasonContradiction
	case v.status == http.StatusNotFound:
		r.Outcome = ledger.ReadNotFound
	case v.status == http.StatusUnauthorized, v.status == http.StatusForbidden:
		r.Outcome = ledger.ReadUnauthorized
	case !success(v.status):
		r.Reason = ReasonStatus
	case v.malformed:
		r.Reason = ReasonMalformedJSON
	default:
		u.readTask(&r, v.doc, f, a.header, task)
	}
	return r
}

func (u Upstream) readTask(r *ReadResult, d document, f Fields, h http.Header, task string) {
	o, reason := u.observe(d, f, h)
	if f.Task == "" {
		o.Task = task
	}
	switch {
	case o.Task == "":
		r.Reason = ReasonMissingTask
	case task != "" && o.Task != task:
		r.Outcome, r.Observation = ledger.ReadOtherTask, ledger.Observation{Task: o.Task, Progress: -1}
	case f.State != "" && o.Word == "":
		r.Reason = ReasonMissingState
	case reason != "":
		r.Reason = reason
	case f.State != "" && o.State == 0:
		r.Outcome, r.Observation, r.Reason = ledger.ReadUnknownState, o, ReasonUnknownState
	default:
		r.Outcome, r.Observation = ledger.ReadObserved, o
	}
}
