package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/internal/store"
)

// BenchmarkIntake takes events of 1 KB, each of which moves one of 1,000
// operations, from many callers at once; with batches of one, as the plain way
// would, and with those that gather by themselves.
func BenchmarkIntake(b *testing.B) {
	for _, callers := range []int{64, 256} {
		for name, batch := range map[string]int{"plain": 1, "grouped": 0} {
			b.Run(fmt.Sprintf("%d callers, %s", callers, name), func(b *testing.B) {
				d := openTest(b, pgtest.Database(b))
				leases := prepare(b, d, 1000)
				batcher := store.NewBatcher(d, store.Options{})
				for n := range leases {
					if n%200 == 0 {
						var commands []ledger.Command
						for i := n; i < n+200; i++ {
							commands = append(commands, ledger.RecordCreate{
								Header: store.NewHeader(""), Up: upstream, Operation: leases[i].Operation.ID, Fence: leases[i].Fence,
								Outcome: ledger.CreateAccepted, Task: fmt.Sprint("task ", i), Status: 200,
							})
						}
						run(b, batcher, commands...)
					}
				}
				c := store.NewCommitter(d, store.Options{Batch: batch})
				defer c.Close()
				body := strings.Repeat("x", 1000)
				var next atomic.Int64
				var group sync.WaitGroup
				b.ResetTimer()
				for range callers {
					group.Go(func() {
						for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
							e := callback(int(n) % len(leases))
							e.Event, e.Body = fmt.Sprint(n), body
							e.Obs.State, e.Obs.Word, e.Obs.Result, e.Obs.Progress = pawl.Running, "busy", "", int32(n%10000)
							if _, err := c.Do(context.Background(), e); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
			})
		}
	}
}
