package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
)

// unsigned makes the upstream one whose callbacks nobody can verify.
func unsigned(_ *config.Config, u *config.Upstream) { u.Preset, u.WebhookKeys = "sim-unsigned", nil }

// plainly sends a callback without any signature.
func (w *world) plainly(address, body string) reply {
	w.Helper()
	return w.hook(address, []byte(body), http.Header{"Content-Type": {"application/json"}})
}

// A callback without a signature only makes us read, and what the read says is
// applied (1-product C6).
func TestHintOnlyMakesUsRead(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint()
		op, c := w.running("k")
		lie := `{"type":"task.updated","task":"task-1","state":"failed"}`
		w.pass(5 * time.Second)
		if n := len(w.provider.readAt()); n != 0 {
			w.Fatalf("%d reads before the first hint", n)
		}
		if r := w.want(http.StatusAccepted, w.plainly(c.callback, lie)); r.at("verdict") != "hint" || r.at("reason") != "read_due" || r.at("event_id") != "" {
			w.Errorf("answered %s", r.body)
		}
		w.pass(time.Second)
		w.now(op, "running")
		if n := len(w.provider.readAt()); n != 1 {
			w.Errorf("%d reads after a hint, want 1", n)
		}
		w.provider.say(done("task-1"))
		w.pass(2 * time.Second)
		w.want(http.StatusAccepted, w.plainly("", lie)) // by the task alone
		w.pass(time.Second)
		w.now(op, "succeeded")
		w.money("99.4", "0")
		w.told(op, "operation.running", "operation.succeeded")
		w.line(op, "callback hint read_due", 2)
		w.stored("")
		if got := w.metric(`pawl_inbound_events_total{source="up",verdict="hint"}`); got != "2" {
			w.Errorf("%s hints were counted, want 2", got)
		}
	}, unsigned)
}

// However many hints come, an operation is read at most once in 2 s (1-product
// C6).
func TestHintsAreBounded(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		_, c := w.running("k")
		w.pass(3 * time.Second)
		for range 100 {
			w.want(http.StatusAccepted, w.plainly(c.callback, `{"task":"task-1"}`))
			w.pass(100 * time.Millisecond)
		}
		reads := w.provider.readAt()
		for i := 1; i < len(reads); i++ {
			if apart := reads[i].Sub(reads[i-1]); apart < 2*time.Second {
				w.Errorf("two reads are %s apart", apart)
			}
		}
		if len(reads) != 5 {
			w.Errorf("%d reads for 10 s of hints, want one in 2 s", len(reads))
		}
	}, unsigned)
}

// Hints of many operations stay inside the upstream's read limit.
func TestHintsObeyTheReadLimit(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		for i := range 20 {
			w.submit(fmt.Sprint("k", i))
		}
		w.pass(3 * time.Second)
		for _, c := range w.provider.created() {
			w.want(http.StatusAccepted, w.plainly(c.callback, fmt.Sprintf(`{"task":%q}`, c.task)))
		}
		w.pass(4 * time.Second)
		reads := w.provider.readAt()
		if len(reads) < 15 || len(reads) > 21 {
			w.Errorf("%d reads in 4 s at 5 a second", len(reads))
		}
		for i := 6; i < len(reads); i++ {
			if within := reads[i].Sub(reads[i-6]); within < time.Second {
				w.Errorf("seven reads within %s, the limit is 5 a second", within)
			}
		}
	}, unsigned, func(_ *config.Config, u *config.Upstream) { u.Read.Rate = 5 })
}

// What an unsigned body says is not believed: it teaches no task id (7-rules
// R19), and one that cannot be meant for its address is refused and not stored.
func TestHintProvesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", unsigned)
	reached, open := w.provider.gate()
	op := w.submit("k")
	<-reached
	c := w.provider.created()[0]
	if r := w.want(http.StatusAccepted, w.plainly(c.callback, `{"task":"task-1","state":"succeeded"}`)); r.at("reason") != "nothing_to_read" {
		t.Errorf("answered %s", r.body)
	}
	if r := w.now(op, "pending"); r.at("task_id") != "" {
		t.Errorf("an unsigned body taught task %s", r.at("task_id"))
	}
	open()
	w.state(op, "running")
	for body, reason := range map[string]string{
		`{"task":"task-9"}`: "task_mismatch", `{}`: "missing_task", `{"task":"task-1","task":"task-2"}`: "malformed_json", `task=1`: "malformed_json",
	} {
		if r := w.plainly(c.callback, body); r.status != http.StatusBadRequest || r.at("reason") != reason {
			t.Errorf("%s: answered %d %s, want 400 %s", body, r.status, r.at("reason"), reason)
		}
	}
	if r := w.want(http.StatusAccepted, w.plainly("", `{"task":"task-9"}`)); r.at("reason") != "unknown_task" {
		t.Errorf("a task of nobody: %s", r.body)
	}
	w.want(http.StatusNotFound, w.plainly(c.callback+"0", `{"task":"task-1"}`))
	w.stored("")
	if n := len(w.get("/v1/reviews?open=true").items()); n != 0 {
		t.Errorf("%d reviews", n)
	}
}

func confirming(_ *config.Config, u *config.Upstream) { u.Confirm = config.ConfirmPoll }

// With "confirm: poll" an end that a callback names is applied as a read of the
// task tells it, and other news at once (1-product C6).
func TestConfirmedByARead(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.endpoint()
		op, c := w.running("k")
		w.pass(3 * time.Second)
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "whd_0", said: said{task: c.task, state: "queued"}}))
		w.line(op, "callback applied progress", 1)
		end := event{id: "whd_1", said: done(c.task)}
		hinted := func() {
			w.Helper()
			if r := w.want(http.StatusAccepted, w.callback(c.callback, end)); r.at("verdict") != "hint" || r.at("reason") != "confirm" {
				w.Errorf("answered %s", r.body)
			}
			w.pass(time.Second)
		}
		hinted() // the provider's own read says "processing" still
		w.now(op, "running")
		w.money("100", "1")
		w.provider.script(nil, func(int, string) *answer { return &answer{status: http.StatusInternalServerError} })
		w.pass(2 * time.Second)
		hinted() // and now it cannot be read
		w.now(op, "running")
		w.provider.script(nil, nil)
		w.provider.say(said{task: c.task, state: "succeeded", cost: "0.5", settled: true, result: `{"ok":true}`})
		w.pass(2 * time.Second)
		hinted()
		w.now(op, "succeeded")
		w.money("99.5", "0") // as the read says, not the callback
		if n := len(w.provider.readAt()); n != 3 {
			w.Errorf("%d reads, want one for each time the end was told", n)
		}
		w.stored("", "applied progress")
		if r := w.want(http.StatusOK, w.callback(c.callback, end)); r.at("stale") != "true" {
			w.Errorf("once it has ended: %s", r.body)
		}
		w.told(op, "operation.running", "operation.succeeded")
	}, confirming)
}

// If the read that an end asked for fails for good, the schedule of reads goes
// on and finds the end.
func TestConfirmFallsBackToTheSchedule(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		op, c := w.running("k")
		w.provider.script(nil, func(n int, _ string) *answer {
			if n <= 2 {
				return &answer{cut: true}
			}
			return nil
		})
		w.provider.say(done(c.task))
		w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: done(c.task)}))
		w.pass(10 * time.Second)
		w.now(op, "running")
		w.pass(40 * time.Second)
		w.now(op, "succeeded")
	}, confirming, reading(20*time.Second, 20*time.Second, time.Hour))
}
