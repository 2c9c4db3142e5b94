package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// readable is a server with unfinished operations; what becomes of each when
// it is read is in its id.
type readable struct {
	mu    sync.Mutex
	ids   []string // newest first
	asked map[string]time.Time
	order []string
	query []string
	// onAsk is told each operation that is asked for.
	onAsk func(id string)
}

const never = "2026-01-01T00:00:00.000000Z"

func (s *readable) op(id string) string {
	state, version, next := "running", 2, `"`+never+`"`
	if at, ok := s.asked[id]; ok {
		switch read := time.Since(at) > 100*time.Millisecond; {
		case !read && strings.HasPrefix(id, "old-1"):
			next = "null" // It is being read already.
		case !read:
		case strings.HasPrefix(id, "done"):
			state, version, next = "succeeded", 3, "null"
		case strings.HasPrefix(id, "stuck"):
			next = `"` + never + `"`
		case strings.HasPrefix(id, "old-1"):
			next = `"2025-01-01T00:00:02.000000Z"` // Sooner than was planned before.
		default:
			next = `"2026-01-01T00:00:02.000000Z"`
		}
	}
	return fmt.Sprintf(`{"id":%q,"state":%q,"version":%d,"upstream":"up","task_id":"task-%s","next_check_at":%s,"created_at":%q}`, id, state, version, id, next, never)
}

// ServeHTTP implements [http.Handler].
func (s *readable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	parts := strings.Split(r.URL.Path, "/")
	switch {
	case r.Method == http.MethodPost:
		id := parts[3]
		if len(parts) != 5 || parts[4] != "reconcile" {
			reply(w, http.StatusTeapot, `{"title":"only reads are expected"}`)
			return
		}
		if strings.HasPrefix(id, "bare") {
			reply(w, http.StatusConflict, `{"title":"no","reason":"nothing_to_read"}`)
			return
		}
		s.asked[id] = time.Now()
		s.order = append(s.order, id)
		if s.onAsk != nil {
			s.onAsk(id)
		}
		reply(w, http.StatusAccepted, s.op(id))
	case len(parts) == 5:
		line := ""
		if strings.HasPrefix(parts[3], "deaf") {
			line = `,{"kind":"read","reason":"unreachable"}`
		}
		reply(w, http.StatusOK, `{"items":[{"kind":"read","reason":"not_found"},{"kind":"read_requested"}`+line+`]}`)
	case q.Get("task_id") != "":
		reply(w, http.StatusOK, `{"items":[`+s.op(strings.TrimPrefix(q.Get("task_id"), "task-"))+`]}`)
	default:
		s.query = append(s.query, r.URL.RawQuery)
		from := 0
		if token := q.Get("page_token"); token != "" {
			_, _ = fmt.Sscan(token, &from)
		}
		to, next := min(from+3, len(s.ids)), ""
		if to < len(s.ids) {
			next = fmt.Sprint(to)
		}
		var items []string
		for _, id := range s.ids[from:to] {
			items = append(items, s.op(id))
		}
		reply(w, http.StatusOK, `{"items":[`+strings.Join(items, ",")+`],"next_page_token":"`+next+`"}`)
	}
}

func newReadable(ids ...string) *readable {
	slices.Reverse(ids)
	return &readable{ids: ids, asked: map[string]time.Time{}}
}

// The report says what was read, what changed, what could not be read and what
// has no task; the oldest come first and no more than the limit (1-product E2).
func TestReconcile(t *testing.T) {
	s := newReadable("old-1", "done-2", "bare-3", "deaf-4", "old-5", "stuck-6", "done-7", "old-8")
	w := newWorld(t, fake(t, s.ServeHTTP))
	began := time.Now()
	r := w.run("reconcile", "--json", "--limit", "7", "--upstream", "up", "--older-than", "1h", "--rate", "20", "--wait", "1s")
	r.want(t, ExitFailed, "", "")
	var report reconcileReport
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatal(err)
	}
	ids := func(all []reconciled) string {
		var words []string
		for _, one := range all {
			words = append(words, strings.TrimSpace(one.ID+" "+one.Reason))
		}
		return strings.Join(words, ", ")
	}
	if report.Found != 7 || report.Read != 4 || report.Unchanged != 2 || report.Interrupted || report.NotAsked != 0 {
		t.Errorf("%+v", &report)
	}
	if len(report.Changed) != 2 || report.Changed[0].From.String() != "running" || report.Changed[0].To.String() != "succeeded" || ids(report.Changed) != "done-2, done-7" {
		t.Errorf("changed %+v", report.Changed)
	}
	if got := ids(report.Failed); got != "deaf-4 unreachable, stuck-6 not read within 1s: the upstream's reads may be paused or at their limit" {
		t.Errorf("failed %s", got)
	}
	if got := ids(report.Skipped); got != "bare-3 nothing_to_read" {
		t.Errorf("skipped %s", got)
	}
	if want := []string{"old-1", "done-2", "deaf-4", "old-5", "stuck-6", "done-7"}; !slices.Equal(s.order, want) {
		t.Errorf("asked for %v, want %v", s.order, want)
	}
	if took := time.Since(began); took < 6*50*time.Millisecond {
		t.Errorf("seven were asked for in %s, at 20 a second", took)
	}
	if q := s.query[0]; !strings.Contains(q, "created_before=2026-05-28T19%3A26%3A40Z") || !strings.Contains(q, "unfinished=true") || !strings.Contains(q, "upstream=up") {
		t.Errorf("query %s", q)
	}
	w = newWorld(t, fake(t, newReadable("done-7", "old-8", "new-9").ServeHTTP))
	w.run("reconcile", "--limit", "2").want(t, ExitDone, "changed  done-7  running -> succeeded\n2 found, 2 read: 1 changed, 1 unchanged; 0 failed, 0 skipped\n", "")
}

func TestReconcileDryRun(t *testing.T) {
	s := newReadable("old-1", "done-2")
	w := newWorld(t, fake(t, s.ServeHTTP))
	w.run("reconcile", "--dry-run").want(t, ExitDone, "old-1", "")
	w.run("reconcile", "--dry-run", "--json").want(t, ExitDone, `"items":[{"created_at":`, "")
	if len(s.order) != 0 {
		t.Errorf("a dry run asked for %v", s.order)
	}
	w = newWorld(t, fake(t, newReadable().ServeHTTP))
	w.run("reconcile", "--dry-run").want(t, ExitDone, "", "nothing found")
	w.run("reconcile").want(t, ExitDone, "0 found, 0 read", "")
}

// Ctrl-C ends the asking; the report says what was not asked for.
func TestReconcileInterrupted(t *testing.T) {
	s := newReadable("stuck-1", "stuck-2", "stuck-3", "stuck-4")
	w := newWorld(t, "")
	w.signals = make(chan os.Signal, 2)
	s.onAsk = func(string) {
		if len(s.order) == 2 {
			w.signals <- os.Interrupt
		}
	}
	w.env["PAWL_SERVER"] = fake(t, s.ServeHTTP)
	r := w.run("reconcile", "--json", "--rate", "5")
	r.want(t, ExitFailed, `"interrupted":true`, "2 were not asked for")
	if !strings.Contains(r.stdout, `"not_asked":2`) || len(s.order) != 2 {
		t.Errorf("%d were asked for: %s", len(s.order), r.stdout)
	}
}

func TestReconcileUsage(t *testing.T) {
	for _, bad := range []string{"--limit 0", "--rate 0", "--rate -1", "--rate 1001", "--wait 0s", "--older-than -1s"} {
		newWorld(t, "http://127.0.0.1:1").run(append([]string{"reconcile"}, strings.Fields(bad)...)...).want(t, ExitUsage, "", "")
	}
}
