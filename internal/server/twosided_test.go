package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// Callbacks that were lost are found in the provider's list and read on request,
// a task that nobody here created is reported and never adopted (1-product E3,
// 7-rules R25).
func TestTwoSided(t *testing.T) {
	const n = 25
	w := newWorld(t, "sim")
	ops := make(map[string]string)
	for i := range n {
		op, c := w.running(fmt.Sprint("k-", i))
		ops[c.task] = op
	}
	end := func(task string) said {
		return said{task: task, state: "succeeded", cost: "0.1", settled: true, result: `{"ok":true}`}
	}
	for i := range n {
		task := fmt.Sprint("task-", i+1)
		if i < 15 {
			w.provider.say(end(task))
		}
		if i < 12 { // Of 15 ends, three are never told.
			w.want(http.StatusAccepted, w.callback("", event{id: "e-" + task, said: end(task)}))
		}
	}
	w.provider.say(end("task-foreign"))
	before := w.timeline(ops["task-15"])

	seen := w.walk("up", "", false)
	want := []string{"foreign_task unknown_task task-foreign", "missing end task-13", "missing end task-14", "missing end task-15"}
	slices.Sort(seen.findings)
	if !slices.Equal(seen.findings, want) || seen.pages != 3 || seen.listed != n+1 || seen.matched != n-3 || len(seen.operations) != n {
		t.Errorf("%+v, want %q", seen, want)
	}
	if got := w.timeline(ops["task-15"]); !slices.Equal(got, before) {
		t.Errorf("looking has changed something: %q", got)
	}
	if reads := len(w.provider.readAt()); reads != 0 {
		t.Errorf("%d reads", reads)
	}

	seen = w.walk("up", "", true)
	want = []string{"foreign_task unknown_task task-foreign", "missing end task-13 due", "missing end task-14 due", "missing end task-15 due"}
	if slices.Sort(seen.findings); !slices.Equal(seen.findings, want) {
		t.Errorf("%q, want %q", seen.findings, want)
	}
	for _, task := range []string{"task-13", "task-14", "task-15"} {
		w.state(ops[task], "succeeded")
		w.line(ops[task], "missed end", 1)
		w.line(ops[task], "read applied state", 1)
	}
	w.line(ops["task-1"], "missed end", 0)
	seen = w.walk("up", "", true)
	if !slices.Equal(seen.findings, want[:1]) || len(w.provider.readAt()) != 3 {
		t.Errorf("a second time: %q, %d reads", seen.findings, len(w.provider.readAt()))
	}
	if made := len(w.provider.created()); made != n || len(w.get("/v1/operations?task_id=task-foreign").items()) != 0 {
		t.Errorf("%d creates; or the foreign task was adopted", made)
	}
}

// Pages take their turns among the reads of the upstream, within its rate.
func TestTwoSidedKeepsToTheRate(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		for i := range 60 {
			w.provider.say(said{task: fmt.Sprintf("other-%02d", i), state: "processing"})
		}
		w.walk("up", "", false)
		asked := w.provider.listed()
		if len(asked) != 6 || within(asked, time.Second) > 2 {
			t := asked[len(asked)-1].Sub(asked[0])
			w.Errorf("%d pages in %s, %d in a second", len(asked), t, within(asked, time.Second))
		}
	}, func(_ *config.Config, up *config.Upstream) { up.Read.Rate = 2 })
}

// What the provider answers amiss is told, and ends nothing else.
func TestTwoSidedRefused(t *testing.T) {
	w := newWorld(t, "sim")
	ask := func() reply { return w.call(http.MethodPost, "/v1/sources/up/reconcile", map[string]any{}) }
	list := func(a answer) {
		w.provider.mu.Lock()
		defer w.provider.mu.Unlock()
		w.provider.listing = func(int, url.Values) *answer { return &a }
	}
	list(answer{status: 500})
	if r := w.want(http.StatusBadGateway, ask()); r.at("reason") != "list_unreadable" || !strings.Contains(r.at("detail"), "page 1 of the list: status") {
		t.Error(r.body)
	}
	list(answer{status: 429, retryAfter: "3"})
	if r := w.want(http.StatusServiceUnavailable, ask()); r.at("reason") != "list_busy" || r.header.Get("Retry-After") != "4" {
		t.Error(r.header, r.body)
	}
	list(answer{status: 200, body: map[string]any{"items": []any{}, "next": "x"}})
	r := w.want(http.StatusOK, ask())
	r = w.want(http.StatusBadGateway, w.call(http.MethodPost, "/v1/sources/up/reconcile", map[string]any{"after": r.at("next")}))
	if !strings.Contains(r.at("detail"), "page 2 of the list: loop") {
		t.Error(r.body)
	}
}

// The provider lists every try of its callbacks, the youngest first: an event of
// which one try arrived is not missing, the list is left at the time that is
// asked for, and once the gap is filled nothing is found (O-023).
func TestO023ReconcilingByDeliveryList(t *testing.T) {
	w := newWorld(t, "sim", withList(`{path: /list, items: /tries, fields: {task: /task, event: /event, state: /state, time: /at}, paging: {param: page, next: /next, newest_first: true}}`))
	ops := make(map[string]string)
	for i := range 3 {
		op, c := w.running(fmt.Sprint("k-", i))
		ops[c.task] = op
		w.provider.say(said{task: c.task, state: "succeeded", result: `{"ok":true}`, settled: true})
	}
	for _, g := range []string{"1", "3"} {
		w.want(http.StatusAccepted, w.callback("", event{id: "G-" + g, said: said{task: "task-" + g, state: "succeeded", result: `{"ok":true}`, settled: true}}))
	}
	now := time.Now().UTC().Truncate(time.Second)
	type try struct {
		Task  string    `json:"task"`
		Event string    `json:"event"`
		State string    `json:"state"`
		OK    bool      `json:"ok"`
		At    time.Time `json:"at"`
	}
	at := func(n string, ok bool, ago time.Duration) try {
		return try{"task-" + n, "G-" + n, "succeeded", ok, now.Add(-ago)}
	}
	tries := []try{at("3", false, 0), at("3", true, time.Minute), at("1", true, 2*time.Minute), at("2", false, 3*time.Minute), at("1", false, 4*time.Minute), at("1", false, 5*time.Minute)}
	// 40 pages of two, of which all but these are older than what is wanted.
	for i := len(tries); i < 80; i++ {
		tries = append(tries, try{"task-of-old", fmt.Sprint("old-", i), "succeeded", false, now.Add(-time.Duration(i) * time.Hour)})
	}
	w.provider.listing = func(_ int, q url.Values) *answer {
		page, _ := strconv.Atoi(q.Get("page"))
		return &answer{status: 200, body: map[string]any{"tries": tries[2*page : 2*page+2], "next": page + 1}}
	}
	since := now.Add(-time.Hour).Format(time.RFC3339)
	seen := w.walk("up", since, true)
	if want := []string{"missing end task-2 G-2 due"}; !slices.Equal(seen.findings, want) || seen.pages != 4 || seen.listed != 6-seen.repeated {
		t.Errorf("%+v, want %q", seen, want)
	}
	w.state(ops["task-2"], "succeeded")
	w.line(ops["task-2"], "missed end", 1)
	for _, task := range []string{"task-1", "task-3"} {
		w.line(ops[task], "read applied state", 0)
	}
	if seen = w.walk("up", since, true); len(seen.findings) != 0 || len(w.provider.readAt()) != 1 {
		t.Errorf("a second time: %q, %d reads", seen.findings, len(w.provider.readAt()))
	}
}

// A provider tells its times in seconds, and three jobs ended in one: on pages of
// two, and with the node dead after the first page, all three are handled, each
// once, and a walk from that second on sees them all again (O-061). Where the
// cursor itself is a time, pages overlap, and what no page can come to is an error.
func TestO061ListCursorOfOneSecond(t *testing.T) {
	const second = "2026-03-01T12:00:00Z"
	fields := "path: /list, items: /jobs, fields: {task: /task, state: /state, time: /updated_at}, paging: "
	for name, c := range map[string]struct {
		list string
		size int
		// strictly: only what is newer than the cursor is told.
		strictly bool
		failed   string
	}{
		"a page token":                {"{param: page, next: /next, since_param: updated_since}", 2, false, ""},
		"a time":                      {"{param: updated_since, last: /updated_at, overlap: 1s, size: 5}", 5, false, ""},
		"a time, strictly":            {"{param: updated_since, last: /updated_at, overlap: 1s, size: 4}", 4, true, ""},
		"more in a second than pages": {"{param: updated_since, last: /updated_at, overlap: 1s, size: 2}", 2, false, "stuck"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "sim", withList("{"+fields+c.list+"}"))
			ops, jobs := w.threeAtOnce(second)
			w.provider.listing = jobsSince(jobs, c.size, c.strictly)
			crashed := false
			crash := func() {
				if !crashed {
					w.kill()
					w.start()
				}
				crashed = true
			}
			if c.failed != "" {
				r := w.call(http.MethodPost, "/v1/sources/up/reconcile", map[string]any{})
				for r.at("next") != "" {
					r = w.call(http.MethodPost, "/v1/sources/up/reconcile", map[string]any{"after": r.at("next")})
				}
				if !strings.HasSuffix(r.at("detail"), c.failed) {
					t.Errorf("%s", r.body)
				}
				return
			}
			seen := w.walk("up", "", true, crash)
			want := []string{"foreign_task unknown_task earlier", "foreign_task unknown_task early", "foreign_task unknown_task late", "missing end task-1 due", "missing end task-2 due", "missing end task-3 due"}
			if slices.Sort(seen.findings); !slices.Equal(seen.findings, want) {
				t.Errorf("%+v, want %q", seen, want)
			}
			for _, op := range ops {
				w.state(op, "succeeded")
				w.line(op, "missed end", 1)
				w.line(op, "read applied state", 1)
			}
			if c.size == 2 && !crashed {
				t.Error("there was one page")
			}
			seen = w.walk("up", second, true)
			if !slices.Equal(seen.findings, want[2:3]) || seen.matched != 3 {
				t.Errorf("again: %+v", seen)
			}
		})
	}
}

// threeAtOnce are three operations whose tasks ended in one second, and the jobs
// that the provider lists: two before and one behind them.
func (w *world) threeAtOnce(second string) (ops []string, jobs []map[string]string) {
	w.Helper()
	for task, at := range map[string]string{"earlier": "58", "early": "59"} {
		jobs = append(jobs, map[string]string{"task": task, "state": "processing", "updated_at": "2026-03-01T11:59:" + at + "Z"})
	}
	slices.SortFunc(jobs, func(a, b map[string]string) int { return strings.Compare(a["updated_at"], b["updated_at"]) })
	for i := range 3 {
		op, c := w.running(fmt.Sprint("k-", i))
		ops = append(ops, op)
		w.provider.say(said{task: c.task, state: "succeeded", result: `{"ok":true}`, settled: true})
		jobs = append(jobs, map[string]string{"task": c.task, "state": "succeeded", "updated_at": second})
	}
	return ops, append(jobs, map[string]string{"task": "late", "state": "processing", "updated_at": "2026-03-01T12:00:01Z"})
}

// jobsSince lists jobs from a time on, by page where a page is asked for.
func jobsSince(jobs []map[string]string, size int, strictly bool) func(int, url.Values) *answer {
	return func(_ int, q url.Values) *answer {
		from, _ := strconv.Atoi(q.Get("page"))
		since := q.Get("updated_since")
		page := []map[string]string{}
		for i, job := range jobs {
			switch {
			case i < from, job["updated_at"] < since, strictly && job["updated_at"] == since:
			case len(page) == size:
				return &answer{status: 200, body: map[string]any{"jobs": page, "next": i}}
			default:
				page = append(page, job)
			}
		}
		return &answer{status: 200, body: map[string]any{"jobs": page}}
	}
}

// A sender's list of its events tells what never came; nothing is made of the list
// itself.
func TestTwoSidedOfAGenericSource(t *testing.T) {
	var got []*http.Request
	events := []string{"evt_1", "evt_2", "evt_3"}
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r)
		at := 1 + slices.Index(events, r.URL.Query().Get("starting_after"))
		_, _ = fmt.Fprintf(w, `{"data":[{"id":%q,"created":%d,"type":"invoice.paid"}],"has_more":%v}`, events[at], time.Now().Unix(), at < 2)
	}))
	t.Cleanup(list.Close)
	w := newWorld(t, "sim", payments(t, `, list: {url: "`+list.URL+`/v1/events?type=all", key: sk_list, items: /data, rate: 100, fields: {event: /id, time: /created}, paging: {param: starting_after, last: /id, more: /has_more}}`))
	w.took("evt_1")
	w.took("evt_3")
	seen := w.walk("payments", "", true)
	if !slices.Equal(seen.findings, []string{"missing event evt_2"}) || seen.pages != 3 || seen.matched != 2 {
		t.Errorf("%+v", seen)
	}
	if n := len(w.get("/v1/events?source=payments").items()); n != 2 {
		t.Errorf("%d events are stored: one was made up", n)
	}
	if got[0].Header.Get("Authorization") != "Bearer sk_list" || got[0].URL.Query().Get("type") != "all" {
		t.Errorf("asked by %v", got[0].URL)
	}
	w.took("evt_2")
	if seen = w.walk("payments", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), false); len(seen.findings) != 0 {
		t.Errorf("%+v", seen)
	}
}
