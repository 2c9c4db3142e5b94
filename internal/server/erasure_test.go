package server

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// canary is a value that stands nowhere else.
const canary = "zq7-kestrel-canary-55"

// erased asks to erase something and waits until nothing of it is left.
func (w *world) erased(body map[string]any, subject string) reply {
	w.Helper()
	body["reason"] = "request 4711"
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/erasures", body))
	var last reply
	w.eventually("it is not erased", func() bool {
		last = w.get("/v1/erasures/" + subject)
		return last.at("state") == "erased"
	})
	return last
}

// holding are the files below a folder that hold the canary.
func holding(t *testing.T, dir string) []string {
	t.Helper()
	return holdingText(t, dir, canary)
}

// holdingText are the files below a folder that hold a text.
func holdingText(t *testing.T, dir, wanted string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(wanted)) {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// dumpHolds are the tables of a database with a row that holds the canary, as a
// dump would write it: bytes are in hex.
func dumpHolds(t *testing.T, url string) (found []string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	rows, err := c.Query(t.Context(), "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 20 {
		t.Fatal(len(tables), err)
	}
	for _, table := range tables {
		var n int
		err := c.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM %s r WHERE r::text LIKE $1 OR r::text LIKE $2", table),
			"%"+canary+"%", "%"+hex.EncodeToString([]byte(canary))+"%").Scan(&n)
		if err != nil {
			t.Fatal(table, err)
		}
		if n > 0 {
			found = append(found, table)
		}
	}
	return found
}

// telling is an operation whose every part holds the canary, at its end.
func (w *world) telling(key string) (op string, c create) {
	w.Helper()
	order := job(canary)
	order["metadata"], order["correlation_id"], order["owner"] = map[string]any{"who": canary}, key+canary, canary
	op = w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", order, "Idempotency-Key", key)).at("id")
	w.state(op, "running")
	task := w.operation(op).at("task_id")
	for _, made := range w.provider.created() {
		if made.task == task {
			c = made
		}
	}
	end := done(c.task)
	end.result = `{"text":"` + canary + `"}`
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "end-" + c.task, said: end}))
	w.now(op, "succeeded")
	w.told(op, "operation.running", "operation.succeeded")
	w.deliveries(op, 2, "delivered")
	return op, c
}

// reviewed has another end reported, and people write of it what they think.
func (w *world) reviewed(op string, c create) {
	w.Helper()
	other := done(c.task)
	other.state, other.version = "failed", 3
	w.want(http.StatusOK, w.callback(c.callback, event{id: "other-" + c.task, said: other}))
	review := "/v1/reviews/" + w.operation(op).at("review_id")
	w.want(http.StatusOK, w.call(http.MethodPost, review+"/assign", map[string]any{"owner": "the night shift"}))
	w.want(http.StatusOK, w.call(http.MethodPost, review+"/notes", map[string]any{"note": "asked " + canary}))
	w.want(http.StatusOK, w.call(http.MethodPost, review+"/resolve", map[string]any{"decision": "keep", "note": "told " + canary}))
	story := w.get("/v1/operations/" + op + "/timeline").body
	for _, line := range [...]string{`"review_assigned"`, `"asked ` + canary, `"keep: told ` + canary} {
		if !strings.Contains(story, line) {
			w.Errorf("the timeline lacks %s: %s", line, story)
		}
	}
	w.told(op, "operation.running", "operation.succeeded", "operation.review.opened", "operation.review.closed")
	w.deliveries(op, 4, "delivered")
}

// TestErasedIsNowhere: after an erasure a distinctive value of the operation is in
// no file of the data folder and in no row of the database; the facts stay, what
// comes late brings nothing back, and a second erasure changes nothing.
func TestErasedIsNowhere(t *testing.T) {
	t.Parallel()
	for _, postgres := range []bool{false, true} {
		t.Run(fmt.Sprintf("postgres %v", postgres), func(t *testing.T) {
			t.Parallel()
			var change []settings
			var url string
			if postgres {
				url = pgtest.Database(t)
				change = append(change, on(t, url))
			}
			w := newWorld(t, "media-v2", change...)
			w.endpoint()
			// What the installation is told of the review is about no operation: no erasure
			// reaches it.
			ops := newReceiver(sinkSecret)
			ops.url = w.serve(ops)
			w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": ops.url, "secret": sinkSecret, "installation": true}))
			op, c := w.telling("k")
			nowhere := func() {
				t.Helper()
				if found := holding(t, w.cfg.Data); len(found) > 0 {
					t.Errorf("the files %v hold the value", found)
				}
				if postgres {
					if found := dumpHolds(t, url); len(found) > 0 {
						t.Errorf("the tables %v hold the value", found)
					}
				}
			}
			if postgres && len(dumpHolds(t, url)) == 0 || !postgres && len(holding(t, w.cfg.Data)) == 0 {
				t.Fatal("the value was never there: the test proves nothing")
			}
			money := w.operation(op).at("cost.amount")
			w.reviewed(op, c)
			w.eventually("the installation was not told of the review", func() bool { return len(ops.attempts()) > 0 })
			w.erased(map[string]any{"operation_id": op}, op)
			nowhere()
			// Late: the same event again, and another one.
			w.want(http.StatusOK, w.callback(c.callback, event{id: "end-" + c.task, said: done(c.task)}))
			late := done(c.task)
			late.result = `{"text":"` + canary + `"}`
			r := w.callback(c.callback, event{id: "late", said: late})
			if r.status != http.StatusOK || !strings.Contains(r.body, "stale") {
				t.Errorf("a late event is answered %d %s", r.status, r.body)
			}
			w.erased(map[string]any{"operation_id": op}, op)
			nowhere()
			shown := w.now(op, "succeeded")
			if shown.at("cost.amount") != money || shown.at("version") != "5" || shown.at("erased_at") == "" || strings.Contains(shown.body, canary) {
				t.Errorf("the operation reads %s", shown.body)
			}
			// The key still stands for the operation: nothing is bought again.
			order := job(canary)
			again := w.call(http.MethodPost, "/v1/operations", order, "Idempotency-Key", "k")
			if again.at("id") != op || len(w.provider.created()) != 1 {
				t.Errorf("the key stands for %s, and %d creates were made", again.at("id"), len(w.provider.created()))
			}
			w.money("99.4", "0")
		})
	}
}

// TestErasedCallbackAddressIsNowhere: the address that operations gave for their
// outcome stays while one of them is not erased, is gone from everywhere after the
// last, and works again for whoever names it anew.
func TestErasedCallbackAddressIsNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	var told atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		told.Add(1)
		rw.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	heard := func(n int32) {
		t.Helper()
		w.eventually("the callbacks are not "+fmt.Sprint(n), func() bool { return told.Load() == n })
	}
	order := func(key string) (string, create) {
		body := job(key)
		body["callback_url"] = receiver.URL + "/done?who=" + canary
		op := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", key)).at("id")
		w.state(op, "running")
		made := w.provider.created()
		return op, made[len(made)-1]
	}
	first, a := order("first")
	w.finish(first, a)
	second, b := order("second")
	heard(3)
	w.deliveries(first, 2, "delivered")
	w.erased(map[string]any{"operation_id": first}, first)
	if len(holding(t, w.cfg.Data)) == 0 {
		t.Fatal("the address is gone, and the second operation needs it")
	}
	w.finish(second, b)
	heard(4)
	w.deliveries(second, 2, "delivered")
	w.erased(map[string]any{"operation_id": second}, second)
	if found := holding(t, w.cfg.Data); len(found) > 0 {
		t.Errorf("the files %v hold the address", found)
	}
	if items := w.get("/v1/endpoints?kind=callback").items(); len(items) != 0 {
		t.Errorf("%d endpoints are listed", len(items))
	}
	third, c := order("third")
	w.finish(third, c)
	heard(6)
}

// TestErasedFilesAreGone: the captured file of an erased operation is in no folder
// and behind no link, not even one that was given out before; another operation's
// file stays.
func TestErasedFilesAreGone(t *testing.T) {
	simulate(t, scripted(), func(p *play) {
		p.endpoint()
		second := p.want(http.StatusAccepted, p.call(http.MethodPost, "/v1/operations", job("a blue kite"), "Idempotency-Key", "k2"))
		ops := [2]string{p.order(), second.at("id")}
		p.pass(12 * time.Second)
		var files, links, texts [2]string
		for i, op := range ops {
			p.told(op, "operation.running", "operation.succeeded", "operation.artifacts.ready")
			files[i] = p.now(op, "succeeded").at("artifacts.0.id")
			links[i] = p.want(http.StatusFound, p.artifact(files[i])).at("url")
			var status int
			if status, texts[i] = p.file(links[i]); status != http.StatusOK || len(texts[i]) < 20 {
				p.Fatalf("%d %q", status, texts[i])
			}
		}
		if texts[0] == texts[1] {
			p.Fatal("both have the same file: the test proves nothing")
		}
		p.erased(map[string]any{"operation_id": ops[0]}, ops[0])
		if found := holdingText(t, p.cfg.Data, texts[0]); len(found) > 0 {
			t.Errorf("the files %v hold the result", found)
		}
		if found := holdingText(t, p.cfg.Data, texts[1]); len(found) == 0 {
			t.Error("the other operation's file is gone")
		}
		for i, want := range [2]int{http.StatusGone, http.StatusOK} {
			if status, _ := p.file(links[i]); status != want {
				t.Errorf("link %d is answered %d, want %d", i, status, want)
			}
		}
		if r := p.artifact(files[0]); r.status != http.StatusGone {
			t.Errorf("the artifact is answered %d %s", r.status, r.body)
		}
	})
}

// TestEraseTenant: what is over is erased, what is not is held back and follows;
// a kill in between loses nothing of it.
func TestEraseTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	w.endpoint()
	over, _ := w.telling("k")
	open, c := w.running("open")
	if r := w.call(http.MethodPost, "/v1/erasures", map[string]any{"operation_id": open, "reason": "r"}); r.status != http.StatusConflict || r.at("reason") != "not_erasable" {
		t.Errorf("an unfinished operation: %d %s", r.status, r.body)
	}
	dry := w.want(http.StatusOK, w.call(http.MethodPost, "/v1/erasures", map[string]any{"tenant": "default", "reason": "r", "dry_run": true}))
	if dry.at("operations") != "1" || dry.at("held_back") != "1" || w.operation(over).at("erased_at") != "" {
		t.Errorf("the dry run says %s", dry.body)
	}
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/erasures", map[string]any{"tenant": "default", "reason": "r"}))
	w.kill()
	w.start()
	w.eventually("the first operation is not erased", func() bool { return w.get("/v1/erasures/"+over).at("state") == "erased" })
	if found := holding(t, w.cfg.Data); len(found) > 0 {
		t.Errorf("the files %v hold the value", found)
	}
	if w.operation(open).at("erased_at") != "" {
		t.Error("an unfinished operation was erased")
	}
	w.finish(open, c)
	w.told(open, "operation.running", "operation.succeeded")
	w.deliveries(open, 2, "delivered")
	// It is looked at again after some minutes, or at a start.
	w.drain()
	w.start()
	w.eventually("the second operation is not erased", func() bool { return w.get("/v1/erasures/"+open).at("state") == "erased" })
	w.eventually("the tenant is still being erased", func() bool { return w.get("/v1/erasures/default").at("state") == "erased" })
}

// TestO115UnfinishedWorkIsNeverTooOld: with a retention of an hour, deliveries that
// come seventy minutes late are made, whole; only then their content goes. An
// operation that has not ended keeps all that it has (O-115).
func TestO115UnfinishedWorkIsNeverTooOld(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		up := time.Now().Add(70 * time.Minute)
		w.sink.script(func(int, delivery) (int, string) {
			if time.Now().Before(up) {
				return http.StatusServiceUnavailable, ""
			}
			return http.StatusNoContent, ""
		})
		w.endpoint("policy", map[string]any{"attempts": 50, "schedule": []string{"0s", "5m"}})
		open, _ := w.running("open")
		op, c := w.running("k")
		w.finish(op, c)
		time.Sleep(69 * time.Minute)
		if r := w.operation(op); r.at("input.prompt") == "" || r.at("result.ok") != "true" {
			t.Errorf("with its deliveries due the operation reads %s", r.body)
		}
		time.Sleep(80 * time.Minute)
		for _, row := range w.deliveries(op, 2, "delivered") {
			if attempts := w.get("/v1/deliveries/" + row.at("id") + "/attempts").items(); len(attempts) != 0 {
				t.Errorf("%d attempts are kept", len(attempts))
			}
			if r := w.call(http.MethodPost, "/v1/deliveries/"+row.at("id")+"/retry", nil); r.status != http.StatusConflict || r.at("reason") != "body_gone" {
				t.Errorf("a replay: %d %s", r.status, r.body)
			}
			if e := w.get("/v1/events/" + row.at("event_id")); e.at("content_removed_at") == "" || e.at("data") != "" {
				t.Errorf("the event reads %s", e.body)
			}
		}
		var last delivery
		for _, d := range w.sink.attempts() {
			if d.op == op && d.kind == "operation.succeeded" {
				last = d
			}
		}
		if !strings.Contains(last.body, `"result":{"ok":true}`) {
			t.Errorf("the last delivery was %s", last.body)
		}
		if r := w.now(op, "succeeded"); r.at("input") != "" || r.at("result") != "" || r.at("version") != "3" {
			t.Errorf("the operation reads %s", r.body)
		}
		if r := w.now(open, "running"); r.at("input.prompt") == "" {
			t.Errorf("the unfinished operation reads %s", r.body)
		}
		if got := w.metric(`pawl_content_removed_total{kind="operation"}`); got == "0" {
			t.Error("nothing was counted")
		}
	}, func(c *config.Config, u *config.Upstream) {
		u.Deadline = 100 * time.Hour
		r := &c.Retention
		r.Inputs, r.Results, r.Callbacks, r.Deliveries = time.Hour, time.Hour, time.Hour, time.Hour
	})
}
