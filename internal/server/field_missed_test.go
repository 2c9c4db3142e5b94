package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/store"
)

// tasks waits until the provider has that many tasks.
func (w *world) tasks(n int) []create {
	w.Helper()
	for began := time.Now(); len(w.provider.created()) < n; w.pass(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			w.Fatalf("%d of %d are created", len(w.provider.created()), n)
		}
	}
	w.pass(time.Second)
	return w.provider.created()
}

// The provider ends 300 jobs in 20 minutes in which nobody listens, and never
// tells again: reads find every end, within the rate, and the gap is shown
// (1-product E1, E4; O-019).
func TestO019FinishedWhileTheReceiverWasDown(t *testing.T) {
	const n, rate = 300, 10
	ends := []said{{state: "succeeded", cost: "0.6", settled: true, result: `{"ok":true}`}, {state: "failed", code: "oom"}, {state: "canceled", settled: true}}
	inVirtualTime(t, "sim", func(w *world) {
		w.fill(DefaultTenant, n, 2*time.Hour)
		want := make(map[string]string)
		created := w.tasks(n)
		w.drain()
		stopped := time.Now()
		for i, c := range created {
			end := ends[i%len(ends)]
			end.task, want[c.task] = c.task, end.state
			w.provider.say(end)
		}
		time.Sleep(20 * time.Minute)
		before := len(w.provider.readAt())
		w.start()
		w.pass(n*time.Second/rate + 15*time.Second)
		reads := w.provider.readAt()[before:]
		if most := within(reads, time.Second); most > rate || len(reads) != n {
			w.Errorf("%d reads, up to %d a second, want %d and at most %d", len(reads), most, n, rate)
		}
		rows, err := w.node.driver.Operations(w.Context(), store.OperationFilter{}, store.Page{Limit: n + 1})
		if err != nil || len(rows) != n {
			w.Fatalf("%d operations, %v", len(rows), err)
		}
		for _, op := range rows {
			if op.State.String() != want[op.Task] {
				w.Errorf("%s is %s, want %s", op.Task, op.State, want[op.Task])
			}
		}
		if got := len(w.provider.created()); got != n {
			w.Errorf("%d creates, want %d", got, n)
		}
		var last float64
		_, _ = fmt.Sscan(w.metric("pawl_last_commit_before_start_timestamp_seconds"), &last)
		if gap := stopped.Sub(time.UnixMicro(int64(last * 1e6))); gap < 0 || gap > 5*time.Second {
			w.Errorf("the last commit is said to be %s before the stop", gap)
		}
		if text := w.log.String(); !strings.Contains(text, "20m") {
			w.Errorf("the gap is not in the log:\n%s", text)
		}
	}, func(_ *config.Config, u *config.Upstream) {
		u.Read = config.Read{First: 30 * time.Second, Factor: 1.5, Max: time.Minute, Rate: rate}
		u.Concurrency = 64
	})
}

// A provider that calls back on success only: a read finds the failure with its
// own word for it (1-product E1, D5; O-020).
func TestO020FailureIsNeverCalledBack(t *testing.T) {
	inVirtualTime(t, "media-v2", func(w *world) {
		w.endpoint()
		w.provider.call("P-31")
		op, c := w.running("k")
		w.provider.say(said{task: c.task, state: "failed", code: "oom", message: "out of memory"})
		w.pass(3 * time.Second) // the first read comes after 2 s
		r := w.now(op, "failed")
		if r.at("error.code") != "upstream_failed" || r.at("error.upstream_code") != "oom" || r.at("error.message") != "out of memory" {
			w.Errorf("error: %s", r.at("error"))
		}
		w.pass(time.Minute)
		w.told(op, "operation.running", "operation.failed")
		w.money("100", "0")
		w.line(op, "money release", 1)
		if n := len(w.sink.attempts()); n != 2 {
			w.Errorf("%d deliveries, want 2", n)
		}
	}, func(_ *config.Config, u *config.Upstream) { u.Read = config.DefaultUpstream().Read })
}

// Who is told of a state and asks at once sees at least that state: a thousand
// times, with commits that take their time (1-product H1, O-021).
func TestO021EventIsCommittedBeforeItIsSent(t *testing.T) {
	const n = 500 // two events each
	inVirtualTime(t, "sim", func(w *world) {
		w.endpoint("policy", quickly)
		w.sink.script(func(_ int, d delivery) (int, string) {
			r, err := w.try(http.MethodGet, w.node.APIURL()+"/v1/operations/"+d.op, nil, http.Header{"Authorization": {"Bearer " + adminKey}})
			var version, told int
			_, _ = fmt.Sscan(r.at("version"), &version)
			if _, _ = fmt.Sscan(d.version, &told); err != nil || version < told || d.kind == "operation.succeeded" && r.at("state") != "succeeded" {
				w.Errorf("told %s of version %d, read %d %s, %v", d.kind, told, r.status, r.body, err)
			}
			return http.StatusOK, ""
		})
		w.disk.slow.Store(int64(20 * time.Millisecond))
		w.fill(DefaultTenant, n, time.Hour)
		var senders sync.WaitGroup
		created := w.tasks(n)
		for sender := range 25 {
			senders.Go(func() {
				for i := sender; i < n; i += 25 {
					w.callback(created[i].callback, event{id: fmt.Sprint("e", i), said: done(created[i].task)})
				}
			})
		}
		senders.Wait()
		w.pass(10 * time.Second)
		seen := make(map[int64]bool)
		for _, d := range w.sink.attempts() {
			seen[d.sequence] = true
		}
		for i := int64(1); i <= 2*n; i++ {
			if !seen[i] {
				w.Errorf("sequence %d is missing", i)
			}
		}
	}, func(_ *config.Config, u *config.Upstream) { u.Concurrency = 64 })
}
