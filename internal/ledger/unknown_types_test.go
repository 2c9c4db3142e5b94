package ledger

import (
	"testing"

	"github.com/pawlhq/pawl"
)

// TestUnknownTypesOfTwoTenants: nothing of one tenant's events of unknown types
// is in another's review (1-product, "Words"; C4; 7-rules R51).
func TestUnknownTypesOfTwoTenants(t *testing.T) {
	up := upstream()
	w := stage(t)
	w.do(EnsureTenant{Name: "other", Currency: "USD", Opening: 100})
	a := w.running(up, "a", 0)
	out := w.do(Submit{
		Tenant: "other", APIKey: hookID, Key: "b", Fingerprint: digest("b"), Window: 1, Up: up, Model: "m", Input: "{}", Deadline: deadline,
	})
	b := w.create(up, out.Value.(Submitted).Operation.ID, CreateAccepted, "task-b")

	reviews := func(tenant string) []Review {
		return pick(w.reviews, func(r Review) bool { return r.Reason == pawl.ReviewUnknownType && r.Tenant == tenant })
	}
	open := func(tenant string) (n int) {
		for _, r := range reviews(tenant) {
			if r.ClosedAt == 0 {
				n++
			}
		}
		return n
	}
	mine := []pawl.ID{w.odd(up, a.ID, "e1", "task-a", pawl.UnknownType), w.odd(up, a.ID, "e2", "task-a", pawl.UnknownType)}
	theirs := w.odd(up, b.ID, "e3", "task-b", pawl.UnknownType)
	nobodys := w.odd(up, pawl.ID{}, "e4", "", pawl.UnknownType)
	for tenant, e := range map[string]pawl.ID{tenant: mine[0], "other": theirs, "": nobodys} {
		if got := reviews(tenant); len(got) != 1 || got[0].Event != e || w.events[e].Tenant != tenant {
			t.Fatalf("reviews of tenant %q: %+v, want one about %s", tenant, got, e.Text("evt"))
		}
	}
	expect(t, "of the source in all", w.sources["s"].UnknownTypes, 4)

	// One tenant's decisions and events leave the others' reviews alone.
	w.resolve(up, reviews("other")[0], pawl.DecideReprocess)
	expect(t, "reopened, since it is unknown still", open("other"), 1)
	expectVerdict(t, "known now", w.again(up, theirs, "e3", obs("task-b", pawl.Running), 0).Verdict, pawl.Applied)
	expect(t, "closed", open("other"), 0)
	expect(t, "mine", open(tenant), 1)
	expect(t, "nobody's", open(""), 1)
	w.resolve(up, reviews("")[0], pawl.DecideDiscard)
	expect(t, "discarded", open(""), 0)
	for i, e := range mine {
		expect(t, "before", open(tenant), 1)
		w.again(up, e, []string{"e1", "e2"}[i], obs("task-a", pawl.Running), 0)
	}
	expect(t, "closed in the end", open(tenant), 0)
	expect(t, "left in all", w.sources["s"].UnknownTypes, 1)
	w.sound()
}

// TestUnknownTypeFindsItsTenant: an event of nobody's whose operation is known
// by now counts for its tenant.
func TestUnknownTypeFindsItsTenant(t *testing.T) {
	up := upstream()
	w := stage(t)
	e := w.odd(up, pawl.ID{}, "e1", "task-a", pawl.UnknownType)
	w.running(up, "a", 0)
	w.again(up, e, "e1", obs("task-a", pawl.Running), pawl.UnknownType)
	expect(t, "its tenant", w.events[e].Tenant, tenant)
	expect(t, "of nobody", w.unknown[UnknownTypesID{"s", ""}], UnknownTypes{ID: UnknownTypesID{"s", ""}})
	expect(t, "of the tenant", w.unknown[UnknownTypesID{"s", tenant}].Events, 1)
	expect(t, "in all", w.sources["s"].UnknownTypes, 1)
	asked := pick(w.reviews, func(r Review) bool { return r.ClosedAt == 0 })
	if len(asked) != 1 || asked[0].Tenant != tenant {
		t.Errorf("open reviews: %+v, want one of the tenant", asked)
	}
	w.sound()
}

// TestReprocessBegins: the first step of a long decision takes the key and keeps
// who decided and why; whatever closes the review keeps that.
func TestReprocessBegins(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 0)
	e := w.odd(up, op.ID, "e1", "task-a", pawl.UnknownType)
	r := pick(w.reviews, func(r Review) bool { return r.ClosedAt == 0 })[0]
	begin := ResolveReview{
		Header: Header{Actor: "key_1"}, Once: Once{APIKey: apiKey, KeyTenant: tenant, Key: "k", Window: 1e9},
		Review: r.ID, Event: r.Event, Source: r.Source, Whose: r.Tenant, Up: up, Decision: pawl.DecideReprocess, Note: "the preset is mended", Begin: true,
	}
	expect(t, "begun", w.once(begin).Reason, "begun")
	expect(t, "open still", w.reviews[r.ID].ClosedAt, 0)
	expect(t, "repeated", w.once(begin).Reason, "replayed")
	other := begin
	other.Decision = pawl.DecideDiscard
	expect(t, "the key for another decision", w.once(other).Err.Kind, pawl.Unprocessable)
	w.again(up, e, "e1", obs("task-a", pawl.Running), 0)
	closed := w.reviews[r.ID]
	expect(t, "note", closed.Note, "the preset is mended")
	expect(t, "decision", closed.Decision, pawl.DecideReprocess)
	expect(t, "decided by", closed.DecidedBy, "operator")
	n := 0
	for _, a := range w.audits {
		if a.Action == "review.resolve" && a.Actor == "key_1" && a.Subject == r.ID.Text(pawl.PrefixReview) {
			n++
		}
	}
	expect(t, "audited", n, 1)
	expect(t, "a repeat after the end", w.once(begin).Reason, "replayed")
	w.sound()
}

// TestUnknownTypeDiscarded: an event of a generic source that a person discarded
// is done and stays stored; judged anew in vain, it asks again, and one of a known
// type is handed over.
func TestUnknownTypeDiscarded(t *testing.T) {
	w := stage(t)
	e := w.odd(generic, pawl.ID{}, "e1", "", pawl.UnknownType)
	expect(t, "asked", w.events[e].Inbox, pawl.InboxReview)
	discard := DiscardUnknown{Header: Header{Actor: "key_1"}, Event: e, Tenant: tenant}
	expect(t, "another tenant's", w.do(DiscardUnknown{Event: e, Tenant: "other"}).Reason, "repeat")
	w.sound()
	expect(t, "discarded", w.do(discard).Reason, "discarded")
	expect(t, "again", w.do(discard).Reason, "repeat")
	expect(t, "done", w.events[e].Inbox, pawl.InboxDone)
	expect(t, "first verdict", w.events[e].Verdict, pawl.UnknownType)
	expect(t, "by whom", w.events[e].Rejudged.Actor, "key_1")
	w.sound()
	w.again(generic, e, "e1", Observation{Progress: -1}, pawl.UnknownType)
	expect(t, "unknown still", w.events[e].Inbox, pawl.InboxReview)
	w.do(discard)
	w.teach(ReprocessEvent{ID: e, Whose: tenant, ReceiveEvent: ReceiveEvent{Up: generic, Event: "e1", Type: "paid", Obs: Observation{Progress: -1}}})
	expectVerdict(t, "known", w.events[e].Judged(), pawl.Applied)
	expect(t, "handed over", w.events[e].Inbox, pawl.InboxWaiting)
	w.sound()
}
