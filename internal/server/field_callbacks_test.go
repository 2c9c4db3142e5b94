package server

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// sql runs a statement on the ledger's file, as another program would.
func (w *world) sql(text string) {
	w.Helper()
	w.beside(text)()
}

// beside runs a statement on the ledger's file and keeps the connection open
// until release is called.
func (w *world) beside(text string) (release func()) {
	w.Helper()
	c, err := sqlite3.Open(filepath.Join(w.cfg.Data, "pawl.db"))
	if err == nil {
		err = c.BusyTimeout(10 * time.Second) // the node may be writing
	}
	if err == nil {
		err = c.Exec(text)
	}
	if err != nil {
		w.Fatal(err)
	}
	return func() { _ = c.Close() }
}

// tornState makes the ledger fail between the row that marks an event as seen
// and the operation's change of state; mended undoes that.
const (
	tornState = `CREATE TRIGGER torn BEFORE UPDATE ON operations BEGIN SELECT RAISE(ABORT, 'torn'); END`
	mended    = `DROP TRIGGER torn`
)

// A callback that comes before the create's answer: its operation is found by
// the token, or by the task once the answer has come (1-product B3, C5; O-011).
func TestO011CallbackBeforeCreateAnswer(t *testing.T) {
	t.Parallel()
	for dialect, balance := range map[string]string{"media-v2": "99.4", "sim": "99.4", "body-timestamp": "99"} {
		for _, parked := range []bool{false, true} {
			t.Run(fmt.Sprint(dialect, " parked ", parked), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, dialect)
				w.endpoint()
				w.provider.call("P-77")
				verdict, line := "applied", "callback applied state"
				if parked {
					verdict, line = "orphan", "callback applied matched: state"
				}
				early := make(chan reply, 1)
				w.provider.script(func(_ int, c create) *answer {
					address := c.callback
					if parked {
						address = "" // the source's own, without a token
					}
					early <- w.callback(address, event{id: "evt_77", said: done("P-77")})
					return nil
				}, nil)
				op := w.submit("k")
				if r := w.want(http.StatusAccepted, <-early); r.at("verdict") != verdict {
					t.Errorf("the early callback was answered %s", r.body)
				}
				r := w.state(op, "succeeded")
				if r.at("task_id") != "P-77" || r.at("result.ok") != "true" {
					t.Errorf("task %s, result %s", r.at("task_id"), r.at("result"))
				}
				w.money(balance, "0")
				w.told(op, "operation.running", "operation.succeeded")
				w.line(op, line, 1)
				w.line(op, "accepted", 1)
				w.line(op, "create", 1)
				w.line(op, "money charge", 1)
				w.review(op)
			})
		}
	}
}

// An event that cannot be stored is not answered 2xx and not remembered; its
// repeat is applied (1-product C2, O-013).
func TestO013StoreUnavailableAtCallback(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(*world) (mend func()){
		"read-only or gone": func(w *world) func() {
			w.disk.state.Store(full)
			return func() { w.disk.state.Store(works) }
		},
		"full disk": func(w *world) func() {
			w.free.Store(0)
			w.node.disk.look()
			return func() { w.free.Store(1 << 40); w.node.disk.look() }
		},
		"lock timeout": func(w *world) func() { return w.beside("BEGIN IMMEDIATE") },
		"write error": func(w *world) func() {
			w.sql(tornState)
			return func() { w.sql(mended) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "media-v2")
			w.endpoint()
			op, c := w.running("k")
			w.told(op, "operation.running")
			e := event{id: "whd_5", said: done(c.task)}
			mend := strike(w)
			r := w.want(http.StatusServiceUnavailable, w.callback(c.callback, e))
			mend()
			if r.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			w.now(op, "running")
			w.stored("")
			w.want(http.StatusAccepted, w.callback(c.callback, e))
			if r := w.want(http.StatusOK, w.callback(c.callback, e)); r.at("duplicate") != "true" {
				t.Errorf("the third time: %s", r.body)
			}
			w.now(op, "succeeded")
			w.money("99.4", "0")
			w.line(op, "money charge", 1)
			w.told(op, "operation.running", "operation.succeeded")
		})
	}
}

// The mark of an event and what it changes are one transaction: a failure
// between the two leaves neither (1-product C3, O-014).
func TestO014FailureBetweenMarkAndChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	op, c := w.running("k")
	w.told(op, "operation.running")
	e := event{id: "E-5", said: done(c.task)}
	w.sql(tornState)
	w.want(http.StatusServiceUnavailable, w.callback(c.callback, e))
	w.sql(mended)
	w.now(op, "running")
	w.stored("")
	w.line(op, "callback applied state", 0)
	w.money("100", "1")
	if r := w.want(http.StatusAccepted, w.callback(c.callback, e)); r.at("verdict") != "applied" {
		t.Errorf("the second delivery: %s", r.body)
	}
	if r := w.want(http.StatusOK, w.callback(c.callback, e)); r.at("duplicate") != "true" {
		t.Errorf("the third delivery: %s", r.body)
	}
	w.now(op, "succeeded")
	w.line(op, "callback applied state", 1)
	w.line(op, "money charge", 1)
	w.money("99.4", "0")
	w.told(op, "operation.running", "operation.succeeded")
}

// A delivery id that changes with each retry makes no new event: its key is what
// the source declares. That of the first is kept with it (1-product C3, O-015).
func TestO015DeliveryIDChangesOnEachRetry(t *testing.T) {
	t.Parallel()
	for dialect, header := range map[string]string{"body-timestamp": "X-Webhook-Id", "media-v2": "X-Delivery"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dialect)
			w.endpoint()
			op, c := w.running("k")
			body := w.provider.render(event{id: "evt_42", said: done(c.task)})
			var answers []string
			for _, delivery := range []string{"dlv_1", "dlv_2", "dlv_3"} {
				h := w.provider.sign("evt_42", body, time.Now())
				h.Set(header, delivery)
				r := w.hook(c.callback, body, h)
				answers = append(answers, fmt.Sprint(r.status, " ", r.at("verdict")))
			}
			if got := strings.Join(answers, ", "); got != "202 applied, 200 duplicate, 200 duplicate" {
				t.Errorf("answered %s", got)
			}
			w.now(op, "succeeded")
			w.line(op, "money charge", 1)
			w.told(op, "operation.running", "operation.succeeded")
			w.stored("", "applied state")
			one := w.get("/v1/events/" + w.get("/v1/events?direction=inbound").items()[0].at("id"))
			if one.at("external_id") != "evt_42" || one.at("headers."+strings.ToLower(header)) != "dlv_1" {
				t.Errorf("kept: %s", one.body)
			}
		})
	}
}

// The same end under another event id adds nothing (7-rules R13, O-016).
func TestO016SameEventUnderAnotherID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint()
	w.provider.call("P-90")
	op, c := w.running("k")
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "a1", said: done("P-90")}))
	version := w.operation(op).at("version")
	if r := w.want(http.StatusOK, w.callback(c.callback, event{id: "b7", said: done("P-90")})); r.at("stale") != "true" {
		t.Errorf("answered %s", r.body)
	}
	w.stored("", "stale nothing_new", "applied state")
	if got := w.operation(op).at("version"); got != version {
		t.Errorf("the version went from %s to %s", version, got)
	}
	w.line(op, "money charge", 1)
	w.money("99.4", "0")
	w.told(op, "operation.running", "operation.succeeded")
}

// One event comes 46 times within 29 hours from eight senders at once, over
// restarts, which empty every memory: it has one effect and is always answered at
// once (1-product C3, O-017).
func TestO017DuplicatesAreTheRule(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.endpoint()
		op, c := w.running("k")
		e := event{id: "whd_46", said: done(c.task)}
		var mu sync.Mutex
		verdicts := map[string]int{}
		send := func(copies int) {
			var senders sync.WaitGroup
			for sender := range 8 {
				senders.Go(func() {
					for n := sender; n < copies; n += 8 {
						began := time.Now()
						r := w.callback(c.callback, e)
						mu.Lock()
						verdicts[fmt.Sprint(r.status, " ", r.at("verdict"), " ", r.at("duplicate"))]++
						mu.Unlock()
						if took := time.Since(began); took > time.Second {
							w.Errorf("a copy was answered after %s", took)
						}
					}
				})
			}
			senders.Wait()
		}
		send(16)
		version := w.now(op, "succeeded").at("version")
		w.told(op, "operation.running", "operation.succeeded")
		for range 2 {
			w.drain()
			time.Sleep(29 * time.Hour / 2)
			w.start()
			send(15)
		}
		if verdicts["202 applied "] != 1 || verdicts["200 duplicate true"] != 45 {
			w.Errorf("answers: %v", verdicts)
		}
		if got := w.operation(op).at("version"); got != version {
			w.Errorf("the version went from %s to %s", version, got)
		}
		w.line(op, "money charge", 1)
		w.money("99.4", "0")
		w.told(op, "operation.running", "operation.succeeded")
		w.stored("", "applied state")
	})
}

// What was pruned of an event opens no window for its repeat: its key lives as
// long as its operation, and even without it the end and the ledger stand
// (7-rules R41, O-018).
func TestO018PrunedEventIsNotAppliedAgain(t *testing.T) {
	const raw = `DELETE FROM payloads WHERE owner IN (SELECT id FROM events WHERE source = 'up');`
	for pruned, want := range map[string]struct {
		sql, verdict string
		damage       bool
	}{
		"the raw event":   {raw, "duplicate", false},
		"its key too":     {raw + `DELETE FROM event_keys`, "stale", true},
		"all trace of it": {raw + `DELETE FROM event_keys; DELETE FROM events WHERE source = 'up'`, "stale", true},
	} {
		t.Run(pruned, func(t *testing.T) {
			inVirtualTime(t, "sim", func(w *world) {
				w.endpoint()
				op, c := w.running("k")
				e := event{id: "E-8", said: done(c.task)}
				w.want(http.StatusAccepted, w.callback(c.callback, e))
				w.told(op, "operation.running", "operation.succeeded")
				before := w.operation(op)
				w.drain()
				time.Sleep(401 * 24 * time.Hour)
				w.sql(want.sql)
				w.damaged = want.damage
				w.start()
				if r := w.want(http.StatusOK, w.callback(c.callback, e)); r.at("verdict") != want.verdict {
					w.Errorf("the repeat is answered %s", r.body)
				}
				after := w.operation(op)
				for _, member := range []string{"state", "version", "finished_at", "cost"} {
					if after.at(member) != before.at(member) {
						w.Errorf("%s went from %s to %s", member, before.at(member), after.at(member))
					}
				}
				w.line(op, "money charge", 1)
				w.money("99.4", "0")
				w.told(op, "operation.running", "operation.succeeded")
			})
		})
	}
}

// A node that dies between the mark and the change leaves no mark behind: the
// next delivery is the first one (1-product C2, O-022).
func TestO022KilledBetweenMarkAndChange(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint()
		op, c := w.running("k")
		w.told(op, "operation.running")
		e := event{id: "E-22", said: done(c.task)}
		w.sql(tornState)
		if r := w.callback(c.callback, e); r.status/100 == 2 {
			w.Errorf("answered %d", r.status)
		}
		w.kill()
		w.sql(mended)
		w.start()
		w.now(op, "running")
		var answers []string
		for _, wait := range []time.Duration{time.Second, time.Minute, time.Hour} {
			w.drain() // an hour is short for a node that is down
			time.Sleep(wait)
			w.start()
			r := w.callback(c.callback, e)
			answers = append(answers, fmt.Sprint(r.status, " ", r.at("verdict")))
		}
		if got := strings.Join(answers, ", "); got != "202 applied, 200 duplicate, 200 duplicate" {
			w.Errorf("answered %s", got)
		}
		w.now(op, "succeeded")
		w.line(op, "money charge", 1)
		w.money("99.4", "0")
		w.told(op, "operation.running", "operation.succeeded")
	}, briefly)
}

// gateway is the id of a provider's own retry, which nobody matches by.
func gateway(n int) string { return fmt.Sprint("G", n) }

// A success without its payload and with another gateway id is that of its task:
// the result is fetched by a read. If that brings none, the end stands and a
// person is asked; a later error is a conflict (1-product D2, G4; O-024).
func TestO024SuccessWithoutPayload(t *testing.T) {
	for name, read := range map[string]struct {
		answers map[int]*answer // nil: the whole task
		reads   int
	}{
		"read at once":     {nil, 1},
		"read in the end":  {map[int]*answer{1: {status: 502}, 2: {cut: true}}, 3},
		"no result at all": {map[int]*answer{0: {status: 200, body: map[string]any{"task": "R1", "state": "succeeded", "settled": true, "cost": "0.6"}}}, 3},
		"unreadable":       {map[int]*answer{0: {status: 503}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, "sim", func(w *world) {
				w.endpoint()
				w.provider.call("R1")
				w.provider.script(func(int, create) *answer {
					return &answer{status: 202, body: map[string]any{"task": "R1", "state": "queued", "request_id": gateway(1)}}
				}, func(n int, _ string) *answer {
					if always := read.answers[0]; always != nil {
						return always
					}
					return read.answers[n]
				})
				op, c := w.running("k")
				w.provider.say(done("R1"))
				text := `{"type":"task.updated","task":"R1","request_id":"%s","state":"%s","result":null,"cost":"0.6","settled":true,"payload_error":"not serialisable"}`
				w.want(http.StatusAccepted, w.raw(c.callback, "e1", fmt.Sprintf(text, gateway(9), "succeeded")))
				if r := w.now(op, "succeeded"); r.at("task_id") != "R1" || r.at("result") != "" {
					w.Errorf("at first: %s", r.body)
				}
				w.review(op, "no_result")
				w.pass(time.Minute)
				_, stays := read.answers[0]
				told := []string{"operation.running", "operation.succeeded", "operation.review.opened"}
				if r := w.now(op, "succeeded"); (r.at("result.ok") == "true") == stays {
					w.Errorf("in the end: %s", r.body)
				}
				if stays {
					w.review(op, "no_result")
				} else {
					w.review(op)
					w.line(op, "read applied result", 1)
					told = append(told, "operation.review.closed")
				}
				if n := len(w.provider.readAt()); n != read.reads {
					w.Errorf("%d reads, want %d", n, read.reads)
				}
				w.told(op, told...)
				if r := w.want(http.StatusOK, w.raw(c.callback, "e2", fmt.Sprintf(text, gateway(1), "failed"))); r.at("conflict") != "true" {
					w.Errorf("the later error is answered %s", r.body)
				}
				w.now(op, "succeeded")
				w.money("99.4", "0")
				w.line(op, "money charge", 1)
				w.line(op, "callback conflict conflict", 1)
			}, reading(2*time.Second, time.Minute, time.Hour))
		})
	}
}
