package sqlite

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// changeCommand does as it is told.
type changeCommand func(*ledger.Draft)

func (changeCommand) Head() ledger.Header { return ledger.Header{} }
func (changeCommand) Keys(*ledger.Keys)   {}
func (c changeCommand) Decide(d *ledger.Draft) ledger.Outcome {
	c(d)
	return ledger.Outcome{}
}

func benchOperation(n int) ledger.Operation {
	return ledger.Operation{
		ID: testID(n), Tenant: fmt.Sprint("tenant-", n%7), APIKey: testID(1), Upstream: "media-v2", Model: "video/fast",
		Adapter: "media-v2/1", Owner: "team", State: pawl.Running, Version: 2, Task: fmt.Sprintf("%032x", n*7919),
		UpstreamVersion: -1, Progress: -1, Account: testID(2), Currency: "USD", Reserved: 1, Money: ledger.Held,
		CreatedAt: 1_760_000_000_000_000, Deadline: 1_760_000_000_000_000, DueAt: pawl.Time(1_760_000_000_000_000 + n),
		Queue: ledger.ReadQueue,
	}
}

// BenchmarkCommit commits batches of a usual command: an event comes in and
// moves an operation.
func BenchmarkCommit(b *testing.B) {
	const stored = 20000
	for _, size := range []int{1, 64} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d := openTest(b, Options{})
			for n := 0; n < stored; n += 1000 {
				rows := new(ledger.Rows)
				ledger.NewDraft(rows).Run(changeCommand(func(d *ledger.Draft) {
					for i := n; i < n+1000; i++ {
						op := benchOperation(i)
						d.Operations.Put(op.ID, op)
					}
				}), 1)
				update(b, d, n, rows)
			}
			body := strings.Repeat("x", 1000)
			next := 0
			pagesWritten(b, d)
			b.ReportAllocs()
			for b.Loop() {
				err := d.Update(context.Background(), testID(next), func(tx store.Tx) error {
					var keys ledger.Keys
					for i := range size {
						keys.Operations = append(keys.Operations, testID((next+i)%stored))
					}
					rows := new(ledger.Rows)
					if err := tx.Load(&keys, rows); err != nil {
						return err
					}
					draft := ledger.NewDraft(rows)
					for range size {
						draft.Run(changeCommand(func(d *ledger.Draft) { receive(d, next%stored, next, body) }), 1)
						next++
					}
					return tx.Save(rows)
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "commands/s")
			b.ReportMetric(float64(pagesWritten(b, d))/float64(next), "pages/command")
		})
	}
}

// receive is one event for one operation.
func receive(d *ledger.Draft, operation, n int, body string) {
	op, _ := d.Operations.Get(testID(operation))
	op.Version++
	op.UpdatedAt++
	op.UpstreamState, op.Progress = "working", int32(n)
	op.DueAt += 1000
	d.Operations.Put(op.ID, op)
	event := ledger.Event{
		ID: testID(1e8 + n), Direction: ledger.Inbound, Tenant: op.Tenant, Operation: op.ID, Type: "task.progress",
		Source: op.Upstream, Task: op.Task, ExternalID: fmt.Sprint("evt-", n), Word: "working", Verdict: pawl.Applied, Snapshot: body,
	}
	d.Events.Put(event.ID, event)
}

// pagesWritten is how many pages the writer wrote since it was last asked.
func pagesWritten(b *testing.B, d *Driver) int64 {
	n, _, err := d.write.db.Status(sqlite3.DBSTATUS_CACHE_WRITE, true)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
