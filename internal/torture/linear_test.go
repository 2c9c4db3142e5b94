package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/sim"
)

// history is what callers of several nodes saw, in real time: each call with its
// beginning, its end, and the answer. A call without an answer that says what
// became of it has no end: it may take effect at any time, or never.
type history struct {
	began time.Time
	mu    sync.Mutex
	calls []porcupine.Operation
}

func (h *history) record(client int, call func() (in, out any, known bool)) {
	began := time.Since(h.began).Nanoseconds()
	in, out, known := call()
	ended := time.Since(h.began).Nanoseconds()
	if !known {
		ended = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, porcupine.Operation{ClientId: client, Input: in, Call: began, Output: out, Return: ended})
}

// submitted is a submission under a key, and its answer; status 0 where nobody
// knows whether it took effect.
type submitted struct{ key, body string }

type submitAnswer struct {
	status   int
	id       string
	replayed bool
}

// keyState is what a key stands for: nothing, or one operation with one body. The
// id is empty while nobody was told it.
type keyState struct{ body, id string }

// submitModel is a key in one place (1-product A2, A3, A6; 7-rules R1, R5): the
// first submission makes the operation, the same one again finds it, another one
// is refused.
var submitModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		return partition(all, func(o porcupine.Operation) string { return o.Input.(submitted).key })
	},
	Init: func() any { return keyState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(keyState), input.(submitted), output.(submitAnswer)
		first := s == keyState{}
		switch {
		case out.status == 0 && first:
			return true, keyState{body: in.body}
		case out.status == 0:
			return true, s
		case out.status == http.StatusUnprocessableEntity:
			return !first && in.body != s.body, s
		case first:
			return !out.replayed, keyState{in.body, out.id}
		case s.id == "":
			return out.replayed && in.body == s.body, keyState{s.body, out.id}
		}
		return out.replayed && in.body == s.body && out.id == s.id, s
	},
}

// workCall is a lease or a report of own workers, of one operation.
type workCall struct {
	operation string
	complete  bool
	attempt   int
}

// workAnswer is "ok", "lost" or "unknown".
type workAnswer string

// workState is who has the operation: its latest lease, and whether that one has
// completed it.
type workState struct {
	attempt int
	done    bool
}

// workModel is the fence (7-rules §4): each lease is a later one than all before
// it, a report counts under the latest lease alone, and once. Leases whose
// answers were lost are unknown to all, so numbers may be left out, and such a
// lease may have taken an operation away.
var workModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		return partition(all, func(o porcupine.Operation) string { return o.Input.(workCall).operation })
	},
	Init: func() any { return workState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in := state.(workState), input.(workCall)
		switch out := output.(workAnswer); {
		case !in.complete:
			return !s.done && in.attempt > s.attempt, workState{attempt: in.attempt}
		case out == "ok":
			return in.attempt == s.attempt, workState{in.attempt, true}
		case out == "lost":
			return true, s
		case !s.done && in.attempt == s.attempt: // Unknown: perhaps it counted.
			return true, workState{in.attempt, true}
		}
		return true, s
	},
}

func partition(all []porcupine.Operation, key func(porcupine.Operation) string) [][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, o := range all {
		parts[key(o)] = append(parts[key(o)], o)
	}
	var out [][]porcupine.Operation
	for _, p := range parts {
		out = append(out, p)
	}
	return out
}

// linear is several nodes on one PostgreSQL with callers of their own.
type linear struct {
	*testing.T
	run  *run
	http *http.Client
}

func newLinear(t *testing.T) *linear {
	o := Options{Database: os.Getenv(pgtest.Variable), Nodes: 3, Progress: t.Output()}
	r := &run{o: o, began: time.Now(), plan: sim.NewPlan(1, 1, sim.Options{})}
	var err error
	if r.sim, err = sim.NewServer(r.plan, sim.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.sim.Close() })
	// Nobody is there: what is submitted stays as it is.
	r.cluster, err = newCluster(t.Context(), t.TempDir(), o, "http://127.0.0.1:1", r.sim)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.cluster.close(false); err != nil {
			t.Error(err)
		}
	})
	for _, n := range r.cluster.nodes {
		if err := n.run(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	return &linear{t, r, &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// call makes one request, once: nothing repeats it, so that one call is one line
// of the history. The status is 0 where no answer came.
func (l *linear) call(path, key string, body, into any) (status int, header http.Header) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+l.run.cluster.front.address()+path, bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+l.run.cluster.key)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := l.http.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode < 300 && res.StatusCode != http.StatusNoContent && json.Unmarshal(answer, into) != nil {
		return 0, nil
	}
	if res.StatusCode >= 300 && res.StatusCode != 422 && res.StatusCode != 409 && res.StatusCode != 503 {
		l.Errorf("%s: %d: %s", path, res.StatusCode, answer)
	}
	return res.StatusCode, res.Header
}

// suffer strikes while the callers call, and ends them afterwards.
func (l *linear) suffer(seed uint64, faults int, callers ...func(ctx context.Context)) {
	ctx, over := context.WithCancel(l.Context())
	defer over()
	var calling, under sync.WaitGroup
	for _, c := range callers {
		calling.Go(func() { c(ctx) })
	}
	for _, s := range Plan(seed, faults, len(l.run.cluster.nodes), []Fault{Kill, Doze, Cut, Away, Terminate, Slow}) {
		if err := pause(ctx, s.After); err != nil {
			l.Fatal(err)
		}
		n, err := l.run.victim(ctx, s.Node)
		if err != nil {
			l.Fatal(err)
		}
		l.run.tell("%s", s.words(n))
		under.Go(func() {
			defer n.faulty.Unlock()
			if err := l.run.befall(l.Context(), n, s); err != nil {
				l.Error(err)
			}
		})
	}
	under.Wait()
	over()
	calling.Wait()
}

// check wants a history that some order of its calls explains; with one more
// call, false to one of them, none may.
func (l *linear) check(model porcupine.Model, h *history, falsify func(porcupine.Operation) (porcupine.Operation, bool)) {
	l.Helper()
	if !porcupine.CheckOperations(model, h.calls) {
		for _, part := range model.Partition(h.calls) {
			if !porcupine.CheckOperations(model, part) {
				l.Errorf("no order explains %+v", part)
			}
		}
	}
	for _, o := range h.calls {
		lie, possible := falsify(o)
		if !possible {
			continue
		}
		if porcupine.CheckOperations(model, append(slices.Clone(h.calls), lie)) {
			l.Errorf("a false answer is not found: %+v", lie)
		}
		return
	}
	l.Error("there is nothing to falsify: too little happened")
}

// However many nodes take them, and whatever befalls these, submissions under
// one key are as if one after the other (1-product A2, A5).
func TestSubmitIsLinearizable(t *testing.T) {
	t.Parallel()
	l, h := newLinear(t), &history{began: time.Now()}
	const keys = 400
	var callers []func(context.Context)
	for c := range 8 {
		dice := rand.New(rand.NewPCG(1, uint64(c)))
		callers = append(callers, func(ctx context.Context) {
			// All go over the keys together, so that they meet.
			for n := range keys {
				for range 2 {
					if ctx.Err() != nil {
						return
					}
					in := submitted{fmt.Sprint("key-", n+dice.IntN(2)), fmt.Sprint("body-", dice.IntN(4)/3)}
					h.record(c, func() (any, any, bool) { return l.submit(in) })
				}
			}
		})
	}
	l.suffer(1, 10, callers...)
	kinds := make(map[int]int)
	for _, o := range h.calls {
		kinds[o.Output.(submitAnswer).status]++
	}
	t.Logf("%d calls, by status: %v", len(h.calls), kinds)
	// Another node makes an operation of its own under a key that is taken.
	l.check(submitModel, h, func(o porcupine.Operation) (porcupine.Operation, bool) {
		out := o.Output.(submitAnswer)
		o.Output = submitAnswer{out.status, out.id + "x", false}
		return o, out.id != ""
	})
}

func (l *linear) submit(in submitted) (any, any, bool) {
	var op struct{ ID string }
	status, header := l.call("/v1/operations", in.key, map[string]any{"upstream": "sim", "model": "m", "input": map[string]string{"b": in.body}}, &op)
	if status == 0 || status == http.StatusServiceUnavailable {
		return in, submitAnswer{}, false
	}
	if status != http.StatusUnprocessableEntity {
		status = http.StatusOK
	}
	return in, submitAnswer{status, op.ID, header.Get("Idempotency-Replayed") == "true"}, true
}

// An operation has one worker at a time, whichever node gave it the lease: who
// has lost it cannot complete it any more (7-rules §4).
func TestLeaseIsLinearizable(t *testing.T) {
	t.Parallel()
	l, h := newLinear(t), &history{began: time.Now()}
	var callers []func(context.Context)
	callers = append(callers, func(ctx context.Context) {
		for n := 0; n < 200 && ctx.Err() == nil; n++ {
			l.call("/v1/operations", fmt.Sprint("work-", n), map[string]any{"upstream": "hands", "model": "m", "input": map[string]int{"n": n}}, new(any))
			_ = pause(ctx, 50*time.Millisecond)
		}
	})
	for c := range 6 {
		dice := rand.New(rand.NewPCG(2, uint64(c)))
		callers = append(callers, func(ctx context.Context) {
			for ctx.Err() == nil {
				l.work(h, c, dice)
			}
		})
	}
	l.suffer(2, 10, callers...)
	lost, done := 0, 0
	for _, o := range h.calls {
		switch o.Output {
		case workAnswer("lost"):
			lost++
		case workAnswer("ok"):
			done++
		}
	}
	t.Logf("%d calls; %d reports were refused", len(h.calls), lost)
	if done == 0 {
		t.Error("nothing was done")
	}
	// Another node gives out the same lease.
	l.check(workModel, h, func(o porcupine.Operation) (porcupine.Operation, bool) { return o, o.Output == workAnswer("leased") })
}

// work leases one operation and completes it: in time, or long after its lease
// has run out, so that another one may have it.
func (l *linear) work(h *history, client int, dice *rand.Rand) {
	var lease struct {
		Lease     string
		Operation struct{ ID string }
		Attempt   int
	}
	begun := time.Since(h.began).Nanoseconds()
	if status, _ := l.call("/v1/work/lease", "", map[string]any{"wait": 1}, &lease); status != http.StatusOK {
		return // What nobody knows of runs out.
	}
	in := workCall{operation: lease.Operation.ID, attempt: lease.Attempt}
	h.mu.Lock()
	h.calls = append(h.calls, porcupine.Operation{ClientId: client, Input: in, Call: begun, Output: workAnswer("leased"), Return: time.Since(h.began).Nanoseconds()})
	h.mu.Unlock()
	if dice.IntN(3) == 0 {
		time.Sleep(time.Second + time.Duration(dice.IntN(1500))*time.Millisecond)
	}
	in.complete = true
	h.record(client, func() (any, any, bool) {
		status, _ := l.call("/v1/work/"+lease.Lease+"/complete", "", map[string]any{"result": lease.Attempt}, new(any))
		switch status {
		case http.StatusOK:
			return in, workAnswer("ok"), true
		case http.StatusConflict:
			return in, workAnswer("lost"), true
		}
		return in, workAnswer("unknown"), false
	})
}

// The checker finds what must not be: an answer that no order explains.
func TestWhatTheCheckerFinds(t *testing.T) {
	t.Parallel()
	at := func(in, out any, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: out, Call: call, Return: end}
	}
	k := func(body string) submitted { return submitted{"k", body} }
	lease := func(n int) workCall { return workCall{"op", false, n} }
	done := func(n int) workCall { return workCall{"op", true, n} }
	ok := func(id string, replayed bool) submitAnswer { return submitAnswer{200, id, replayed} }
	for name, tc := range map[string]struct {
		model porcupine.Model
		right bool
		calls []porcupine.Operation
	}{
		"two nodes make one operation each":       {submitModel, false, []porcupine.Operation{at(k("a"), ok("1", false), 0, 9), at(k("a"), ok("2", false), 1, 8)}},
		"the second one finds the first":          {submitModel, true, []porcupine.Operation{at(k("a"), ok("1", false), 0, 9), at(k("a"), ok("1", true), 1, 8)}},
		"another body is taken":                   {submitModel, false, []porcupine.Operation{at(k("a"), ok("1", false), 0, 2), at(k("b"), ok("1", true), 3, 4)}},
		"refused before there was anything":       {submitModel, false, []porcupine.Operation{at(k("b"), submitAnswer{status: 422}, 0, 1), at(k("a"), ok("1", false), 2, 3)}},
		"what was answered is forgotten":          {submitModel, false, []porcupine.Operation{at(k("a"), ok("1", false), 0, 1), at(k("a"), ok("2", false), 2, 3)}},
		"a lost answer took effect":               {submitModel, true, []porcupine.Operation{at(k("a"), submitAnswer{}, 0, math.MaxInt64), at(k("a"), ok("1", true), 2, 3)}},
		"one lease is given twice":                {workModel, false, []porcupine.Operation{at(lease(1), workAnswer("leased"), 0, 9), at(lease(1), workAnswer("leased"), 1, 8)}},
		"the old worker writes over the new":      {workModel, false, []porcupine.Operation{at(lease(1), workAnswer("leased"), 0, 1), at(lease(2), workAnswer("leased"), 2, 3), at(done(1), workAnswer("ok"), 4, 5)}},
		"the old worker was in time":              {workModel, true, []porcupine.Operation{at(lease(1), workAnswer("leased"), 0, 1), at(done(1), workAnswer("ok"), 2, 5), at(done(1), workAnswer("ok"), 6, 7)}},
		"leased after it was done":                {workModel, false, []porcupine.Operation{at(lease(1), workAnswer("leased"), 0, 1), at(done(1), workAnswer("ok"), 2, 3), at(lease(2), workAnswer("leased"), 4, 5)}},
		"the old worker is refused, the new not":  {workModel, true, []porcupine.Operation{at(lease(1), workAnswer("leased"), 0, 1), at(lease(2), workAnswer("leased"), 2, 3), at(done(1), workAnswer("lost"), 4, 5), at(done(2), workAnswer("ok"), 6, 7)}},
		"a report without an answer counted late": {workModel, false, []porcupine.Operation{at(lease(1), workAnswer("leased"), 0, 1), at(lease(2), workAnswer("leased"), 4, 5), at(done(2), workAnswer("ok"), 6, 7), at(done(1), workAnswer("ok"), 8, 9)}},
	} {
		if got := porcupine.CheckOperations(tc.model, tc.calls); got != tc.right {
			t.Errorf("%s: %v", strings.TrimSpace(name), got)
		}
	}
}
