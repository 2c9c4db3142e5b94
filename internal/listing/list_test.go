package listing

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/egress"
)

// shelf is a provider's list: pages answers a query.
type shelf func(url.Values) (status int, body string)

func (s shelf) list(t *testing.T, spec config.Listing) (List, *egress.Client) {
	t.Helper()
	if err := Check(spec); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := s(r.URL.Query())
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	policy, err := egress.NewPolicy(netip.MustParsePrefix("127.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	return List{Spec: spec, Timeout: 5 * time.Second, Request: func(ctx context.Context, q url.Values) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"?"+q.Encode(), nil)
	}}, egress.NewClient(policy, egress.Options{})
}

// walk reads a list to its end, its cursor through text each time as between two
// processes, and gives the tasks in the order that they were told.
func walk(t *testing.T, l List, client *egress.Client, since pawl.Time, most int) (tasks []string, pages int, reason string) {
	t.Helper()
	var c Cursor
	for pages < most {
		p, err := l.Read(t.Context(), client, c, since)
		if err != nil {
			return tasks, pages, err.(*Failure).Reason
		}
		pages++
		for _, e := range p.Entries {
			tasks = append(tasks, e.Task)
		}
		if p.Next == nil {
			return tasks, pages, ""
		}
		if c, err = ParseCursor(p.Next.Text()); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("no end after %d pages", pages)
	return nil, 0, ""
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// row is an entry that the provider lists.
type row struct {
	Task  string `json:"task"`
	State string `json:"state"`
	At    string `json:"at"`
}

func rows(n int) []row {
	all := make([]row, n)
	for i := range all {
		all[i] = row{fmt.Sprintf("task-%03d", i), "done", noon.Add(-time.Duration(i) * time.Minute).Format(time.RFC3339)}
	}
	return all
}

func body(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

var fields = config.ListFields{Task: "/task", State: "/state", Time: "/at"}

// Each way of paging tells every entry once, in order.
func TestPaging(t *testing.T) {
	all := rows(25)
	cut := func(from int, q url.Values) []row {
		n, _ := strconv.Atoi(q.Get("limit"))
		return all[min(from, 25):min(from+n, 25)]
	}
	for name, c := range map[string]struct {
		how    config.Paging
		serve  shelf
		pages  int
		items  string
		pinned string
	}{
		"token": {config.Paging{Param: "page_token", Next: "/meta/next"}, func(q url.Values) (int, string) {
			from, _ := strconv.Atoi(strings.TrimPrefix(q.Get("page_token"), "t/"))
			m := map[string]any{"items": cut(from, q), "meta": map[string]any{"next": nil}}
			if from+10 < 25 {
				m["meta"] = map[string]any{"next": fmt.Sprintf("t/%d", from+10)}
			}
			return 200, body(m)
		}, 3, "/items", ""},
		"link": {config.Paging{Param: "cursor", Next: "/next"}, func(q url.Values) (int, string) {
			from, _ := strconv.Atoi(q.Get("cursor"))
			next := ""
			if from+10 < 25 {
				next = fmt.Sprintf("http://169.254.169.254/v1/tasks?x=1&cursor=%d", from+10)
			}
			return 200, body(map[string]any{"items": cut(from, q), "next": next})
		}, 3, "/items", ""},
		"last": {config.Paging{Param: "starting_after", Last: "/task", More: "/has_more"}, func(q url.Values) (int, string) {
			from := 1 + slices.IndexFunc(all, func(r row) bool { return r.Task == q.Get("starting_after") })
			return 200, body(map[string]any{"items": cut(from, q), "has_more": from+10 < 25})
		}, 3, "/items", ""},
		"offset, the answer is the array": {config.Paging{Param: "offset", Offset: true}, func(q url.Values) (int, string) {
			from, _ := strconv.Atoi(q.Get("offset"))
			return 200, body(cut(from, q))
		}, 3, "", ""},
		"one page": {config.Paging{}, func(url.Values) (int, string) { return 200, body(map[string]any{"items": all}) }, 1, "/items", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.how.SizeParam, c.how.Size = "limit", 10
			l, client := c.serve.list(t, config.Listing{Items: c.items, Fields: fields, Paging: c.how})
			tasks, pages, reason := walk(t, l, client, 0, 20)
			var want []string
			for _, r := range all {
				want = append(want, r.Task)
			}
			if reason != "" || pages != c.pages || !slices.Equal(tasks, want) {
				t.Errorf("%d pages, %q: %v", pages, reason, tasks)
			}
		})
	}
}

// A list that goes back in time is left at the earliest time that is wanted, and
// nothing older is told.
func TestSince(t *testing.T) {
	all, asked := rows(400), 0
	serve := shelf(func(q url.Values) (int, string) {
		asked++
		from, _ := strconv.Atoi(q.Get("p"))
		return 200, body(map[string]any{"items": all[from : from+10], "next": strconv.Itoa(from + 10), "since": q.Get("since")})
	})
	spec := config.Listing{Items: "/items", Fields: fields, Paging: config.Paging{Param: "p", Next: "/next", NewestFirst: true}}
	l, client := serve.list(t, spec)
	// Minutes 0 to 24 are wanted: 25 entries, on three pages.
	tasks, pages, reason := walk(t, l, client, pawl.TimeOf(noon.Add(-24*time.Minute)), 50)
	if reason != "" || pages != 3 || len(tasks) != 25 || asked != 3 {
		t.Errorf("%d entries on %d pages, %d asked for: %s", len(tasks), pages, asked, reason)
	}
	var got url.Values
	spec.Paging = config.Paging{SinceParam: "created[gte]", Unix: true}
	l, client = shelf(func(q url.Values) (int, string) { got = q; return 200, `{"items":[]}` }).list(t, spec)
	walk(t, l, client, pawl.TimeOf(noon), 1)
	if got.Get("created[gte]") != strconv.FormatInt(noon.Unix(), 10) {
		t.Errorf("asked with %v", got)
	}
}

// byTime is a provider whose cursor is a time, to the second, in pages of size.
func byTime(all []row, size int, strictly bool) shelf {
	return func(q url.Values) (int, string) {
		from := q.Get("updated_since")
		var page []row
		for _, r := range all {
			if len(page) < size && (r.At > from || !strictly && r.At == from) {
				page = append(page, r)
			}
		}
		return 200, body(map[string]any{"items": page})
	}
}

// A cursor that is a time cannot tell entries of one second apart (O-061): the
// pages overlap, what is repeated is told once, and a second that is larger than a
// page is an error, not a silent end.
func TestOverlap(t *testing.T) {
	at := func(s int) string { return noon.Add(time.Duration(s) * time.Second).Format(time.RFC3339) }
	all := []row{{"a", "done", at(0)}, {"b", "done", at(1)}, {"c", "done", at(1)}, {"d", "done", at(1)}, {"e", "done", at(2)}, {"f", "done", at(3)}}
	for _, strictly := range []bool{false, true} {
		spec := config.Listing{Items: "/items", Fields: fields, Paging: config.Paging{Param: "updated_since", Last: "/at", Overlap: time.Second, Size: 5}}
		l, client := byTime(all, 5, strictly).list(t, spec)
		tasks, _, reason := walk(t, l, client, pawl.TimeOf(noon), 10)
		if slices.Sort(tasks); reason != "" || !slices.Equal(tasks, []string{"a", "b", "c", "d", "e", "f"}) {
			t.Errorf("strictly %v: %v %s", strictly, tasks, reason)
		}
		spec.Paging.Size = 2
		l, client = byTime(all, 2, strictly).list(t, spec)
		if _, _, reason := walk(t, l, client, pawl.TimeOf(noon), 10); reason != ReasonStuck {
			t.Errorf("strictly %v: a second of three on pages of two is %q", strictly, reason)
		}
	}
}

// Whatever a list answers, a walk through it ends, and says why.
func TestHostileLists(t *testing.T) {
	entry := `{"task":"a","state":"done","at":"2026-03-01T12:00:00Z"}`
	page := func(items, next string) string { return `{"items":[` + items + `],"next":` + next + `}` }
	for name, c := range map[string]struct {
		serve  shelf
		reason string
		tasks  int
	}{
		"the same cursor": {func(url.Values) (int, string) { return 200, page(entry, `"x"`) }, ReasonLoop, 1},
		"a circle of three": {func(q url.Values) (int, string) {
			next := map[string]string{"": "a", "a": "b", "b": "c", "c": "a"}[q.Get("p")]
			return 200, page("", body(next))
		}, ReasonLoop, 0},
		"a circle far behind": {func(q url.Values) (int, string) {
			n, _ := strconv.Atoi(q.Get("p"))
			if n++; n == 50 {
				n = 33
			}
			return 200, page("", strconv.Itoa(n))
		}, ReasonLoop, 0},
		"an endless cursor":  {func(url.Values) (int, string) { return 200, page(entry, `"`+strings.Repeat("x", 2049)+`"`) }, ReasonNoCursor, 0},
		"too many":           {func(url.Values) (int, string) { return 200, page(entry+strings.Repeat(","+entry, 1000), `null`) }, ReasonTooMany, 0},
		"as many as may be":  {func(url.Values) (int, string) { return 200, page(entry+strings.Repeat(","+entry, 999), `null`) }, "", 1},
		"too large":          {func(url.Values) (int, string) { return 200, page(`"`+strings.Repeat("x", 4<<20)+`"`, `null`) }, ReasonTooLarge, 0},
		"no array":           {func(url.Values) (int, string) { return 200, `{"items":{"a":1}}` }, ReasonNoItems, 0},
		"nothing":            {func(url.Values) (int, string) { return 200, `{}` }, ReasonNoItems, 0},
		"no JSON":            {func(url.Values) (int, string) { return 200, `<html>` }, ReasonMalformed, 0},
		"a name twice":       {func(url.Values) (int, string) { return 200, `{"items":[],"items":[]}` }, ReasonMalformed, 0},
		"refused":            {func(url.Values) (int, string) { return 500, page(entry, `null`) }, ReasonStatus, 0},
		"credential refused": {func(url.Values) (int, string) { return 403, `` }, ReasonUnauthorized, 0},
		"in its envelope":    {func(url.Values) (int, string) { return 200, `{"code":401,"items":[]}` }, ReasonUnauthorized, 0},
		"ids that are none": {func(url.Values) (int, string) {
			return 200, page(`{"task":""},{"task":"a b"},{"task":"`+strings.Repeat("x", 256)+`"},{"task":{}},{"task":null},7,{"task":9007199254740993}`, `null`)
		}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, client := c.serve.list(t, config.Listing{Items: "/items", Fields: fields, Paging: config.Paging{Param: "p", Next: "/next"}})
			l.Envelope = "/code"
			tasks, pages, reason := walk(t, l, client, 0, 300)
			if reason != c.reason || len(tasks) != c.tasks {
				t.Errorf("%q after %d pages, %d tasks; want %q, %d", reason, pages, len(tasks), c.reason, c.tasks)
			}
		})
	}
}

// A page says how long to wait.
func TestRetryAfter(t *testing.T) {
	l, client := shelf(func(url.Values) (int, string) { return 429, `` }).list(t, config.Listing{Fields: fields})
	_, err := l.Read(t.Context(), client, Cursor{}, 0)
	if f, ok := err.(*Failure); !ok || f.RetryAfter != 7*time.Second || f.Reason != ReasonStatus {
		t.Errorf("%v", err)
	}
}

// The longest walk ends too.
func TestWalkIsBounded(t *testing.T) {
	var c Cursor
	for n := range 20_000 {
		next, ok := c.follow(strconv.Itoa(n), 1, nil)
		if !ok {
			if c.Pages != 9_999 {
				t.Errorf("it ended after %d pages", c.Pages)
			}
			return
		}
		c = next
	}
	t.Error("20,000 pages were read")
}

func TestCheck(t *testing.T) {
	for want, l := range map[string]config.Listing{
		"items":               {Items: "items"},
		"fields.task":         {Fields: config.ListFields{Task: "~"}},
		"paging:":             {Paging: config.Paging{Param: "p", Next: "/n", Offset: true}},
		"paging.param":        {Paging: config.Paging{Next: "/n"}},
		"paging.overlap":      {Paging: config.Paging{Overlap: time.Second}},
		"paging.size:":        {Paging: config.Paging{Size: 1001}},
		"paging.size_param":   {Paging: config.Paging{SizeParam: "limit"}},
		"paging.newest_first": {Paging: config.Paging{NewestFirst: true}},
		"paging.since_param":  {Paging: config.Paging{SinceParam: "since"}},
	} {
		if err := Check(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
