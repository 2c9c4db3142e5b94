package console

import (
	"net/url"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/store"
)

// A bulk replay is begun from the dead letters: the form leads to a job of the
// server, which can be paused, resumed and ended, and is begun once however often
// the button is pressed.
func TestBulkReplayIsBegunFromItsPage(t *testing.T) {
	s := newStory(t)
	v := s.as("operator")
	v.get("/console/deliveries?state=dead&endpoint=" + s.endpoint).want(200).shows("/console/replays?what=deliveries&amp;endpoint=" + s.endpoint)
	v.get("/console/replays?what=deliveries&endpoint="+s.endpoint).want(200).shows(`name="endpoint" value="`+s.endpoint+`"`, "Count first")
	form := url.Values{"what": {"deliveries"}, "endpoint": {s.endpoint}, "once": {"r-1"}, "reason": {"they are back"}}
	v.post("/console/replays", url.Values{"what": {"deliveries"}, "once": {"r-0"}}).want(400).shows("A reason is missing")
	first := v.post("/console/replays", form).want(303).header.Get("Location")
	if again := v.post("/console/replays", form).want(303).header.Get("Location"); again != first || !strings.HasPrefix(first, "/console/replays/rpl_") {
		t.Errorf("pressed twice: %s and %s", first, again)
	}
	form.Set("dry_run", "true")
	if dry := v.post("/console/replays", form).want(303).header.Get("Location"); dry == first {
		t.Error("the count is the replay")
	} else {
		v.get(dry).want(200).shows("Count for a replay", "Nothing was changed")
	}
	v.post(first+"/pause", url.Values{"reason": {"too fast"}}).want(303)
	v.get(first).want(200).shows("paused", "endpoint "+s.endpoint, "Let it go on")
	v.post(first+"/resume", url.Values{"reason": {"go on"}}).want(303)
	v.post(first+"/cancel", url.Values{"reason": {"wrong one"}}).want(303)
	v.get(first).want(200).shows("canceled").hides("Pause it")
	v.get("/console/replays").want(200).shows(first)
	s.as("other").get(first).want(404)
	s.as("reader").get(first).want(200).hides("/cancel")
	s.as("reader").post("/console/replays", form).want(403)
}

// Notes of a review are kept beside it; who may not act adds none.
func TestReviewsAreNotedAndDue(t *testing.T) {
	s := newStory(t)
	v := s.as("admin")
	page := "/console/reviews/" + s.orphan
	v.get(page).want(200).shows("First:", "To be decided")
	v.post(page+"/note", url.Values{"reason": {"asked <b>them</b>"}}).want(303)
	v.get(page).want(200).shows("asked &lt;b&gt;them&lt;/b&gt;")
	s.as("reader").post(page+"/note", url.Values{"reason": {"x"}}).want(403)
	v.get("/console/reviews?overdue=true").want(200).hides(s.orphan)
}

// What an operation holds is erased from its page, by admin keys alone.
func TestOperationIsErasedFromItsPage(t *testing.T) {
	s := newStory(t)
	page := "/console/operations/" + s.failed
	form := url.Values{"operation": {s.failed}, "reason": {"request 17"}}
	s.as("operator").post(page+"/erase", form).want(403)
	v := s.as("admin")
	v.get(page + "/input").want(200).shows("canary-prompt")
	v.get(page).shows("Erase what it holds", page+"/input", "<dt>Tenant</dt><dd>acme</dd>").hides("<dt>Erased</dt>")
	v.post(page+"/erase", form).want(303)
	v.get(page).shows("<dt>Erased</dt>").hides("Erase what it holds", page+"/input")
	v.get(page + "/input").hides("canary-prompt")
	rows, err := s.driver.Audits(t.Context(), store.AuditFilter{Subject: s.failed}, store.Page{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Action == "operation.erase" && strings.Contains(row.Detail, "request 17") {
			return
		}
	}
	t.Errorf("the audit lacks the erasure: %+v", rows)
}

// Nodes are the installation's: admin keys alone see them.
func TestNodesAreForAdmins(t *testing.T) {
	s := newStory(t)
	s.as("admin").get("/console/nodes").want(200).shows("Nodes")
	s.as("operator").get("/console/nodes").want(403)
	s.as("operator").get("/console").want(200).hides("/console/nodes")
}
