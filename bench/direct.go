package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/postgres"
)

// plainLanes is how many connections the plain way has: more of them are slower
// on two cores.
const plainLanes = 16

// direct is a ledger in PostgreSQL without a node, and two ways to commit the
// same commands by the same statements.
type direct struct {
	*stage
	driver *postgres.Driver
	group  *store.Lanes
	single []*store.Committer
	up     ledger.Upstream
	events int
}

// directOperations is how many running operations get the events.
const directOperations = 1000

func openDirect(ctx context.Context, st *stage, database string) (*direct, error) {
	driver, err := postgres.Open(ctx, database, postgres.Options{Lanes: plainLanes})
	if err != nil {
		return nil, err
	}
	d := &direct{stage: st, driver: driver, group: store.NewLanes(driver, postgres.Lanes, store.Options{})}
	for range plainLanes {
		d.single = append(d.single, store.NewCommitter(driver, store.Options{Batch: 1}))
	}
	d.up = ledger.Upstream{
		Name: "bench", Adapter: "bench/1", Callbacks: true, Reads: true, ReadFirst: time.Hour, ReadMax: time.Hour, ReadFactor: 1500,
		Concurrency: 64, Timeout: 30 * time.Second, SubmitAttempts: 5, SettleWithin: 24 * time.Hour, ParkOrphans: true, OrphanLimit: 1000,
	}
	return d, d.prepare(ctx)
}

func (d *direct) close() {
	_ = d.group.Drain(context.Background())
	for _, c := range d.single {
		_ = c.Close()
	}
	_ = d.driver.Close()
}

// prepare makes running operations of one tenant, on one account.
func (d *direct) prepare(ctx context.Context) error {
	const tenant = "default"
	commands := []ledger.Command{ledger.EnsureTenant{Header: store.NewHeader(""), Name: tenant, Currency: "USD", Opening: 1_000_000 * pawl.AmountScale}}
	if _, err := d.all(ctx, commands); err != nil {
		return err
	}
	commands = nil
	for n := range directOperations {
		commands = append(commands, ledger.Submit{
			Header: store.NewHeader(""), Tenant: tenant, Key: strconv.Itoa(n), Window: time.Hour, Up: d.up, Model: "m", Input: "{}",
			Deadline: pawl.TimeOf(time.Now().Add(24 * time.Hour)), Metered: true, Price: pawl.Money{Amount: 1000, Currency: "USD"},
		})
	}
	if _, err := d.all(ctx, commands); err != nil {
		return err
	}
	lease := ledger.LeaseWork{Header: store.NewHeader(""), Queue: ledger.WorkQueueID(ledger.SubmitQueue, d.up.Name, tenant), Limit: directOperations, Up: d.up}
	values, err := d.all(ctx, []ledger.Command{lease})
	if err != nil {
		return err
	}
	commands = nil
	for n, l := range values[0].([]ledger.Lease) {
		commands = append(commands, ledger.RecordCreate{
			Header: store.NewHeader(""), Up: d.up, Operation: l.Operation.ID, Fence: l.Fence, Outcome: ledger.CreateAccepted, Task: task(n), Status: 200,
		})
	}
	_, err = d.all(ctx, commands)
	return err
}

func task(n int) string { return fmt.Sprint("task-", n) }

func (d *direct) all(ctx context.Context, commands []ledger.Command) (values []any, err error) {
	for _, r := range d.group.DoAll(ctx, commands...) {
		if r.Err != nil {
			return nil, r.Err
		}
		if r.Outcome.Err != nil {
			return nil, r.Outcome.Err
		}
		values = append(values, r.Outcome.Value)
	}
	return values, nil
}

func (d *direct) grouped(ctx context.Context) (result, error) {
	return d.take(ctx, func(int) store.Commands { return d.group })
}

func (d *direct) plain(ctx context.Context) (result, error) {
	return d.take(ctx, func(int) store.Commands { return d.single[rand.IntN(len(d.single))] })
}

// take sends distinct events of 1 KB from as many callers as there are
// connections elsewhere. The processor time is that of this program.
func (d *direct) take(ctx context.Context, way func(n int) store.Commands) (result, error) {
	first := d.events
	r, err := d.load(ctx, []int{os.Getpid()}, func(ctx context.Context, n int) error {
		n += first
		out, err := way(n).Do(ctx, ledger.ReceiveEvent{
			Header: store.NewHeader(""), Up: d.up, Event: strconv.Itoa(n), Type: "task.updated", Body: padding[:1000], Digest: ledger.Digest{1},
			Obs: ledger.Observation{Task: task(n % directOperations), Word: "busy", State: pawl.Running, Progress: int32(n % 10000)},
		})
		if err == nil && out.Err != nil {
			err = out.Err
		}
		return err
	})
	d.events += int(r.perSecond*d.s.length.Seconds()*2) + 1000
	return r, err
}
