// Package torture runs real nodes and kills them. Several `pawl serve`
// processes on one ledger are given work through the API, with a provider that
// misbehaves and a receiver, both with books of their own, while processes are
// killed and frozen, and the way to the database is cut. Once everything has
// come to rest, the ledger is checked and all books are compared.
package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/webhook"
)

// Options say what is tortured, and how hard.
type Options struct {
	// Database is the URL of a PostgreSQL server on which a database may be made;
	// a ledger in SQLite if empty.
	Database string
	// Restart kills the database server and starts it again; nil where it must not
	// be touched. It is called by one goroutine at a time.
	Restart func(context.Context) error
	// Nodes, Operations and Faults are how many there are. On SQLite there is one
	// node.
	Nodes, Operations, Faults int
	// Seed draws the faults, and what the provider and the receiver do.
	Seed uint64
	// Patience is how long everything may take to come to rest after the last
	// fault; 10 minutes if zero.
	Patience time.Duration
	// Out takes the report, Progress a line for each thing that happens.
	Out, Progress io.Writer
	// JSON makes the report one JSON document.
	JSON bool
}

// ErrBroken means that an invariant did not hold; the report says which.
var ErrBroken = errors.New("torture: not all invariants hold")

// Price of each operation, and what the tenant may spend.
const (
	currency = "USD"
	credit   = 1_000_000
	// speed is that of the provider: how many seconds of its scripts pass in one.
	speed = 4
)

// run is one torture under way.
type run struct {
	o       Options
	began   time.Time
	plan    sim.Plan
	steps   []Step
	sim     *sim.Server
	sink    *sim.Receiver
	cluster *cluster
	load    *load

	restarting, told sync.Mutex
}

// Run runs one torture. It returns [ErrBroken] if an invariant did not hold,
// and keeps what the nodes have left behind then, to be looked at. Every
// process it has started has ended when it returns.
func Run(ctx context.Context, o Options) (err error) {
	if o.Database == "" {
		o.Nodes = 1
	}
	r := newRun(o)
	r.steps = Plan(o.Seed, o.Faults, o.Nodes, r.kinds())
	dir, err := os.MkdirTemp("", "pawl-torture-")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.close(dir, err))
	}()
	r.tell("seed %d: %d operations, %d faults, nodes: %d", o.Seed, o.Operations, len(r.steps), o.Nodes)
	if err := r.start(ctx, dir); err != nil {
		return fmt.Errorf("torture: start: %w", err)
	}
	if err := r.strike(ctx); err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	return r.judge(ctx)
}

func newRun(o Options) *run {
	if o.Patience <= 0 {
		o.Patience = 10 * time.Minute
	}
	return &run{o: o, began: time.Now(), plan: sim.NewPlan(o.Seed, o.Operations, sim.Options{Currency: currency})}
}

// judge waits until everything has come to rest, and says what it came to.
func (r *run) judge(ctx context.Context) error {
	r.tell("all faults are over; waiting until everything has come to rest")
	rest, err := r.rest(ctx)
	if err != nil {
		return fmt.Errorf("torture: wait for rest: %w", err)
	}
	report, err := r.compare(ctx, rest)
	if err != nil {
		return fmt.Errorf("torture: compare the books: %w", err)
	}
	if err := report.write(r.o.Out, r.o.JSON); err != nil {
		return err
	}
	if !report.OK() {
		return ErrBroken
	}
	return nil
}

// kinds are the faults that are possible here.
func (r *run) kinds() []Fault {
	kinds := []Fault{Kill, KillStarting, KillDraining, Stop, Freeze, Doze}
	if r.o.Database == "" {
		return append(kinds, diskFaults...)
	}
	kinds = append(kinds, Cut, Slow, Away, Terminate)
	if r.o.Restart != nil {
		kinds = append(kinds, Restart)
	}
	return kinds
}

// start starts the provider, the receiver and the nodes.
func (r *run) start(ctx context.Context, dir string) (err error) {
	if r.sim, err = sim.NewServer(r.plan, sim.Config{Speed: speed, Hold: 3 * time.Second, Workers: 32, Attempts: 1000, MaxBackoff: time.Second}); err != nil {
		return err
	}
	provider, err := r.sim.Start()
	if err != nil {
		return err
	}
	secret, err := webhook.NewSecret(nil)
	if err != nil {
		return err
	}
	if r.sink, err = sim.NewReceiver(sim.ReceiverConfig{Secrets: []string{secret}, Seed: r.o.Seed, Trouble: 10, Hold: 300 * time.Millisecond}); err != nil {
		return err
	}
	sink, err := r.sink.Start()
	if err != nil {
		return err
	}
	if r.cluster, err = newCluster(ctx, filepath.Join(dir, "nodes"), r.o, provider, r.sim); err != nil {
		return err
	}
	for _, n := range r.cluster.nodes {
		if err := n.run(ctx, false); err != nil {
			return err
		}
		r.tell("node %d is process %d", n.number, n.pid())
	}
	r.load, err = newLoad(ctx, r.cluster, r.plan, r.o.Seed, hands+r.plan.Len()/max(1, len(r.steps)), sink, secret)
	return err
}

// close ends everything, and removes what is left on the disk unless somebody
// will want to look at it.
func (r *run) close(dir string, failed error) (err error) {
	keep := failed != nil && !errors.Is(failed, context.Canceled)
	if r.cluster != nil {
		err = r.cluster.close(keep)
	}
	if r.sim != nil {
		err = errors.Join(err, r.sim.Close())
	}
	if r.sink != nil {
		err = errors.Join(err, r.sink.Close())
	}
	if !keep {
		return errors.Join(err, os.RemoveAll(dir))
	}
	r.tell("the logs of the nodes and their ledger are kept in %s", dir)
	if r.cluster != nil && r.cluster.database != nil {
		r.tell("the database %s is kept", r.cluster.database.name)
	}
	return err
}

// tell writes one line with its time.
func (r *run) tell(format string, args ...any) {
	r.told.Lock()
	defer r.told.Unlock()
	fmt.Fprintf(r.o.Progress, "%7.1fs  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}
