package browser

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/sim"
)

// fault opens a review of one reason for real, and is answered in the page.
type fault struct {
	reason pawl.Reason
	script func(*sim.Script)
	// upstream and more are of the submission; without a script the node is given
	// an event to publish instead.
	upstream string
	more     []string
	publish  string
	// within is how long after its submission the operation's deadline is; 0 leaves
	// it to the upstream.
	within time.Duration
	// decision is taken, with the field that it asks for.
	decision string
	field    func(w *town, op string) string
	// then is what the operation's page shows afterwards, empty where the review is
	// about none.
	then string
}

// soon is a deadline that passes in the test, and not before the create was made.
const soon = 4 * time.Second

// silent loses all callbacks.
func silent(s *sim.Script) { s.Callbacks = nil }

// second is the end told once more, with a fault of its own.
func second(event string, f sim.Fault) func(*sim.Script) {
	return func(s *sim.Script) {
		s.Callbacks = append(s.Callbacks, sim.Callback{Event: event, Kind: sim.TellsEnd, Fault: f, At: 4 * time.Second})
	}
}

// faults are in the order in which their reviews open: the last two take a minute.
func faults(provider *sim.Server) []fault {
	return []fault{
		{reason: pawl.ReviewSecondTask, decision: pawl.DecideKeep, then: "running", script: func(s *sim.Script) {
			s.Create, s.CreateTimes, s.Start, s.End = sim.CreateOther, 1, 0, 10*time.Minute
			s.Callbacks = []sim.Callback{{Event: "running", Kind: sim.TellsRunning, Fault: sim.CallbackEarly}}
		}},
		{reason: pawl.ReviewUnknownState, decision: pawl.DecideKeep, then: "running", script: func(s *sim.Script) {
			silent(s)
			s.Reads, s.ReadTimes = sim.ReadUnknownState, 1000
		}},
		{reason: pawl.ReviewUnknownType, decision: pawl.DecideDiscard, script: func(s *sim.Script) {
			s.Callbacks = append(s.Callbacks, sim.Callback{Event: "odd", Kind: sim.TellsRunning, Fault: sim.CallbackUnknownType, At: time.Second})
		}},
		{reason: pawl.ReviewNoResult, decision: pawl.DecideKeep, then: "succeeded", script: func(s *sim.Script) { s.Result = sim.ResultMissing }},
		{reason: pawl.ReviewCurrency, decision: pawl.DecideCharge, then: "succeeded", script: func(s *sim.Script) { s.Currency = "EUR" }},
		{reason: pawl.ReviewOverReservation, decision: pawl.DecideKeep, then: "succeeded", script: func(s *sim.Script) { s.Cost = 3 * pawl.AmountScale / 2 }},
		{reason: pawl.ReviewConflict, decision: pawl.DecideAccept, then: "failed", script: second("conflict", sim.CallbackConflict)},
		{reason: pawl.ReviewBodyDiffers, decision: pawl.DecideKeep, then: "succeeded", script: second("end", sim.CallbackDiffers)},
		{reason: pawl.ReviewRelease, decision: pawl.DecideRelease, then: "succeeded", script: func(*sim.Script) {}, more: []string{"release", "hold"}},
		{reason: pawl.ReviewSettleOverdue, decision: pawl.DecideCharge, then: "succeeded", upstream: "bills", script: func(s *sim.Script) {
			s.Settles, s.Settle = sim.SettleByRead, 1000*time.Hour
		}},
		{reason: pawl.ReviewDeadLetter, decision: pawl.DecideRetry, publish: "report.refused"},
		{reason: pawl.ReviewCompletionOverdue, decision: pawl.DecideDiscard, publish: "report.unfinished"},
		{reason: pawl.ReviewUnconfirmed, decision: pawl.DecideCreated, then: "succeeded", within: soon, script: func(s *sim.Script) {
			silent(s)
			s.Create, s.CreateTimes = sim.CreateLost, 1
		}, field: func(w *town, op string) string { return taskOf(w, provider, op) }},
		{reason: pawl.ReviewOrphan, decision: pawl.DecideAttach, then: "succeeded", script: func(s *sim.Script) {
			s.Create, s.CreateTimes = sim.CreateLost, 1
			s.Callbacks[0].Fault = sim.CallbackNoToken
		}, field: func(_ *town, op string) string { return op }},
		{reason: pawl.ReviewCapture, decision: pawl.DecideKeep, then: "succeeded", script: func(s *sim.Script) { s.Result = sim.LinkGone }},
		{reason: pawl.ReviewLateSuccess, decision: pawl.DecideAccept, then: "succeeded", within: soon, script: func(s *sim.Script) {
			const late = 5 * 30 * time.Second // Half a minute of real time.
			s.End, s.Settle, s.Callbacks[0].At = late, late, late
			s.Cancel, s.CancelTimes = sim.CancelIgnored, 9
		}},
		{reason: pawl.ReviewDeadlineUnread, decision: pawl.DecideExpired, then: "expired", within: soon, script: func(s *sim.Script) {
			silent(s)
			s.Reads, s.ReadTimes = sim.ReadFailed, 1000
		}},
		{reason: pawl.ReviewTaskUnknown, decision: pawl.DecideExpired, then: "expired", script: func(s *sim.Script) {
			silent(s)
			s.Reads, s.ReadTimes = sim.ReadNotFound, 1000
		}},
	}
}

// taskOf is the task that a provider made for an operation without telling.
func taskOf(w *town, provider *sim.Server, op string) string {
	w.Helper()
	for _, page := range provider.Snapshot().Operations {
		if len(page.Creates) > 0 && page.Creates[0].ClientRef == op && len(page.Tasks) > 0 {
			return page.Tasks[0].ID
		}
	}
	w.Fatalf("the provider has no task of %s", op)
	return ""
}

// Every reason of reviews is opened by a real fault, found from the overview,
// understood and decided in the page, and what was decided is seen (7-rules §6).
func TestEveryReasonInThePage(t *testing.T) {
	t.Parallel()
	var scripts []sim.Script
	for _, f := range faults(nil) {
		s := sim.Script{
			Dialect: sim.Native, Final: pawl.Succeeded, Price: pawl.AmountScale, Cost: 6 * pawl.AmountScale / 10, Start: time.Second, End: 3 * time.Second, Settle: 3 * time.Second,
			Callbacks: []sim.Callback{{Event: "end", Kind: sim.TellsEnd, At: 3 * time.Second}},
		}
		if f.script != nil {
			f.script(&s)
		}
		scripts = append(scripts, s)
	}
	p, at := provider(t, sim.NewScripts(sim.Options{NoLookup: true}, scripts...), sim.Config{Speed: 5})
	upstream := fmt.Sprintf("{preset: sim, base_url: %q, key: %q, webhook_keys: [%q], deadline: 1h, timeout: 2s, grace: 1s, settle_within: %%s, owner: media team, read: {first: 300ms, max: 1s, rate: 50}}",
		at, p.Key(), p.Secret(sim.Native))
	w := newTown(t, "egress: {allow: [127.0.0.0/8]}\ntenants: {default: {account: {currency: USD, credit: \"1000\"}}}\nupstreams:\n  sim: "+
		fmt.Sprintf(upstream, "1h")+"\n  bills: "+fmt.Sprintf(upstream, "1s")+"\n")
	var mended atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/report.refused" && !mended.Load() {
			rw.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(receiver.Close)
	w.call(http.MethodPost, "/v1/endpoints", fmt.Sprintf(`{"url":"%s/report.refused","types":["report.refused"]}`, receiver.URL))
	w.call(http.MethodPost, "/v1/endpoints", fmt.Sprintf(`{"url":"%s/report.unfinished","types":["report.unfinished"],"complete_within":"1s"}`, receiver.URL))
	all := faults(p)
	ops := make([]string, len(all))
	seen := map[pawl.Reason]bool{}
	for n, f := range all {
		seen[f.reason] = true
		more := f.more
		if f.within > 0 {
			more = append(more, "deadline", time.Now().Add(f.within).UTC().Format(time.RFC3339Nano))
		}
		switch {
		case f.publish != "":
			w.call(http.MethodPost, "/v1/events", fmt.Sprintf(`{"id":%q,"type":%q,"data":{}}`, strings.ReplaceAll(f.publish, ".", "-"), f.publish))
		case f.upstream != "":
			ops[n] = w.order(f.upstream, n, more...)
		default:
			ops[n] = w.order("sim", n, more...)
		}
	}
	for reason := pawl.ReviewUnconfirmed; reason <= pawl.ReviewBodyDiffers; reason++ {
		if !seen[reason] {
			t.Errorf("no fault opens %s", reason)
		}
	}
	tab := w.operator()
	for n, f := range all {
		if f.reason == pawl.ReviewDeadLetter {
			mended.Store(true)
		}
		w.decide(tab, f, ops[n], n == 0)
	}
}

// decide walks from the overview to the review, decides it, and looks at what
// came of it.
func (w *town) decide(tab *Tab, f fault, op string, whole bool) {
	w.Helper()
	guide := f.reason.Guide()
	w.until(guide.Reason+" is not opened", func() bool {
		items, _ := w.call(http.MethodGet, "/v1/reviews?reason="+guide.Reason, "")["items"].([]any)
		return len(items) > 0
	})
	tab.Open("/console")
	tab.follow(fmt.Sprintf("#reviews a[href$='reason=%s']", guide.Reason))
	if n := tab.Count("tbody tr[data-id]"); n != 1 {
		w.Errorf("%s: %d reviews in the list", guide.Reason, n)
	}
	tab.follow("tbody tr[data-id] td:first-child a")
	at := tab.Path()
	id := at[strings.LastIndexByte(at, '/')+1:]
	page := html.UnescapeString(tab.Text("#main"))
	for _, words := range []string{guide.Meaning, guide.First, "To be decided"} {
		if !strings.Contains(page, words) {
			w.Errorf("%s: the page does not say %q: %s", guide.Reason, words, page)
		}
	}
	for _, c := range guide.Choices {
		label := tab.Text(fmt.Sprintf("label.choice:has([value=%s])", c.Decision))
		if !strings.Contains(label, c.Effect) || strings.Contains(label, "safe") != c.Safe || strings.Contains(label, "final") == c.Safe {
			w.Errorf("%s: the choice %s reads %q", guide.Reason, c.Decision, label)
		}
	}
	if whole {
		w.handled(tab, id)
	}
	why := "asked about " + guide.Reason
	tab.Click(fmt.Sprintf("#decide [value=%s]", f.decision))
	if f.field != nil {
		tab.Fill("#decide .asks input", f.field(w, op))
	}
	tab.Fill("#decide [name=reason]", why)
	tab.Submit("#decide form")
	page = tab.Text("#main")
	for _, words := range []string{"decided", strings.ReplaceAll(f.decision, "_", " "), why} {
		if !strings.Contains(page, words) {
			w.Errorf("%s: after the decision the page does not say %q: %s", guide.Reason, words, page)
		}
	}
	if f.then != "" {
		tab.Open("/console/operations/" + op)
		tab.Wait("h1 .state." + f.then)
		if text := tab.Text("#next-steps"); strings.Contains(text, strings.ReplaceAll(guide.Reason, "_", " ")) {
			w.Errorf("%s: the operation still waits for it: %s", guide.Reason, text)
		}
	}
	tab.Open("/console/audit?action=review.resolve&subject=" + id)
	if text := tab.Text("#main"); !strings.Contains(text, why) {
		w.Errorf("%s: the audit says %s", guide.Reason, text)
	}
	tab.Open("/console/reviews?open=false&reason=" + guide.Reason)
	if text := tab.Text(fmt.Sprintf("tr[data-id=%s]", id)); !strings.Contains(text, strings.ReplaceAll(f.decision, "_", " ")) {
		w.Errorf("%s: the list says %s", guide.Reason, text)
	}
}

// handled: a review is given to somebody and remarked on before it is decided.
func (w *town) handled(tab *Tab, id string) {
	w.Helper()
	form := "form[action$=assign]"
	tab.Run(fmt.Sprintf("document.querySelector(%q).closest('details').open = true", form))
	tab.Fill(form+" [name=owner]", "bea")
	tab.act(form, "she knows them")
	tab.act("form[action$=note]", "both tasks cost money")
	if text := tab.Text("#main"); !strings.Contains(text, "bea") || !strings.Contains(text, "both tasks cost money") {
		w.Errorf("assigned and noted: %s", text)
	}
	if r := w.call(http.MethodGet, "/v1/reviews/"+id, ""); r["owner"] != "bea" || r["due_at"] == nil {
		w.Errorf("assigned: %v", r)
	}
}
