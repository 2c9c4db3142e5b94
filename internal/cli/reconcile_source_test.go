package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// comparable is a server whose source lists three pages.
type comparable struct {
	bodies []map[string]any
	// busy is how often it wants to be asked later, broken the page that fails.
	busy, broken int
	events       bool
}

// ServeHTTP implements [http.Handler].
func (s *comparable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		op := func(id, task, submitted string) string {
			return fmt.Sprintf(`{"id":%q,"state":"running","upstream":"up","task_id":%s,"created_at":"2026-05-28T%sZ","submitted_at":"2026-05-28T%sZ"}`, id, task, submitted, submitted)
		}
		reply(w, http.StatusOK, `{"items":[`+strings.Join([]string{
			op("op_young", `"t-young"`, "19:30:00.000000"), op("op_1", `"t-1"`, "19:00:00.000000"), op("op_gone", `"t-gone"`, "18:59:00.000000"),
			op("op_bare", `null`, "18:58:00.000000"), op("op_old", `"t-old"`, "10:00:00.000000"),
		}, ",")+`]}`)
		return
	}
	if s.busy > 0 {
		s.busy--
		w.Header().Set("Retry-After", "0")
		reply(w, http.StatusServiceUnavailable, `{"title":"later","reason":"list_busy"}`)
		return
	}
	text, _ := io.ReadAll(r.Body)
	var body map[string]any
	_ = json.Unmarshal(text, &body)
	s.bodies = append(s.bodies, body)
	if s.broken == len(s.bodies) {
		reply(w, http.StatusBadGateway, `{"title":"The source's list cannot be read","reason":"list_unreadable","detail":"page 2 of the list: loop"}`)
		return
	}
	lists := "tasks"
	if s.events {
		lists = "events"
	}
	w.Header().Set("Date", "Thu, 28 May 2026 19:26:40 GMT")
	switch body["after"] {
	case nil:
		reply(w, http.StatusOK, `{"lists":"`+lists+`","listed":2,"matched":1,"items":[{"finding":"missing","reason":"end","task_id":"t-2","event_id":"e-2","upstream_state":"done","operation_id":"op_2","state":"running","read":"due"}],"operations":["op_1","op_2"],"next":"p2"}`)
	case "p2":
		reply(w, http.StatusOK, `{"lists":"`+lists+`","listed":2,"matched":0,"repeated":1,"items":[{"finding":"missing","reason":"end","task_id":"t-2","event_id":"e-2","operation_id":"op_2","state":"running","read":"due"},{"finding":"foreign_task","reason":"unknown_task","task_id":"t-9"}],"operations":["op_2"],"next":"p3"}`)
	default:
		reply(w, http.StatusOK, `{"lists":"`+lists+`","listed":1,"matched":1,"items":[],"operations":["op_1"]}`)
	}
}

// The report names each difference once, from both sides (1-product E3).
func TestReconcileSource(t *testing.T) {
	s := &comparable{busy: 2}
	w := newWorld(t, fake(t, s.ServeHTTP))
	r := w.run("reconcile", "--source", "up", "--since", "2026-05-28T18:00:00Z", "--fetch", "--json")
	r.want(t, ExitFailed, "", "")
	var report twoSidedReport
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if !report.Complete || report.Pages != 3 || report.Listed != 5 || report.Matched != 2 || report.Repeated != 1 || len(report.Missing) != 1 || len(report.ForeignTask) != 1 {
		t.Errorf("%s", r.stdout)
	}
	// What was submitted after the walk began, is older than was asked for or has no
	// task is not looked for.
	if report.Checked != 2 || len(report.TaskMissing) != 1 || report.TaskMissing[0].Operation != "op_gone" {
		t.Errorf("%s", r.stdout)
	}
	for i, after := range []any{nil, "p2", "p3"} {
		if b := s.bodies[i]; b["after"] != after || b["fetch"] != true || b["since"] != "2026-05-28T18:00:00.000000Z" {
			t.Errorf("page %d was asked for with %v", i+1, b)
		}
	}

	w = newWorld(t, fake(t, (&comparable{events: true}).ServeHTTP))
	w.run("reconcile", "--source", "up").want(t, ExitFailed,
		"missing  t-2  e-2  op_2  running  end  listed as done  read due\nforeign_task  t-9  unknown_task\n5 listed on 3 pages: 2 matched, 1 missing, 1 foreign; 0 of ours looked for, 0 not there\n", "")
}

// A list that is not read to its end is told as far as it was, and looks for
// nothing of ours in it.
func TestReconcileSourceIncomplete(t *testing.T) {
	w := newWorld(t, fake(t, (&comparable{broken: 2}).ServeHTTP))
	r := w.run("reconcile", "--source", "up", "--json")
	r.want(t, ExitFailed, `"complete":false`, "not compared to its end")
	if !strings.Contains(r.stdout, "page 2 of the list: loop") || !strings.Contains(r.stdout, `"checked":0`) {
		t.Error(r.stdout)
	}
	w = newWorld(t, fake(t, (&comparable{}).ServeHTTP))
	w.run("reconcile", "--source", "up", "--pages", "2").want(t, ExitFailed, "", "more than 2 pages")
	w = newWorld(t, fake(t, (&comparable{broken: 1}).ServeHTTP))
	w.run("reconcile", "--source", "up").want(t, ExitFailed, "", "page 2 of the list: loop")
}

// Entries that cannot be read were not compared: that is told, and is no success
// (a list whose fields are described wrongly has nothing else).
func TestReconcileSourceUnreadable(t *testing.T) {
	w := newWorld(t, fake(t, func(rw http.ResponseWriter, _ *http.Request) {
		reply(rw, http.StatusOK, `{"lists":"events","listed":0,"matched":0,"unreadable":7,"items":[]}`)
	}))
	w.run("reconcile", "--source", "up").want(t, ExitFailed, "0 listed on 1 pages", "without a usable id, which were not compared: 7")
}

func TestReconcileSourceUsage(t *testing.T) {
	for _, bad := range []string{"--fetch", "--since 1h", "--source up --since noon", "--source up --dry-run", "--source up --upstream up", "--source up --pages 0"} {
		newWorld(t, "http://127.0.0.1:1").run(append([]string{"reconcile"}, strings.Fields(bad)...)...).want(t, ExitUsage, "", "")
	}
}
