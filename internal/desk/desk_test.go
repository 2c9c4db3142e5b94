package desk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/upstream"
)

// office is a desk over a ledger in memory, with two upstreams of own workers.
type office struct {
	*testing.T
	desk   *Desk
	driver *memory.Store
	store  *store.Committer
	set    upstream.Set
	// before is called before each command; commands counts them.
	before   func(ledger.Command)
	commands atomic.Int64
	broken   atomic.Bool
	jobs     int
}

// Do implements [store.Commands] for the desk.
func (o *office) Do(ctx context.Context, c ledger.Command) (ledger.Outcome, error) {
	o.commands.Add(1)
	if o.before != nil {
		o.before(c)
	}
	return o.store.Do(ctx, c)
}

// DoAll implements [store.Commands].
func (o *office) DoAll(ctx context.Context, c ...ledger.Command) []store.Result {
	return o.store.DoAll(ctx, c...)
}

// reader fails while the office is broken.
type reader struct {
	store.Reader
	o *office
}

func (r reader) WorkLines(ctx context.Context, limit int) ([]store.Line, error) {
	if r.o.broken.Load() {
		return nil, errors.New("the disk is away")
	}
	return r.Reader.WorkLines(ctx, limit)
}

func newOffice(t *testing.T, most int) *office {
	t.Helper()
	o := &office{T: t, driver: memory.New(memory.Options{}), set: upstream.Set{}}
	for _, name := range []string{"a", "b"} {
		settings := config.DefaultUpstream()
		settings.Preset = config.PresetWorker
		spec, _ := upstream.Preset(config.PresetWorker)
		up, err := upstream.New(name, spec, settings)
		if err != nil {
			t.Fatal(err)
		}
		o.set[name] = up
	}
	o.store = store.NewCommitter(o.driver, store.Options{OnCommit: func(c store.Commit) { o.desk.Committed(c.Rows) }})
	o.desk = New(Options{Store: o, Reader: reader{o.driver, o}, Upstreams: o.set, Most: most})
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() { defer close(stopped); o.desk.Run(ctx) }()
	t.Cleanup(func() { stop(); <-stopped; _ = o.store.Close() })
	return o
}

// submit submits an operation and gives its id.
func (o *office) submit(up, tenant, model string) pawl.ID {
	o.Helper()
	o.jobs++
	out, err := o.store.Do(o.Context(), ledger.Submit{
		Header: store.NewHeader(""), Tenant: tenant, Key: fmt.Sprint("k", o.jobs), Up: o.set[up].Policy(), Model: model, Input: "{}", Window: time.Hour,
		Deadline: pawl.TimeOf(time.Now().Add(time.Hour)),
	})
	if err != nil || out.Err != nil {
		o.Fatal(err, out.Err)
	}
	return out.Value.(ledger.Submitted).Operation.ID
}

func (o *office) lease(a Ask, wait time.Duration) []ledger.WorkLease {
	o.Helper()
	leases, err := o.desk.Lease(o.Context(), a, wait)
	if err != nil {
		o.Fatal(err)
	}
	return leases
}

func (o *office) waiting(n int) {
	o.Helper()
	for began := time.Now(); o.desk.Waiters() != n; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			o.Fatalf("%d wait, want %d", o.desk.Waiters(), n)
		}
	}
}

// Upstreams and tenants have a turn each before one has two; in a turn the oldest
// goes first, of whatever model (1-product B5).
func TestTurns(t *testing.T) {
	o := newOffice(t, 0)
	want := map[pawl.ID]string{}
	add := func(up, tenant, model string, n int) {
		for i := range n {
			want[o.submit(up, tenant, model)] = fmt.Sprint(up, tenant, model, i)
		}
	}
	add("a", "t", "m", 2)
	add("a", "t", "n", 2)
	add("a", "u", "m", 3)
	add("b", "t", "m", 1)
	var got []string
	for range 8 {
		l := o.lease(Ask{Limit: 1}, 0)
		got = append(got, want[l[0].Operation.ID])
	}
	turns := []string{"atm0", "aum0", "btm0", "atm1", "aum1", "atn0", "aum2", "atn1"}
	if !slices.Equal(got, turns) {
		t.Errorf("turns %v, want %v", got, turns)
	}
	if l := o.lease(Ask{Limit: 1}, 0); len(l) != 0 {
		t.Errorf("more than there are: %v", l)
	}
}

// Those who come at once are not offered the same: as many commands as leases.
func TestNobodyIsOfferedTheSame(t *testing.T) {
	o := newOffice(t, 0)
	const n = 200
	for range n {
		o.submit("a", "t", "m")
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	got := map[pawl.ID]bool{}
	for range n {
		wait.Go(func() {
			leases, err := o.desk.Lease(t.Context(), Ask{Limit: 1}, 10*time.Second)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(leases) != 1 || got[leases[0].Operation.ID] {
				t.Errorf("got %v, %v", leases, err)
				return
			}
			got[leases[0].Operation.ID] = true
		})
	}
	wait.Wait()
	if c := o.commands.Load(); c != n {
		t.Errorf("%d commands for %d leases", c, n)
	}
	if len(o.desk.taken) != 0 {
		t.Errorf("%d are kept back for nobody", len(o.desk.taken))
	}
}

// Who has gone when its lease is there never hears of it: the next one gets it
// as the first attempt.
func TestGoneWorkersLeaseGoesBack(t *testing.T) {
	o := newOffice(t, 0)
	id := o.submit("a", "t", "m")
	ctx, leave := context.WithCancel(t.Context())
	o.before = func(ledger.Command) { leave() }
	if l, err := o.desk.Lease(ctx, Ask{Limit: 1}, time.Minute); len(l) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone got %v, %v", l, err)
	}
	o.before = nil
	if l := o.lease(Ask{Limit: 1}, 10*time.Second); len(l) != 1 || l[0].ID != (ledger.WorkLeaseID{Operation: id, Attempt: 1}) {
		t.Errorf("the next one got %v", l)
	}
}

// Places are bounded, and given back.
func TestPlacesAreBounded(t *testing.T) {
	o := newOffice(t, 2)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range 2 {
		go func() { _, _ = o.desk.Lease(ctx, Ask{Limit: 1}, time.Minute) }()
	}
	o.waiting(2)
	_, err := o.desk.Lease(t.Context(), Ask{Limit: 1}, time.Minute)
	if refused := (*pawl.Error)(nil); !errors.As(err, &refused) || refused.Kind != pawl.Unavailable {
		t.Errorf("the third of two: %v", err)
	}
	leave()
	o.waiting(0)
	o.desk.Close()
	if l, err := o.desk.Lease(t.Context(), Ask{Limit: 1}, time.Minute); l != nil || err != nil {
		t.Errorf("after the end: %v, %v", l, err)
	}
}

// Where the ledger cannot be read, who does not wait is told, and who waits gets
// what there is once it can.
func TestLedgerIsAway(t *testing.T) {
	o := newOffice(t, 0)
	id := o.submit("a", "t", "m")
	o.broken.Store(true)
	if _, err := o.desk.Lease(t.Context(), Ask{Limit: 1}, 0); err == nil {
		t.Error("nothing is said")
	}
	leases := make(chan []ledger.WorkLease, 1)
	go func() {
		l, _ := o.desk.Lease(t.Context(), Ask{Limit: 1}, time.Minute)
		leases <- l
	}()
	o.waiting(1)
	time.Sleep(2 * every)
	o.broken.Store(false)
	if l := <-leases; len(l) != 1 || l[0].Operation.ID != id {
		t.Errorf("got %v", l)
	}
}

// What is remembered of turns is bounded.
func TestTurnsAreBounded(t *testing.T) {
	turns := newTurns()
	for n := range 3 * maxServed {
		turns.serve(store.Line{Upstream: "a", Tenant: fmt.Sprint(n)})
	}
	if n := len(turns.served); n > maxServed {
		t.Errorf("%d are remembered", n)
	}
}
