package upstream

import (
	"errors"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/internal/ledger"
)

// Sample is an answer that a provider gave, or an event that it sent, as it
// was captured.
type Sample struct {
	// Kind says what it answers: "create", "read", "lookup"; or "callback" for an
	// event.
	Kind string
	// Status is the answer's HTTP status; 0 counts as 200.
	Status int
	Header http.Header
	Body   []byte
}

// Understood is what a description makes of a sample. What the sample does not
// say, or the description has no place for, is left out.
type Understood struct {
	Kind string `json:"kind"`
	// Good says that it can be used: the task was accepted, observed or found, or
	// the event would be taken.
	Good bool `json:"good"`
	// Outcome is a stable word, such as "accepted" or "unknown_state", and Reason
	// why, where the outcome alone does not tell.
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason,omitempty"`
	Event    string `json:"event_id,omitempty"`
	Type     string `json:"type,omitempty"`
	Task     string `json:"task_id,omitempty"`
	Word     string `json:"upstream_state,omitempty"`
	State    string `json:"state,omitempty"`
	Version  *int64 `json:"version,omitempty"`
	Progress *int32 `json:"progress,omitempty"` // hundredths of a percent
	Cost     string `json:"cost,omitempty"`
	Currency string `json:"currency,omitempty"`
	Settled  *bool  `json:"settled,omitempty"`
	Error    string `json:"error,omitempty"`
	// Result says that a result was found.
	Result bool `json:"result,omitempty"`
}

// errNoCall is the answer to a sample of what the provider cannot do.
var errNoCall = errors.New("upstream: the description has no such call")

// Understand says what the description makes of a sample, as a node would. The
// signature of an event is not looked at. The error says that the description
// has no place for such a sample.
func (s Spec) Understand(sample Sample) (Understood, error) {
	u := Upstream{spec: s}
	a := answer{status: sample.Status, header: sample.Header, body: sample.Body}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	now := time.Unix(0, 0) // only waits are counted from it, and none is shown
	out := Understood{Kind: sample.Kind}
	switch {
	case sample.Kind == "create":
		r := u.classify(a, now)
		out.Good, out.Outcome, out.Reason = r.Outcome == ledger.CreateAccepted, r.Outcome.String(), r.Reason
		out.observed(r.First)
		out.Task, out.Error = r.Task, r.Word
	case sample.Kind == "read" && s.Read != nil:
		out.asked(u.readAnswer(a, s.Read.Fields, u.taskOf(a, s.Read.Fields), now))
	case sample.Kind == "lookup" && s.Lookup != nil:
		out.asked(u.readAnswer(a, s.Lookup.Fields, "", now))
	case sample.Kind == "callback" && s.Callback != nil:
		out.called(u.readCallback(a.header, a.body, "signed-id", u.Trust()))
	default:
		return out, errNoCall
	}
	return out, nil
}

// taskOf is the task that a captured answer names: nobody asked for another.
func (u Upstream) taskOf(a answer, f Fields) string {
	d, err := readDocument(a.body, f.Task)
	if id := d.id(f.Task); err == nil && id != "" {
		return id
	}
	return "task"
}

func (u *Understood) asked(r ReadResult) {
	u.Good, u.Outcome, u.Reason = r.Outcome == ledger.ReadObserved, r.Outcome.String(), r.Reason
	u.observed(r.Observation)
}

func (u *Understood) called(c Callback, bad *Rejection) {
	u.Good, u.Outcome, u.Event, u.Type = bad == nil, "taken", c.EventID, c.Type
	u.observed(c.Observation)
	if bad == nil {
		return
	}
	u.Outcome, u.Reason = "rejected", bad.Reason
	if bad.Kind == RejectUnknownState || bad.Kind == RejectUnknownType {
		u.Outcome, u.Reason = bad.Reason, ""
	}
}

func (u *Understood) observed(o ledger.Observation) {
	u.Task, u.Word, u.Cost, u.Currency, u.Result = o.Task, o.Word, o.CostText, o.Currency, o.Result != ""
	if o.State != 0 && !o.ProgressOnly {
		u.State = o.State.String()
	}
	if o.HasVersion {
		u.Version = &o.Version
	}
	if o.Progress > 0 {
		u.Progress = &o.Progress
	}
	if o.Settled != ledger.SettledUnsaid {
		final := o.Settled == ledger.SettledYes
		u.Settled = &final
	}
	u.Error = string(o.ErrorCode)
}

// Remark is something that a description leaves out, and what follows from it.
type Remark struct {
	What string `json:"what"`
	// Then is what Pawl cannot do, or does instead.
	Then string `json:"then"`
}

// Remarks are what a reader of a description should know before it is used.
func (s Spec) Remarks() []Remark {
	var all []Remark
	say := func(missing bool, what, then string) {
		if missing {
			all = append(all, Remark{what, then})
		}
	}
	say(s.Create.Idempotency == nil, "a create cannot be repeated", "one that may have arrived becomes unconfirmed and is never sent again")
	say(s.Create.Idempotency == nil && s.Lookup == nil && s.Callback == nil, "there is neither lookup nor callback", "what is unconfirmed waits for a person")
	say(s.Read == nil, "there is no read", "a missed callback stays missed, and the deadline asks a person")
	say(s.List == nil, "there is no list", "what never arrived cannot be looked for")
	say(s.Cancel == nil, "there is no cancel", "a running operation cannot be canceled")
	say(s.Callback == nil, "there is no callback", "operations are read from the start")
	say(s.Callback != nil && s.Callback.Trust == TrustHint, "callbacks prove nothing", "each one only makes a read due")
	say(s.Callback != nil && s.Callback.Event.Digest, "events have no id", "two events with the same bytes are one")
	say(s.Read != nil && s.Read.Fields.Cost == "", "no cost is reported", "a success is charged its price")
	say(s.Read != nil && s.Read.Fields.Cost != "" && s.Read.Fields.Settled == "", "no word says that a cost is final", "the end of the task makes it final")
	return all
}
