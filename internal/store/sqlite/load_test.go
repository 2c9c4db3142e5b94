package sqlite

import (
	"context"
	"encoding/binary"
	settings "flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// loadFor is how long the test of a node under load runs; a minute or more
// tells what happens when the log has been restarted many times.
var loadFor = settings.Duration("load", time.Second, "how long the load of TestO116Load lasts")

// rush is many callers who run the ledger's own commands at once, by the
// clock.
type rush struct {
	c        *store.Committer
	commands atomic.Int64
	commits  atomic.Int64
	n        atomic.Int64
	failed   atomic.Pointer[string]
	// answered, if not nil, is told of each answer.
	answered func(ledger.Outcome)
}

const rushTenants = 8

// rushUpstream is read soon, so that queues turn over.
var rushUpstream = ledger.Upstream{
	Name: "studio", Adapter: "media-v2/1", Callbacks: true, Reads: true, ReadFirst: time.Millisecond, ReadMax: time.Second,
	ReadFactor: 1500, Timeout: 30 * time.Second, SubmitAttempts: 3, SettleWithin: time.Hour, ParkOrphans: true, OrphanLimit: 1000,
}

func rushHead() ledger.Header {
	var h ledger.Header
	binary.BigEndian.PutUint64(h.Seed[:8], rand.Uint64())
	binary.BigEndian.PutUint64(h.Seed[8:], rand.Uint64())
	return h
}

// do runs a command; its refusal is an answer, an error of the store ends the
// rush.
func (r *rush) do(c ledger.Command) ledger.Outcome {
	out, err := r.c.Do(context.Background(), c)
	if err != nil {
		text := fmt.Sprintf("%T: %v", c, err)
		r.failed.CompareAndSwap(nil, &text)
	} else if r.answered != nil {
		r.answered(out)
	}
	r.commands.Add(1)
	return out
}

func rushTenant(n int64) string { return fmt.Sprint("tenant-", n%rushTenants) }

func rushEndpoint(n int64) pawl.ID { return testID(int(n % rushTenants)) }

func (r *rush) open() {
	for n := range int64(rushTenants) {
		r.do(ledger.EnsureTenant{Header: rushHead(), Name: rushTenant(n), Currency: "USD", Opening: 1e15})
		r.endpoint(rushEndpoint(n), n)
	}
}

func (r *rush) endpoint(id pawl.ID, n int64) {
	r.do(ledger.CreateEndpoint{Header: rushHead(), Endpoint: ledger.Endpoint{
		ID: id, Tenant: rushTenant(n), URL: "https://example.com/hook", Scheme: "standard", Secret: "s",
	}})
}

// submit is a caller's round: an operation, and callbacks about it that may
// come before the create's answer.
func (r *rush) submit() {
	n := r.n.Add(1)
	op, ok := r.do(ledger.Submit{
		Header: rushHead(), Tenant: rushTenant(n), APIKey: testID(1), Key: fmt.Sprint(n), Window: time.Hour, Up: rushUpstream, Model: "m",
		Input: `{"prompt":"a lighthouse at dusk"}`, Deadline: pawl.TimeOf(time.Now().Add(time.Hour)), Metered: n%4 > 0, Price: pawl.Money{Amount: 30, Currency: "USD"},
	}).Value.(ledger.Submitted)
	if !ok {
		return
	}
	o := ledger.Observation{Task: rushTask(op.Operation.ID), State: pawl.Running, Word: "running", Progress: -1}
	if n%3 > 0 {
		r.event("start", o)
	}
	if n%3 > 1 {
		o.State, o.Word, o.Result = pawl.Succeeded, "done", `{"url":"https://example.com/result"}`
		o.HasCost, o.Cost, o.CostText, o.Settled = true, 20, "20", ledger.SettledYes
		r.event("end", o)
		r.event("end", o)
	}
	if n%200 == 0 {
		r.change(n)
	}
}

func rushTask(op pawl.ID) string { return "task-" + op.Suffix() }

func (r *rush) event(id string, o ledger.Observation) {
	r.do(ledger.ReceiveEvent{Header: rushHead(), Up: rushUpstream, Event: id, Type: "task.updated", Obs: o, Body: `{"task":"` + o.Task + `"}`})
}

// work is a node's round for one tenant: it leases what is due, as one loop
// does, and records what came of it, each on its own.
func (r *rush) work(n int64) {
	var under sync.WaitGroup
	for _, kind := range [...]ledger.QueueKind{ledger.SubmitQueue, ledger.ReadQueue} {
		out := r.do(ledger.LeaseWork{Header: rushHead(), Queue: ledger.WorkQueueID(kind, rushUpstream.Name, rushTenant(n)), Limit: 32, Up: rushUpstream})
		leases, _ := out.Value.([]ledger.Lease)
		for _, l := range leases {
			under.Go(func() { r.act(l) })
		}
	}
	r.deliver(&under, rushEndpoint(n))
	under.Wait()
}

func (r *rush) act(l ledger.Lease) {
	id := l.Operation.ID
	switch {
	case l.Action == ledger.ActSubmit && id[15]%16 == 0:
		r.do(ledger.RecordCreate{Header: rushHead(), Up: rushUpstream, Operation: id, Fence: l.Fence, Outcome: ledger.CreateUnknown})
	case l.Action == ledger.ActSubmit:
		r.do(ledger.RecordCreate{Header: rushHead(), Up: rushUpstream, Operation: id, Fence: l.Fence, Outcome: ledger.CreateAccepted, Task: rushTask(id)})
	case l.Action == ledger.ActRead:
		o := ledger.Observation{Task: rushTask(id), State: pawl.Running, Word: "running", Progress: 100 * l.Operation.Reads}
		if l.Operation.Reads > 1 {
			o.State, o.Word = pawl.Failed, "failed"
		}
		r.do(ledger.ObserveStatus{Header: rushHead(), Up: rushUpstream, Operation: id, Fence: l.Fence, Outcome: ledger.ReadObserved, Obs: o})
	}
}

func (r *rush) deliver(under *sync.WaitGroup, endpoint pawl.ID) {
	out := r.do(ledger.LeaseDeliveries{Header: rushHead(), Endpoint: endpoint, Limit: 32, Timeout: time.Second})
	rows, _ := out.Value.([]ledger.Delivery)
	for i, row := range rows {
		under.Go(func() {
			r.do(ledger.RecordAttempt{
				Header: rushHead(), Delivery: row.ID, Endpoint: endpoint, Fence: row.Lease, Policy: ledger.DefaultPolicy(),
				At: pawl.TimeOf(time.Now()), Status: [...]int32{200, 200, 503}[i%3], Body: "{}",
			})
		})
	}
}

// change makes an endpoint that lives for as long as this call.
func (r *rush) change(n int64) {
	id := pawl.NewID(pawl.TimeOf(time.Now()), rand.Uint64())
	types := pawl.TypeSucceeded
	var under sync.WaitGroup
	defer under.Wait()
	r.endpoint(id, n)
	r.deliver(&under, id)
	r.do(ledger.ChangeEndpoint{Header: rushHead(), Tenant: rushTenant(n), ID: id, Action: "change", Change: ledger.EndpointChange{Types: &types}})
	r.deliver(&under, id)
	r.do(ledger.ChangeEndpoint{Header: rushHead(), Tenant: rushTenant(n), ID: id, Action: "delete", Change: ledger.EndpointChange{Delete: true}})
}

// until runs fn again and again in n goroutines.
func until(ctx context.Context, all *sync.WaitGroup, n int, fn func()) {
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				fn()
			}
		})
	}
}

// TestO116Load runs a full node's commands while others read and the ledger is
// checked: the log stays bounded, and no check sees a state halfway.
func TestO116Load(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := &rush{}
	r.c = store.NewCommitter(d, store.Options{OnCommit: func(store.Commit) { r.commits.Add(1) }})
	r.open()
	ctx, cancel := context.WithTimeout(t.Context(), *loadFor)
	defer cancel()
	var all sync.WaitGroup
	var largest int64
	checks := 0
	until(ctx, &all, 256, r.submit)
	for n := range int64(rushTenants) {
		until(ctx, &all, 1, func() { r.work(n) })
	}
	until(ctx, &all, 3, func() { look(t, d, rushTenant(r.n.Load())) })
	until(ctx, &all, 1, func() {
		if info, err := os.Stat(filepath.Join(dir, fileName+"-wal")); err == nil {
			largest = max(largest, info.Size())
		}
		time.Sleep(time.Millisecond)
	})
	until(ctx, &all, 1, func() {
		checkBeside(t, dir)
		checks++
	})
	other, err := connect(t.Context(), filepath.Join(dir, fileName), sqlite3.OPEN_READWRITE, "")
	if err != nil {
		t.Fatal(err)
	}
	defer other.db.Close()
	until(ctx, &all, 1, func() { writeBeside(t, other) })
	all.Wait()
	if err := r.c.Close(); err != nil {
		t.Error(err)
	}
	if text := r.failed.Load(); text != nil {
		t.Error(*text)
	}
	checkBeside(t, dir)
	t.Logf("%d commands in %d commits in %s, %.0f a second; %d checks beside them; the log had %d MB at most",
		r.commands.Load(), r.commits.Load(), *loadFor, float64(r.commands.Load())/loadFor.Seconds(), checks, largest>>20)
	if largest == 0 || largest > 256<<20 {
		t.Errorf("the log grew to %d bytes", largest)
	}
}

// writeBeside writes a little, as a person with a database tool might: whoever
// reads first and writes later would be refused at once, however long it is
// ready to wait.
func writeBeside(t *testing.T, c *conn) {
	if err := c.db.Exec("BEGIN IMMEDIATE; UPDATE batches SET number = number; COMMIT"); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Millisecond)
}

// look reads a page of operations and their timelines, a few times a second.
func look(t *testing.T, d *Driver, tenant string) {
	rows, err := d.Operations(t.Context(), store.OperationFilter{Tenant: tenant}, store.Page{Limit: 20})
	if err != nil {
		t.Error(err)
	}
	for _, op := range rows {
		if _, err := d.History(t.Context(), op.ID); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(20 * time.Millisecond)
}

// checkBeside checks the ledger as another process would beside a node.
func checkBeside(t *testing.T, dir string) {
	reader, err := OpenReadOnly(t.Context(), dir)
	if err != nil {
		t.Error(err)
		return
	}
	defer reader.Close()
	if _, err := store.Check(t.Context(), reader, func(v ledger.Violation) error {
		t.Error("false alarm:", v)
		return nil
	}, nil); err != nil {
		t.Error(err)
	}
}
