package server

import (
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/store"
)

var overdue = flag.Int("overdue", 1000, "operations of TestOverdueAfterDowntime")

// After a day of downtime in which the deadlines of many operations have passed,
// each is read before anything is decided about it; the upstream's rate is never
// exceeded, and used (1-product E4, 7-rules R26).
func TestOverdueAfterDowntime(t *testing.T) {
	const rate = 100
	n := *overdue
	inVirtualTime(t, "media-v2", func(w *world) {
		w.fill(DefaultTenant, n, time.Hour)
		for began := time.Now(); len(w.provider.created()) < n; w.pass(time.Second) {
			if time.Since(began) > 10*time.Minute {
				w.Fatalf("%d of %d are created", len(w.provider.created()), n)
			}
		}
		w.pass(time.Second)
		w.drain()
		if reads := len(w.provider.readAt()); reads != 0 {
			w.Fatalf("%d reads before the downtime", reads)
		}
		time.Sleep(24 * time.Hour)
		finished := make(map[string]bool)
		for i, c := range w.provider.created() {
			if i%2 == 0 {
				finished[c.task] = true
				w.provider.say(done(c.task))
			}
		}
		var mu sync.Mutex
		read := make(map[string]bool)
		w.provider.script(nil, func(_ int, task string) *answer {
			mu.Lock()
			defer mu.Unlock()
			read[task] = true
			return nil
		})

		w.start()
		began := time.Now()
		w.pass(time.Duration(n)*time.Second/rate + 15*time.Second)
		at := w.provider.readAt()
		if most := within(at, time.Second); most > rate {
			w.Errorf("%d reads within a second, want at most %d", most, rate)
		}
		last := at[len(at)-1].Sub(began)
		w.Logf("%d reads of %d operations, the last %s after the start; at most %d within a second", len(at), n, last, within(at, time.Second))
		if len(read) != n {
			w.Errorf("%d of %d are read within N/rate + 15 s", len(read), n)
		}
		rows, err := w.node.driver.Operations(w.Context(), store.OperationFilter{}, store.Page{Limit: n + 1})
		if err != nil || len(rows) != n {
			w.Fatalf("%d operations, %v", len(rows), err)
		}
		states := make(map[pawl.State]int)
		for _, op := range rows {
			states[op.State]++
			want := pawl.Expired
			if finished[op.Task] {
				want = pawl.Succeeded
			}
			if op.State != want || op.Reads == 0 || !read[op.Task] {
				w.Errorf("%s is %s after %d reads, want %s", op.ID.Text(pawl.PrefixOperation), op.State, op.Reads, want)
			}
		}
		if states[pawl.Succeeded] != (n+1)/2 || states[pawl.Expired] != n/2 {
			w.Errorf("states %v", states)
		}
	}, func(_ *config.Config, u *config.Upstream) {
		u.Read = config.Read{First: time.Hour, Factor: 1, Max: time.Hour, Rate: rate}
		u.Concurrency = 64
	})
}
