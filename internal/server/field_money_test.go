package server

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// A callback, a read and another callback all tell of the same failure at the
// same time: one of them releases the money (O-064; two instances and
// PostgreSQL come with the driver).
func TestO064FailureSeenByAllAtOnce(t *testing.T) {
	t.Parallel()
	const times = 40
	w := newWorld(t, "sim", reading(20*time.Millisecond, 20*time.Millisecond, time.Hour))
	for n := range times {
		op, c := w.ordered(fmt.Sprint("k", n), "1")
		failed := said{task: c.task, state: "failed", code: "timeout"}
		w.provider.say(failed)
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() { w.callback(c.callback, event{id: fmt.Sprint("e", i), said: failed}) })
		}
		all.Go(func() { w.call(http.MethodPost, "/v1/operations/"+op+"/reconcile", nil) })
		all.Wait()
		w.state(op, "failed")
		w.line(op, "money release", 1)
	}
	w.money("100", "0")
}

// Reading a result costs nothing, however often (O-065).
func TestO065ReadingIsFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	w.endpoint()
	op, c := w.running("k")
	end := done(c.task)
	end.cost = "0.31"
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: end}))
	for range 20 {
		w.operation(op)
		w.get("/v1/operations?task_id=" + c.task)
	}
	w.told(op, "operation.running", "operation.succeeded")
	delivery := w.get("/v1/deliveries?state=delivered").items()[0].at("id")
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/deliveries/"+delivery+"/retry", nil))
	w.call(http.MethodPost, "/v1/operations/"+op+"/reconcile", nil)
	w.want(http.StatusOK, w.callback(c.callback, event{id: "e2", said: end})) // told again, under another id
	w.money("99.69", "0")
	w.line(op, "money charge", 1)
	w.line(op, "money adjustment", 0)
}

// Settling and releasing what is released gets the recorded answer, and a
// charge after a release is a conflict that a person sees (O-067).
func TestO067ReleaseIsIdempotent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.running("k")
	failed := said{task: c.task, state: "failed", code: "timeout"}
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: failed}))
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			w.want(http.StatusOK, w.callback(c.callback, event{id: fmt.Sprint("e", i%2+1), said: failed}))
		})
	}
	all.Wait()
	w.money("100", "0")
	w.review(op)
	w.want(http.StatusOK, w.callback(c.callback, event{id: "e9", said: done(c.task)}))
	w.now(op, "failed")
	w.money("100", "0")
	w.review(op, "conflict")
	w.line(op, "money release", 1)
	w.line(op, "money charge", 0)
}

// No partial releases exist, and amounts of nine places always sum: a charge
// of a third of 100 and the release of the rest are 100 (O-070 as 7-rules §7
// has it).
func TestO070PartsSum(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "media-v2")
	op, c := w.ordered("k", "100")
	end := done(c.task)
	end.cost = "33.333333333"
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: end}))
	w.now(op, "succeeded")
	w.money("66.666666667", "0")
	// More than nine places is refused from a caller.
	r := w.want(http.StatusBadRequest, w.call(http.MethodPost, "/v1/operations", priced("0.0000000001"), "Idempotency-Key", "k2"))
	if r.at("reason") == "" {
		t.Errorf("answered %s", r.body)
	}
}

// A canceled job is charged what the provider says in the end: 10 of 40; and
// nothing where it says nothing (O-072 as 1-product F2 has it).
func TestO072CanceledChargesTheFigure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	op, c := w.ordered("k", "40")
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e1", said: said{task: c.task, state: "canceled", cost: "10", settled: true}}))
	if r := w.now(op, "canceled"); r.at("cost.amount") != "10.000000000" {
		t.Errorf("cost %s", r.at("cost"))
	}
	w.money("90", "0")
	op, c = w.ordered("k2", "40")
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "e2", said: said{task: c.task, state: "canceled", settled: true}}))
	w.now(op, "canceled")
	w.money("90", "0")
}

// One list tells what each job holds and has cost, and it adds up to the
// balance: 5 succeeded, 3 failed, 2 unconfirmed, 2 succeeded without a result
// (O-073).
func TestO073TheListAddsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "body-timestamp")
	lost := func(n int, _ create) *answer {
		if n > 10 {
			return &answer{status: http.StatusBadGateway}
		}
		return nil
	}
	w.provider.script(lost, nil)
	for n := range 12 {
		key := fmt.Sprint("k", n)
		op := w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/operations", priced(fmt.Sprint(n+1)), "Idempotency-Key", key)).at("id")
		if n >= 10 {
			w.state(op, "unconfirmed")
			continue
		}
		w.state(op, "running")
		created := w.provider.created()
		end := said{task: created[len(created)-1].task, state: "succeeded", version: 2, result: `{"text":"x"}`}
		if n >= 5 && n < 8 {
			end.state = "failed"
		}
		if n >= 8 {
			end.result = ""
		}
		w.want(http.StatusAccepted, w.callback(created[len(created)-1].callback, event{id: "e" + key, said: end}))
	}
	var held, charged pawl.Amount
	for _, op := range w.get("/v1/operations?page_size=100").items() {
		amount := testAmount(t, op.at("cost.amount"))
		switch state := op.at("state"); state {
		case "unconfirmed":
			held += amount
		case "succeeded":
			charged += amount
		case "failed":
			if op.at("task_id") == "" || op.at("finished_at") == "" {
				t.Errorf("a failed job without task or time: %s", op.body)
			}
		default:
			t.Errorf("state %s", state)
		}
	}
	// 1+2+3+4+5 and 9+10 are charged, 11+12 held.
	if want := testAmount(t, "34"); charged != want {
		t.Errorf("the list says %s was charged, want %s", charged, want)
	}
	if want := testAmount(t, "23"); held != want {
		t.Errorf("the list says %s is held, want %s", held, want)
	}
	w.money("66", "23")
}
