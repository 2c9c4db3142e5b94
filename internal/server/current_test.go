package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
)

// records is the sender's API: it answers by a script and keeps what it was asked.
type records struct {
	status atomic.Int32
	body   atomic.Value
	asked  atomic.Value
	count  atomic.Int32
}

// ServeHTTP implements [http.Handler].
func (s *records) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.count.Add(1)
	s.asked.Store(r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization"))
	w.WriteHeader(int(s.status.Load()))
	_, _ = w.Write([]byte(s.body.Load().(string)))
}

// Where a source asks for it, the current record is read before an event is handed
// over, and given beside it; a record that is gone is told as such, one that cannot
// be read is no attempt at the handler (1-product C9).
func TestCurrentRecordIsRead(t *testing.T) {
	t.Parallel()
	api := new(records)
	api.status.Store(http.StatusOK)
	api.body.Store(`{"id":"in_1","status":"refunded"}`)
	w := newWorld(t, "sim", payments(t, ""))
	url := w.serve(api)
	reading := payments(t, `, read: {url: "`+url+`/v1/invoices/{/data/object/id}?event={/id}", key: sk_read}`)
	w.mustReload(reading)
	w.endpoint("policy", map[string]any{"schedule": []string{"0s", "100ms", "100ms", "100ms"}})
	current := func(n int) (status int, data string) {
		t.Helper()
		var got struct {
			Data    json.RawMessage
			Current struct {
				Status int
				Data   json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(w.sink.attempts()[n].body), &got); err != nil || len(got.Data) == 0 {
			t.Fatalf("%s: %v", w.sink.attempts()[n].body, err)
		}
		return got.Current.Status, string(got.Current.Data)
	}
	w.inbox(w.took("evt_1"), "done")
	if asked := api.asked.Load(); asked != "GET /v1/invoices/in_1?event=evt_1 Bearer sk_read" {
		t.Errorf("asked %q", asked)
	}
	if status, data := current(0); status != 200 || data != `{"id":"in_1","status":"refunded"}` {
		t.Errorf("handed %d %s", status, data)
	}

	api.status.Store(http.StatusNotFound)
	w.inbox(w.took("evt_2"), "done")
	if status, data := current(1); status != 404 || data != "null" {
		t.Errorf("a record that is gone: %d %s", status, data)
	}

	// It cannot be read at first: the handler is told nothing until it can.
	api.status.Store(http.StatusBadGateway)
	e := w.took("evt_3")
	w.eventually("no read failed", func() bool { return w.handed(e)[0].at("last_error") != "" })
	if failed := w.handed(e)[0]; failed.at("last_error") != "the current record could not be read: it was answered Bad Gateway" || len(w.sink.attempts()) != 2 {
		t.Errorf("%v, %d deliveries", failed.fields, len(w.sink.attempts()))
	}
	api.status.Store(http.StatusOK)
	w.inbox(e, "done")

	// The body of the first attempt is repeated: it is not read again.
	w.sink.script(func(n int, _ delivery) (int, string) {
		api.body.Store(`{"status":"paid"}`)
		return map[bool]int{true: 500, false: 200}[n == 4], ""
	})
	before := api.count.Load()
	w.inbox(w.took("evt_4"), "done")
	if got := w.sink.attempts(); len(got) != 5 || got[3].body != got[4].body || api.count.Load() != before+1 {
		t.Errorf("%d deliveries, %d reads", len(got), api.count.Load()-before)
	}

	// An address of the inside is not read, whatever the event says.
	w.mustReload(func(c *config.Config, u *config.Upstream) {
		payments(t, `, read: {url: "http://169.254.169.254/{/id}"}`)(c, u)
	})
	e = w.took("evt_5")
	if r := w.inbox(e, "review"); w.handed(e)[0].at("reason") != "unsendable" {
		t.Errorf("%s, %v", r.body, w.handed(e)[0].fields)
	}
}

// What no sender may say, no record may either: it would be signed by us.
func TestDoubtfulRecordIsNotHandedOver(t *testing.T) {
	t.Parallel()
	api := new(records)
	api.status.Store(http.StatusOK)
	w := newWorld(t, "sim", payments(t, ""))
	w.mustReload(payments(t, `, read: {url: "`+w.serve(api)+`/{/id}"}`))
	w.endpoint("policy", map[string]any{"schedule": []string{"0s"}})
	for name, body := range map[string]string{
		"evt_names": `{"paid":false,"paid":true}`, "evt_levels": strings.Repeat("[", 65) + strings.Repeat("]", 65), "evt_bytes": "{\"a\":\"\xff\"}", "evt_two": "{} {}",
	} {
		api.body.Store(body)
		e := w.took(name)
		w.inbox(e, "review")
		if why := w.handed(e)[0].at("last_error"); !strings.HasPrefix(why, "the current record could not be read: the answer is no JSON") {
			t.Errorf("%s: %s", name, why)
		}
	}
	api.body.Store(strings.Repeat("[", 64) + strings.Repeat("]", 64))
	w.inbox(w.took("evt_good"), "done")
	if n := len(w.sink.attempts()); n != 1 {
		t.Errorf("%d were handed over, want 1", n)
	}
}

// An event whose record is to be read is not handed over without it because its
// source is gone for a while, or is configured without the read; one that needs none
// is.
func TestRecordOfRemovedSource(t *testing.T) {
	t.Parallel()
	api := new(records)
	api.status.Store(http.StatusBadGateway)
	api.body.Store(`{"status":"paid"}`)
	w := newWorld(t, "sim", payments(t, ""))
	reading := payments(t, `, read: {url: "`+w.serve(api)+`/{/id}"}`)
	w.sink.script(func(n int, _ delivery) (int, string) { return map[bool]int{true: 500, false: 200}[n == 1], "" })
	w.endpoint("policy", map[string]any{"schedule": []string{"0s", "300ms", "100ms", "100ms", "100ms", "100ms", "100ms", "100ms", "100ms"}})
	removed := func(c *config.Config, _ *config.Upstream) { c.Sources = nil }

	plain := w.took("evt_plain")
	w.eventually("it was never tried", func() bool { return len(w.sink.attempts()) == 1 })
	w.mustReload(removed)
	w.inbox(plain, "done")

	w.mustReload(reading)
	e := w.took("evt_read")
	w.eventually("no read failed", func() bool { return w.handed(e)[0].at("last_error") != "" })
	api.status.Store(http.StatusOK)
	for why, lost := range map[string]func(*config.Config, *config.Upstream){
		"the source is not configured any more":       removed,
		"the source is configured without a read now": payments(t, ""),
	} {
		w.mustReload(lost)
		w.eventually(why, func() bool { return w.handed(e)[0].at("last_error") == "the current record could not be read: "+why })
	}
	if n := len(w.sink.attempts()); n != 2 {
		t.Fatalf("%d were handed over, want 2", n)
	}
	w.mustReload(reading)
	w.inbox(e, "done")
	if got := w.sink.attempts(); len(got) != 3 || !strings.Contains(got[2].body, `"current":{"status":200,"data":{"status":"paid"}}`) {
		t.Errorf("handed over: %+v", got[2:])
	}
}
