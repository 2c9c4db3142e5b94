package cli

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// feed is a server's list of events.
type feed struct {
	mu  sync.Mutex
	ids []string // newest first
}

// add adds events that were made at a moment.
func (f *feed) add(at time.Time, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.ids = append(f.ids, pawl.NewID(pawl.TimeOf(at), rand.Uint64()).Text(pawl.PrefixEvent))
	}
	slices.SortFunc(f.ids, func(a, b string) int { return strings.Compare(b, a) })
}

func (f *feed) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids)
}

// page answers like the API: at most page_size, from the token on.
func (f *feed) page(w http.ResponseWriter, r *http.Request) {
	all := f.all()
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("page_size"))
	if token := q.Get("page_token"); token != "" {
		all = all[slices.IndexFunc(all, func(id string) bool { return id < token }):]
	}
	var next string
	if len(all) > size {
		all = all[:size]
		next = all[size-1]
	}
	items := make([]string, len(all))
	for i, id := range all {
		items[i] = `{"id":"` + id + `", "type":"operation.running"}`
	}
	reply(w, http.StatusOK, `{"items":[`+strings.Join(items, ",")+`],"next_page_token":"`+next+`"}`)
}

// Following prints each event once, in order, whatever happens to the
// connection, however many come at once, and also one that became visible after
// a later one. Ctrl-C is its ordinary end.
func TestEventFollow(t *testing.T) {
	f := &feed{}
	start := time.Now()
	f.add(start.Add(-time.Hour), 10) // More than the first page; the oldest are not asked for.
	wanted := f.all()[:3]
	asked := 0
	w := newWorld(t, "")
	w.signals = make(chan os.Signal, 2)
	url := fake(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page_token") != "" {
			f.page(rw, r)
			return
		}
		asked++
		switch asked {
		case 2:
			f.add(start, 450)
		case 4:
			f.add(start.Add(time.Second), 2)
			reply(rw, http.StatusServiceUnavailable, `{"title":"busy"}`)
			return
		case 5:
			panic(http.ErrAbortHandler)
		case 6:
			f.add(start.Add(2*time.Second), 1)
		case 7:
			f.add(start.Add(-2*time.Second), 1) // Late to be seen.
		case 9:
			f.add(start.Add(time.Minute), 1)
		case 11:
			w.signals <- os.Interrupt
		}
		f.page(rw, r)
	})
	w.env["PAWL_SERVER"] = url
	r := w.run("event", "list", "--follow", "--json", "--page-size", "3", "--every", "10ms", "--type", "operation.running")
	r.want(t, ExitDone, "", "asking again\npawl: the server answers again\n")
	var got []string
	for line := range strings.Lines(r.stdout) {
		var item struct{ ID, Type string }
		if err := json.Unmarshal([]byte(line), &item); err != nil || item.Type == "" || strings.Contains(line, ", ") {
			t.Fatalf("line %q: %v", line, err)
		}
		got = append(got, item.ID)
	}
	for _, id := range f.all() {
		if madeAt(id).After(start.Add(-time.Minute)) {
			wanted = append(wanted, id)
		}
	}
	sorted := func(ids []string) []string { slices.Sort(ids); return ids }
	in := slices.Clone(got)
	if !slices.Equal(sorted(got), sorted(wanted)) {
		t.Errorf("%d lines, want %d events once each", len(got), len(wanted))
	}
	if late := slices.IndexFunc(in, func(id string) bool { return madeAt(id).Equal(start.Add(-2 * time.Second).Truncate(time.Millisecond)) }); late < 0 {
		t.Error("the late one is missing")
	} else if in = slices.Delete(in, late, late+1); !slices.IsSorted(in) {
		t.Error("not in the order of time")
	}
}

// An empty list is followed too, from its first event on.
func TestEventFollowFromNothing(t *testing.T) {
	f := &feed{}
	asked := 0
	w := newWorld(t, "")
	w.signals = make(chan os.Signal, 2)
	w.env["PAWL_SERVER"] = fake(t, func(rw http.ResponseWriter, r *http.Request) {
		asked++
		if asked == 3 {
			f.add(time.Now(), 5)
		}
		if asked == 8 {
			w.signals <- os.Interrupt
		}
		f.page(rw, r)
	})
	r := w.run("event", "list", "--follow", "--every", "5ms", "--page-size", "2")
	r.want(t, ExitDone, "ID  ", "")
	if n := strings.Count(r.stdout, "evt_"); n != 5 || strings.Count(r.stdout, "\n") != 6 {
		t.Errorf("%d events in:\n%s", n, r.stdout)
	}
}

func TestEventFollowRefused(t *testing.T) {
	newWorld(t, fake(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusForbidden, `{"title":"no","reason":"insufficient_scope"}`)
	})).run("event", "list", "--follow").want(t, ExitFailed, "", "insufficient_scope")
}

// Watching prints each line of the timeline once, also equal ones, and ends
// with the operation.
func TestOpWatch(t *testing.T) {
	for state, status := range map[string]int{"succeeded": ExitDone, "failed": ExitFailed, "expired": ExitFailed} {
		asked := 0
		url := fake(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/operations/op_1/timeline" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			asked++
			lines := []string{`{"kind":"submitted","version":1,"state":"pending"}`, `{"kind":"attempt"}`}
			if asked == 2 {
				w.Header().Set("Retry-After", "0")
				reply(w, http.StatusServiceUnavailable, `{"title":"busy"}`)
				return
			}
			if asked > 2 {
				lines = append(lines, `{"kind":"attempt"}`, `{"kind":"event","version":3,"state":"`+state+`"}`, `{"kind":"read","version":2,"state":"running"}`)
			}
			reply(w, http.StatusOK, `{"items":[`+strings.Join(lines, ",")+`]}`)
		})
		r := newWorld(t, url).run("op", "watch", "op_1", "--json")
		r.want(t, status, "", "")
		if n := strings.Count(r.stdout, "\n"); n != 5 || asked != 3 {
			t.Errorf("%d lines after %d looks:\n%s", n, asked, r.stdout)
		}
	}
	w := newWorld(t, fake(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusNotFound, `{"title":"no","reason":"not_found"}`)
	}))
	w.run("op", "watch", "op_1").want(t, ExitFailed, "", "not_found")
	w = newWorld(t, fake(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, http.StatusOK, `{"items":[]}`) }))
	w.signals = make(chan os.Signal, 2)
	w.signals <- os.Interrupt
	w.run("op", "watch", "op_1").want(t, ExitFailed, "", "interrupted")
}
