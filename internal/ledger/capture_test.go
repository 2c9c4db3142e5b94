package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// linked is a success whose result has these links, in a list.
func linked(task string, links ...string) Observation {
	o := obs(task, pawl.Succeeded)
	o.Result = `{"files":["` + strings.Join(links, `","`) + `"]}`
	return o
}

// saved leases an artifact and records how its capture ended.
func (w *world) saved(up Upstream, a Artifact, outcome ArtifactOutcome) Outcome {
	w.t.Helper()
	w.now = max(w.now, w.artifacts[a.ID].DueAt)
	l, ok := w.do(LeaseArtifact{Artifact: a.ID, For: time.Minute}).Value.(Artifact)
	if !ok {
		w.t.Fatalf("artifact %d is not due", a.Number)
	}
	return w.do(record(up, l, outcome))
}

func record(up Upstream, l Artifact, outcome ArtifactOutcome) RecordArtifact {
	return RecordArtifact{
		Up: up, Operation: l.Operation, Artifact: l.ID, Fence: l.Lease, Outcome: outcome, Size: 3, SHA256: digest("abc"),
		ContentType: "video/mp4", Message: "status 403: 0 of 3 bytes",
	}
}

// link is the kept link of an artifact as it is now.
func (w *world) link(a Artifact) string {
	for _, p := range w.payloads {
		if p.ID == (PayloadID{w.artifacts[a.ID].Link, LinkPayload}) {
			return p.Body
		}
	}
	return ""
}

func (w *world) result(id pawl.ID) string {
	for _, p := range w.payloads {
		if p.ID == (PayloadID{w.ops[id].Result, ResultPayload}) {
			return p.Body
		}
	}
	return ""
}

// numbered are an operation's artifacts in the order of its result.
func (w *world) numbered(id pawl.ID) []Artifact {
	all := w.artifactsOf(id)
	sortArtifacts(all)
	return all
}

// A success says that its files are pending, and one event says when all are
// captured (1-product G1, 7-rules §3); no row but the links' own holds a link.
func TestCapturedArtifacts(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	w.event(up, op.ID, "e", linked(op.Task, "https://cdn.example/a?sig=LEAK", "https://cdn.example/b?sig=LEAK", "https://cdn.example/a?sig=LEAK"))
	all := w.numbered(op.ID)
	if len(all) != 2 {
		t.Fatalf("%d artifacts", len(all))
	}
	one, two := all[0].ID.Text(pawl.PrefixArtifact), all[1].ID.Text(pawl.PrefixArtifact)
	expect(t, "result", w.result(op.ID), `{"files":["`+one+`","`+two+`","`+one+`"]}`)
	expect(t, "link", w.link(all[1]), "https://cdn.example/b?sig=LEAK")
	w.saved(up, all[0], ArtifactStored)
	expect(t, "events after the first", strings.Join(w.types(op.ID), " "), "operation.running operation.succeeded")
	w.saved(up, all[1], ArtifactStored)
	expect(t, "events", strings.Join(w.types(op.ID), " "), "operation.running operation.succeeded operation.artifacts.ready")
	for _, e := range sortedEvents(w.facts(op.ID).Outbound) {
		v, err := e.Data("", "")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{pawl.TypeSucceeded: "pending", pawl.TypeArtifacts: "captured"}[e.Type]
		if want != "" && (len(v.Artifacts) != 2 || v.Artifacts[0].State != want || v.Artifacts[1].State != want) {
			t.Errorf("%s: %+v", e.Type, v.Artifacts)
		}
	}
	w.withoutLinks(t)
	w.sound()
}

// withoutLinks looks for links in everything but their own payloads and the raw
// bodies, which are evidence.
func (w *world) withoutLinks(t *testing.T) {
	t.Helper()
	for _, p := range w.payloads {
		if p.ID.Kind != LinkPayload && p.ID.Kind != BodyPayload && strings.Contains(p.Body, "LEAK") {
			t.Errorf("a payload of kind %d: %s", p.ID.Kind, p.Body)
		}
	}
	rows := fmt.Sprintf("%+v", []any{w.ops, w.artifacts, w.reviews, w.history, w.audits, w.deliveries})
	for _, e := range w.events {
		rows += fmt.Sprintf("%+v", e)
	}
	if at := strings.Index(rows, "LEAK"); at >= 0 {
		t.Errorf("a row: …%s", rows[max(0, at-80):at])
	}
}

// A copy that an old lease made is taken, its failure is not (7-rules §4).
func TestLateCaptures(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	w.event(up, op.ID, "e", linked(op.Task, "https://cdn.example/a"))
	a := w.numbered(op.ID)[0]
	first := w.do(LeaseArtifact{Artifact: a.ID, For: time.Minute}).Value.(Artifact)
	expect(t, "leased twice", w.do(LeaseArtifact{Artifact: a.ID, For: time.Minute}).Reason, "not_due")
	w.tick(2 * time.Minute)
	second := w.do(LeaseArtifact{Artifact: a.ID, For: time.Minute}).Value.(Artifact)
	expect(t, "a late failure", w.do(record(up, first, ArtifactGone)).Reason, "old_lease")
	expect(t, "a late renewal", w.do(RenewArtifact{Artifact: a.ID, Fence: first.Lease, For: time.Hour}).Reason, "not_leased")
	expect(t, "a late copy", w.do(record(up, first, ArtifactStored)).Reason, "captured")
	expect(t, "the copy of the holder", w.do(record(up, second, ArtifactStored)).Reason, "not_needed")
	expect(t, "key", w.artifacts[a.ID].Key(), ArtifactKey(a.ID, first.Lease))
	w.sound()
}

// A link that has ended is asked for anew, once, by a read of the task; state
// and charge stay (1-product G3, O-075).
func TestO075FreshLink(t *testing.T) {
	for name, tc := range map[string]struct {
		how    ReadOutcome
		fresh  string
		want   pawl.ArtifactState
		events string
	}{
		"a new one":     {ReadObserved, "https://cdn.example/a?t=2", pawl.ArtifactPending, ""},
		"the old one":   {ReadObserved, "https://cdn.example/a?t=1", pawl.ArtifactFailed, " operation.artifacts.failed operation.review.opened"},
		"an ended one":  {ReadObserved, "https://cdn.example/a?t=2&Expires=1700000000", pawl.ArtifactFailed, " operation.artifacts.failed operation.review.opened"},
		"none":          {ReadObserved, "no link", pawl.ArtifactFailed, " operation.artifacts.failed operation.review.opened"},
		"not reachable": {ReadUnreachable, "", pawl.ArtifactFailed, " operation.artifacts.failed operation.review.opened"},
	} {
		t.Run(name, func(t *testing.T) {
			up := upstream()
			w := stage(t)
			op := w.running(up, "a", 10)
			w.event(up, op.ID, "e", linked(op.Task, "https://cdn.example/a?t=1"))
			a := w.numbered(op.ID)[0]
			expect(t, "gone", w.saved(up, a, ArtifactGone).Reason, "fresh_link_wanted")
			reads := 1
			if tc.how != ReadObserved {
				reads = 3
			}
			for range reads {
				op = w.read(up, op.ID, tc.how, linked(op.Task, tc.fresh))
			}
			a = w.artifacts[a.ID]
			expect(t, "state", a.State, tc.want)
			expect(t, "events", strings.TrimPrefix(strings.Join(w.types(op.ID), " "), "operation.running operation.succeeded"), tc.events)
			expect(t, "due again", op.DueAt, pawl.Never)
			expectState(t, "operation", op, pawl.Succeeded)
			expect(t, "charged", w.account().Charged, 10)
			if tc.want == pawl.ArtifactPending {
				expect(t, "link", w.link(a), tc.fresh)
				// It is asked for once: what fails again is a person's.
				expect(t, "gone again", w.saved(up, a, ArtifactGone).Reason, "failed")
			}
			if w.open(op.ID, pawl.ReviewCapture).ID.IsZero() {
				t.Error("nobody is asked")
			}
			w.sound()
		})
	}
}

// What was given up is tried again by a decision, and nothing else is (7-rules
// R32, O-078).
func TestO078CaptureAloneIsRetried(t *testing.T) {
	up := upstream()
	up.Reads = false
	w := stage(t)
	op := w.running(up, "a", 10)
	w.event(up, op.ID, "e", linked(op.Task, "https://cdn.example/a", "https://cdn.example/b"))
	all := w.numbered(op.ID)
	w.saved(up, all[1], ArtifactStored)
	for range 3 {
		expect(t, "503", w.saved(up, all[0], ArtifactAgain).Reason, "retried")
	}
	expect(t, "403", w.saved(up, all[0], ArtifactGone).Reason, "failed")
	r := w.open(op.ID, pawl.ReviewCapture)
	expect(t, "detail", r.Detail, "file 1: status 403: 0 of 3 bytes")
	if out := w.resolve(up, r, pawl.DecideRetry); out.Err != nil {
		t.Fatal(out.Err)
	}
	expect(t, "the one that failed", w.artifacts[all[0].ID].State, pawl.ArtifactPending)
	expect(t, "the other", w.artifacts[all[1].ID].State, pawl.ArtifactCaptured)
	w.saved(up, all[0], ArtifactStored)
	expect(t, "events", strings.Join(w.types(op.ID)[2:], " "),
		"operation.artifacts.failed operation.review.opened operation.review.closed operation.artifacts.ready")
	expect(t, "creates", w.ops[op.ID].Creates, 1)
	expect(t, "reads", w.ops[op.ID].Reads, 0)
	w.sound()
}

// A file that is never what its server declares is fetched five times, with
// waits that grow, and then a person is asked, who may have it tried anew
// (7-rules R32).
func TestMismatchesAreGivenUp(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	w.event(up, op.ID, "e", linked(op.Task, "https://cdn.example/a"))
	a := w.numbered(op.ID)[0]
	for round := range 2 {
		for _, wait := range []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, 64 * time.Second} {
			expect(t, "reason", w.saved(up, a, ArtifactMismatch).Reason, "retried")
			if got := time.Duration(w.artifacts[a.ID].DueAt-w.now) * time.Microsecond; got < wait*9/10 || got > wait*11/10 {
				t.Errorf("a wait of %v, want %v", got, wait)
			}
			if round == 0 {
				// Tries that fail otherwise are not counted.
				expect(t, "503", w.saved(up, a, ArtifactAgain).Reason, "retried")
			}
		}
		expect(t, "the fifth", w.saved(up, a, ArtifactMismatch).Reason, "failed")
		r := w.open(op.ID, pawl.ReviewCapture)
		if r.ID.IsZero() {
			t.Fatal("nobody is asked")
		}
		if out := w.resolve(up, r, pawl.DecideRetry); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
	expect(t, "reads", w.ops[op.ID].Reads, 0)
	w.sound()
}

// A link that ended before the file's turn came is ended without a lease: by one
// read for a fresh link, then by a person (1-product G3).
func TestLinkEndsUntried(t *testing.T) {
	for name, reads := range map[string]bool{"read for a fresh link": true, "no reads": false} {
		t.Run(name, func(t *testing.T) {
			up := upstream()
			up.Reads, up.LinkLifetime = reads, time.Hour
			w := stage(t)
			op := w.running(up, "a", 10)
			w.event(up, op.ID, "e", linked(op.Task, "https://cdn.example/a"))
			a := w.numbered(op.ID)[0]
			end := EndArtifact{Up: up, Operation: op.ID, Artifact: a.ID}
			expect(t, "before its end", w.do(end).Reason, "not_due")
			w.now = a.EndsAt.Add(-time.Second)
			w.do(LeaseArtifact{Artifact: a.ID, For: time.Minute})
			w.now = a.EndsAt
			expect(t, "while it is fetched", w.do(end).Reason, "not_due")
			w.now = a.EndsAt.Add(time.Minute)
			if reads {
				expect(t, "ended", w.do(end).Reason, "fresh_link_wanted")
				expect(t, "while a fresh link is awaited", w.do(end).Reason, "not_due")
				w.read(up, op.ID, ReadObserved, linked(op.Task, "no link"))
			} else {
				expect(t, "ended", w.do(end).Reason, "failed")
			}
			expect(t, "state", w.artifacts[a.ID].State, pawl.ArtifactFailed)
			if w.open(op.ID, pawl.ReviewCapture).ID.IsZero() {
				t.Error("nobody is asked")
			}
			expect(t, "again", w.do(end).Reason, "not_due")
			w.sound()
		})
	}
}

// Tries go on for as long as the link lives, however it is known to end.
func TestCaptureEndsWithItsLink(t *testing.T) {
	at := start.Add(2 * time.Hour).Std()
	for name, tc := range map[string]struct {
		query string
		life  time.Duration
		field pawl.Time
		want  pawl.Time
	}{
		"unknown":           {"", 0, 0, 0},
		"lifetime":          {"", time.Hour, 0, -1},
		"field":             {"", 0, start.Add(90 * time.Minute), start.Add(90 * time.Minute)},
		"S3":                {"?X-Amz-Date=" + at.Add(-time.Hour).Format("20060102T150405Z") + "&X-Amz-Expires=3600&X-Amz-Signature=s", 0, 0, start.Add(2 * time.Hour)},
		"Google":            {"?X-Goog-Date=" + at.Add(-time.Hour).Format("20060102T150405Z") + "&X-Goog-Expires=3600", 0, 0, start.Add(2 * time.Hour)},
		"older S3":          {fmt.Sprintf("?Expires=%d", at.Unix()), 0, 0, start.Add(2 * time.Hour)},
		"Azure":             {"?se=" + strings.ReplaceAll(at.Format(time.RFC3339), ":", "%3A") + "&sig=s", 0, 0, start.Add(2 * time.Hour)},
		"the earliest":      {fmt.Sprintf("?Expires=%d", at.Unix()), 24 * time.Hour, start.Add(3 * time.Hour), start.Add(2 * time.Hour)},
		"what is no moment": {"?Expires=soon&se=later&X-Amz-Date=now&X-Amz-Expires=1", 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			up := upstream()
			up.LinkLifetime, up.Reads = tc.life, false
			w := stage(t)
			op := w.running(up, "a", 10)
			o := linked(op.Task, "https://cdn.example/a"+tc.query)
			o.LinksExpire = tc.field
			w.event(up, op.ID, "e", o)
			a := w.numbered(op.ID)[0]
			if tc.want < 0 {
				tc.want = w.now.Add(tc.life)
			}
			expect(t, "end", a.ExpiresAt, tc.want)
			end := a.ExpiresAt
			if end == 0 {
				end = w.now.Add(24 * time.Hour)
			}
			expect(t, "given up at", a.EndsAt, end)
			tries := 0
			for w.artifacts[a.ID].State == pawl.ArtifactPending {
				w.saved(up, a, ArtifactAgain)
				tries++
			}
			// With waits that double to 5 min, an hour has about 20 tries.
			if w.now > end || w.now < end.Add(-6*time.Minute) || tries < 15 {
				t.Errorf("given up after %d tries at %v, and the link ends at %v", tries, w.now, end)
			}
			w.sound()
		})
	}
}

// Of a held result nothing is told but that there is one, until it is released
// (1-product G4).
func TestHeldResult(t *testing.T) {
	up := upstream()
	w := stage(t)
	out := w.do(Submit{Tenant: tenant, APIKey: apiKey, Key: "k", Fingerprint: digest("k"), Window: time.Hour, Up: up, Input: "{}", Deadline: w.now.Add(time.Hour), Hold: true})
	op := w.create(up, out.Value.(Submitted).Operation.ID, CreateAccepted, "task")
	expect(t, "before the end", w.do(Release{Operation: op.ID}).Reason, "no_result_yet")
	w.event(up, op.ID, "e", linked(op.Task, "https://cdn.example/a?LEAK"))
	a := w.numbered(op.ID)[0]
	w.saved(up, a, ArtifactStored)
	expect(t, "events", strings.Join(w.types(op.ID)[1:], " "), "operation.succeeded operation.review.opened")
	for _, e := range w.facts(op.ID).Outbound {
		if strings.Contains(e.Snapshot, "art_") || !e.Result.IsZero() {
			t.Errorf("%s tells of the result: %s", e.Type, e.Snapshot)
		}
	}
	w.withoutLinks(t)
	expect(t, "release", w.do(Release{Operation: op.ID, Note: "fine"}).Reason, "released")
	expect(t, "events", strings.Join(w.types(op.ID)[3:], " "), "operation.released operation.review.closed operation.artifacts.ready")
	for _, e := range w.facts(op.ID).Outbound {
		if told := e.Version > 4; told != !e.Result.IsZero() {
			t.Errorf("%s, version %d: result %v", e.Type, e.Version, e.Result)
		}
	}
	if !slices.ContainsFunc(w.audits, func(a Audit) bool { return a.Action == "operation.release" && a.Detail == "fine" }) {
		t.Error("nothing in the audit")
	}
	w.sound()
}

// A correction takes the files back with the result, and one to a success brings
// those of the report (7-rules R9).
func TestCorrectedArtifacts(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	w.event(up, op.ID, "e1", obs(op.Task, pawl.Failed))
	w.event(up, op.ID, "e2", linked(op.Task, "https://cdn.example/a?LEAK"))
	expect(t, "artifacts before the decision", len(w.numbered(op.ID)), 0)
	w.withoutLinks(t)
	if out := w.resolve(up, w.open(op.ID, pawl.ReviewConflict), pawl.DecideAccept); out.Err != nil {
		t.Fatal(out.Err)
	}
	all := w.numbered(op.ID)
	if len(all) != 1 {
		t.Fatalf("%d artifacts", len(all))
	}
	expect(t, "result", w.result(op.ID), `{"files":["`+all[0].ID.Text(pawl.PrefixArtifact)+`"]}`)
	expect(t, "link", w.link(all[0]), "https://cdn.example/a?LEAK")
	out := w.do(ResolveOperation{Operation: op.ID, Up: up, From: pawl.Succeeded, Decision: "failed", Note: "broken"})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	expect(t, "state", w.artifacts[all[0].ID].State, pawl.ArtifactDropped)
	expect(t, "lease", w.do(LeaseArtifact{Artifact: all[0].ID, For: time.Minute}).Reason, "not_due")
	expect(t, "shown", len(w.ops[op.ID].ShowArtifacts(w.numbered(op.ID))), 0)
	w.sound()
}

// Only so many links are captured; the others leave the result as well, and a
// person is told (1-product G4).
func TestTooManyLinks(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	var links []string
	for n := range MaxLinks + 2 {
		links = append(links, fmt.Sprintf("https://cdn.example/%d", n))
	}
	w.event(up, op.ID, "e", linked(op.Task, links...))
	expect(t, "artifacts", len(w.numbered(op.ID)), MaxLinks)
	if text := w.result(op.ID); strings.Contains(text, "http") || !strings.HasSuffix(text, `",null,null]}`) {
		t.Errorf("%s", text)
	}
	expect(t, "detail", w.open(op.ID, pawl.ReviewCapture).Detail, "the result has 2 links more than the 64 that are captured")
	w.sound()
}

// Links that are names of members stay apart when they are taken out, however
// many there are: a reader of JSON keeps one of two members of a name.
func TestLinksAsNames(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	o := obs(op.Task, pawl.Succeeded)
	var members []string
	for n := range MaxLinks + 6 {
		members = append(members, fmt.Sprintf(`"https://cdn.example/%d":%d`, n, n))
	}
	o.Result = "{" + strings.Join(members, ",") + "}"
	w.event(up, op.ID, "e", o)
	text := w.result(op.ID)
	got := make(map[string]int)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if _, empty := got[""]; len(got) != MaxLinks+6 || empty || strings.Contains(text, "http") {
		t.Errorf("%d members: %s", len(got), text)
	}
	w.sound()
}

// The link of an unfinished task is none of a result: a preview may stand in its
// place (O-076).
func TestO076TheLastLinkCounts(t *testing.T) {
	up := upstream()
	w := stage(t)
	op := w.running(up, "a", 10)
	preview := linked(op.Task, "https://cdn.example/preview")
	preview.Word, preview.State = "running", pawl.Running
	w.event(up, op.ID, "e1", preview)
	w.event(up, op.ID, "e2", linked(op.Task, "https://cdn.example/final"))
	all := w.numbered(op.ID)
	if len(all) != 1 || w.link(all[0]) != "https://cdn.example/final" {
		t.Errorf("%d artifacts: %s", len(all), w.link(all[0]))
	}
	w.sound()
}
