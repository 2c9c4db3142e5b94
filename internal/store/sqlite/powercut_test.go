package sqlite

import (
	"context"
	"errors"
	settings "flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/storetest"
)

// powerCuts is how often the power is cut in all; a few thousand take minutes.
var powerCuts = settings.Int("cuts", 200, "how many power cuts TestPowerCut makes")

// cutsPerLedger is how often it is cut to one ledger, which grows meanwhile.
const cutsPerLedger = 8

// tinySizes make a checkpoint every few commits.
var tinySizes = sizes{passive: 24, restart: 64, backlog: 8, stop: 2048}

// plant is a ledger whose power is cut again and again, with the books of what
// it has acknowledged.
type plant struct {
	t *testing.T
	// setup is run on the connections that write, before the commands.
	setup string
	rng   *rand.Rand
	disk  *disk
	vfs   string

	books *storetest.Books
	// closing says that the next cut comes when the ledger is closed.
	closing bool
	// doubt is a batch that the power was cut in: it may have taken effect.
	doubt *batch
	// answered is how the callers know their operations.
	mu       sync.Mutex
	answered map[pawl.ID]int64
	callers  int64
	// furnished says that the tenants and endpoints were answered for.
	furnished bool
	figures   figures
}

type batch struct {
	id   pawl.ID
	rows *ledger.Rows
}

// figures count what a test has seen.
type figures struct {
	cuts, commits, answers, doubts, survived int
	during                                   map[string]int
}

func (f *figures) add(g figures) {
	f.cuts, f.commits, f.answers = f.cuts+g.cuts, f.commits+g.commits, f.answers+g.answers
	f.doubts, f.survived = f.doubts+g.doubts, f.survived+g.survived
	if f.during == nil {
		f.during = map[string]int{}
	}
	for what, n := range g.during {
		f.during[what] += n
	}
}

func (f figures) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d power cuts, %d answers in %d commits; a commit was under way in %d cuts and had taken effect in %d of them; cut during:",
		f.cuts, f.answers, f.commits, f.doubts, f.survived)
	for _, what := range slices.Sorted(maps.Keys(f.during)) {
		fmt.Fprintf(&text, " %s %d,", what, f.during[what])
	}
	return strings.TrimSuffix(text.String(), ",")
}

func newPlant(t *testing.T, seed uint64, setup string) *plant {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &plant{
		t: t, setup: setup, rng: rng, disk: newDisk(t.TempDir(), rng), books: storetest.NewBooks(), answered: map[pawl.ID]int64{},
		vfs: fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), seed), figures: figures{during: map[string]int{}},
	}
	vfs.Register(p.vfs, drive{vfs.Find(""), p.disk})
	t.Cleanup(func() { vfs.Unregister(p.vfs) })
	return p
}

// arm draws the moment of the next cut. Some kinds of moments are short, and
// are drawn for themselves.
func (p *plant) arm() {
	p.closing = false
	about := func(words string) func(string) bool {
		return func(what string) bool { return strings.HasSuffix(what, words) }
	}
	switch p.rng.IntN(5) {
	case 0: // at the start: in a migration, a recovery, the first commits
		p.disk.arm(1+p.rng.IntN(60), about(""))
	case 1: // in a checkpoint
		p.disk.arm(1+p.rng.IntN(60), about("the file"))
	case 2: // when a commit is about to be durable
		p.disk.arm(1+p.rng.IntN(20), about("sync the log"))
	case 3: // when all is done and the ledger is being closed
		p.closing = true
	default:
		p.disk.arm(1+p.rng.IntN(300), about(""))
	}
}

// fault is what was wrong with a ledger: something that was answered is lost
// from it, or, graver, it is not whole.
type fault struct{ lost, broken string }

// live opens the ledger, looks for losses, and has it work until the power is
// cut.
func (p *plant) live() (f fault) {
	p.arm()
	d, err := p.open()
	if err != nil && !p.disk.dead() {
		return fault{broken: err.Error()}
	}
	if err == nil {
		if f = p.look(d); f == (fault{}) {
			f.broken = p.work(d)
		}
		if p.closing {
			p.disk.arm(1+p.rng.IntN(12), func(string) bool { return true })
		}
		// With the power off there is nothing left to do but to close.
		if err := d.Close(); err != nil && !p.disk.dead() {
			f.broken += err.Error()
		}
	}
	p.figures.during[p.disk.restart(p.t)]++
	p.figures.cuts++
	return f
}

func (p *plant) open() (*Driver, error) {
	d, err := Open(p.disk.power, p.disk.folder, Options{Readers: 1, sizes: tinySizes, vfs: p.vfs})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.write.db.Exec(p.setup), d.checkpoints.conn.db.Exec(p.setup)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// look compares the ledger with the books, and checks it as a person would.
func (p *plant) look(d *Driver) (f fault) {
	ctx := p.t.Context()
	var err error
	if p.doubt != nil {
		if f.lost, err = p.decide(ctx, d); err != nil || f.lost != "" {
			return f.with(err)
		}
	}
	err = d.read(ctx, "check", func(c *conn) error {
		return errors.Join(c.each("PRAGMA integrity_check", nil, func(s *sqlite3.Stmt) {
			if line := s.ColumnText(0); line != "ok" {
				f.broken += line + "\n"
			}
		}), c.each("PRAGMA foreign_key_check", nil, func(s *sqlite3.Stmt) {
			f.broken += "a row without its parent in " + s.ColumnText(0) + "\n"
		}))
	})
	if err != nil {
		return f.with(err)
	}
	_, err = store.Check(ctx, d, func(v ledger.Violation) error { f.broken += v.String() + "\n"; return nil }, nil)
	if err != nil {
		return f.with(err)
	}
	if f.lost, err = p.books.Differ(ctx, d); err != nil {
		return f.with(err)
	}
	gone, err := p.missing(ctx, d)
	f.lost += gone
	return f.with(err)
}

// with counts an error as a breach.
func (f fault) with(err error) fault {
	if err != nil {
		f.broken += err.Error()
	}
	return f
}

// decide asks what became of the batch that the power was cut in, as the
// committer does.
func (p *plant) decide(ctx context.Context, d *Driver) (lost string, err error) {
	took, err := d.Committed(ctx, p.doubt.id)
	if err != nil {
		return "", err
	}
	p.figures.doubts++
	if took {
		p.figures.survived++
		if err := p.books.Book(ctx, p.doubt.id, p.doubt.rows); err != nil {
			lost = err.Error()
		}
	}
	p.doubt = nil
	return lost, nil
}

// missing names an operation that a caller was told of and that is not there,
// or as it was before.
func (p *plant) missing(ctx context.Context, d *Driver) (string, error) {
	found := make(map[pawl.ID]int64)
	rows, err := d.Operations(ctx, store.OperationFilter{}, store.Page{Limit: 1 << 20})
	if err != nil {
		return "", err
	}
	for _, op := range rows {
		found[op.ID] = op.Version
	}
	for id, version := range p.answered {
		if at, ok := found[id]; !ok || at < version {
			return fmt.Sprintf("operation %s was answered with version %d and has %d\n", id.Text(pawl.PrefixOperation), version, at), nil
		}
	}
	return "", nil
}

// work has callers and workers at it until the power is cut, or they have done
// their rounds.
func (p *plant) work(d *Driver) (broken string) {
	w := &witness{Driver: d, plant: p}
	r := &rush{answered: p.note}
	// Some of the callers repeat what was answered in an earlier life.
	r.n.Store(max(0, p.callers-3))
	r.c = store.NewCommitter(w, store.Options{Batch: 8, Patience: time.Minute})
	if !p.furnished {
		r.open()
		p.furnished = !p.disk.dead()
	}
	rounds := 3
	if p.closing {
		rounds = 1
	}
	var all sync.WaitGroup
	for caller := range rushTenants {
		all.Go(func() {
			for n := 0; n < rounds && !p.disk.dead(); n++ {
				r.submit()
				r.work(int64(caller))
			}
		})
	}
	all.Wait()
	if err := r.c.Close(); err != nil {
		broken = err.Error()
	}
	p.callers = r.n.Load()
	if text := r.failed.Load(); text != nil && !p.disk.dead() {
		broken += *text
	}
	if w.err != nil {
		broken += w.err.Error()
	}
	return broken
}

// note remembers what a caller was told.
func (p *plant) note(out ledger.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.figures.answers++
	if s, ok := out.Value.(ledger.Submitted); ok {
		p.answered[s.Operation.ID] = max(p.answered[s.Operation.ID], s.Operation.Version)
	}
}

// witness books what the driver acknowledges.
type witness struct {
	*Driver
	plant *plant
	err   error
}

func (w *witness) Update(ctx context.Context, id pawl.ID, fn func(store.Tx) error) error {
	b := &batch{id: id}
	err := w.Driver.Update(ctx, id, func(tx store.Tx) error { return fn(witnessTx{tx, b}) })
	var commit *store.CommitError
	switch {
	case err == nil:
		w.plant.figures.commits++
		w.err = errors.Join(w.err, w.plant.books.Book(context.Background(), id, b.rows))
	case errors.As(err, &commit) && w.plant.doubt == nil:
		// Only the first commit to fail can have been under way.
		w.plant.doubt = b
	}
	return err
}

// Committed spares the committer the wait for a machine that is off.
func (w *witness) Committed(ctx context.Context, id pawl.ID) (bool, error) {
	if w.plant.disk.dead() {
		return false, nil
	}
	return w.Driver.Committed(ctx, id)
}

type witnessTx struct {
	store.Tx
	batch *batch
}

func (t witnessTx) Save(rows *ledger.Rows) error {
	t.batch.rows = rows
	return t.Tx.Save(rows)
}

// last lets a ledger have all of its cuts, and looks at it for a last time.
func (p *plant) last() fault {
	for range cutsPerLedger {
		if f := p.live(); f != (fault{}) {
			return f
		}
	}
	d, err := p.open()
	if err != nil {
		return fault{broken: err.Error()}
	}
	f := p.look(d)
	if err := d.Close(); err != nil {
		f.broken += err.Error()
	}
	return f
}

// Nothing that was answered is missing after a power cut, and the ledger is
// whole, whenever the cut comes (ARCHITECTURE.md, "What must hold", 6).
func TestPowerCut(t *testing.T) {
	var sum figures
	var mu sync.Mutex
	t.Run("ledgers", func(t *testing.T) {
		for seed := range uint64(*powerCuts / cutsPerLedger) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				p := newPlant(t, seed, "")
				if f := p.last(); f != (fault{}) {
					t.Errorf("after %d cuts: lost: %s\nbroken: %s", p.figures.cuts, f.lost, f.broken)
				}
				mu.Lock()
				defer mu.Unlock()
				sum.add(p.figures)
			})
		}
	})
	t.Log(sum)
	if sum.cuts != *powerCuts || sum.survived == 0 || sum.survived == sum.doubts {
		t.Error("the cuts came at no moments that matter")
	}
}

// The same cuts find what is lost where less is synced. Without a sync at each
// commit answers are missing, though the ledger is whole; without any, and on a
// disk that does not do as it is told, it is broken too.
func TestPowerCutFindsLosses(t *testing.T) {
	for _, c := range []struct {
		name, setup  string
		deaf, breaks bool
	}{
		{"normal", "PRAGMA synchronous = NORMAL", false, false},
		{"off", "PRAGMA synchronous = OFF", false, true},
		{"deaf", "", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var sum figures
			lost, broken := 0, 0
			// About one ledger in six breaks before a loss is seen that ends it.
			for seed := uint64(0); seed < 4 || c.breaks && broken == 0 && seed < 100; seed++ {
				p := newPlant(t, seed, c.setup)
				p.disk.deaf = c.deaf
				f := p.last()
				sum.add(p.figures)
				switch {
				case f.broken != "":
					broken++
				case f.lost != "":
					lost++
				}
				if f.broken != "" && !c.breaks {
					t.Errorf("after %d cuts: %s", p.figures.cuts, f.broken)
				}
			}
			t.Logf("%d ledgers lost answers, %d were broken; %v", lost, broken, sum)
			if !c.breaks && lost == 0 || c.breaks && broken == 0 {
				t.Error("no loss was found")
			}
		})
	}
}
