package desk

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// maxServed bounds how many last turns are remembered.
const maxServed = 10_000

// turns remember who was served when, by upstream and tenant.
type turns struct {
	served map[[2]string]int64
	n      int64
}

func newTurns() turns { return turns{served: make(map[[2]string]int64)} }

// serve notes a turn.
func (t *turns) serve(l store.Line) {
	if len(t.served) >= maxServed {
		clear(t.served)
	}
	t.n++
	t.served[[2]string{l.Upstream, l.Tenant}] = t.n
}

func (t *turns) last(l store.Line) int64 { return t.served[[2]string{l.Upstream, l.Tenant}] }

// line is a line with what one look has read of it.
type line struct {
	store.Line
	up   ledger.Upstream
	ids  []pawl.ID
	read bool
}

// ahead is how far the ledger's time may be ahead of the clock: the commands of
// a batch are a microsecond apart.
const ahead = time.Millisecond

// look offers what waits to those who wait for it, those that came first first.
func (d *Desk) look(ctx context.Context, now time.Time) {
	now = now.Add(ahead)
	idle := d.idle()
	if len(idle) == 0 {
		return
	}
	looking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lines, err := d.lines(looking, pawl.TimeOf(now))
	// Who asked for the same and found nothing needs not look again.
	nothing := make(map[string]bool)
	for _, p := range idle {
		var found offer
		key := p.ask.Tenant + "\x00" + strings.Join(p.ask.Capabilities, "\x00")
		if err == nil && !nothing[key] {
			found.work, err = d.find(looking, p.ask, lines, pawl.TimeOf(now))
			nothing[key] = len(found.work) == 0
		}
		if p.once {
			found.err = err
		}
		if p.once || len(found.work) > 0 {
			d.give(p, found)
		}
	}
	if err != nil && ctx.Err() == nil {
		d.o.Log.Error("work that own workers wait for could not be read", "error", err)
	}
}

// idle are those who wait and have no offer.
func (d *Desk) idle() []*place {
	d.mu.Lock()
	defer d.mu.Unlock()
	var idle []*place
	for _, p := range d.places {
		if !p.offered {
			idle = append(idle, p)
		}
	}
	return idle
}

// give hands a place its offer; whoever has left meanwhile gets none.
func (d *Desk) give(p *place, found offer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.places, p) {
		d.untake(found.work)
		return
	}
	p.offered = true
	p.offers <- found
}

// lines are those from which a worker may get something now.
func (d *Desk) lines(ctx context.Context, now pawl.Time) ([]*line, error) {
	all, err := d.o.Reader.WorkLines(ctx, linesMost)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	ups := d.o.Upstreams.Now()
	var keys ledger.Keys
	for name, up := range ups {
		if up.Worked() {
			keys.Queues = append(keys.Queues, ledger.GateID(name))
		}
	}
	var rows ledger.Rows
	if err := d.o.Reader.Load(ctx, &keys, &rows); err != nil {
		return nil, err
	}
	var lines []*line
	for _, l := range all {
		up, ok := ups[l.Upstream]
		gate, _ := rows.Queues.Get(ledger.GateID(l.Upstream))
		if ok && up.Worked() && l.Since <= now && gate.PausedUntil <= now {
			lines = append(lines, &line{Line: l, up: up.Policy()})
		}
	}
	return lines, nil
}

// find takes operations for a worker, a turn of tenant and upstream each, of
// these the line whose first has waited the longest.
func (d *Desk) find(ctx context.Context, a Ask, lines []*line, now pawl.Time) ([]ledger.WorkOffer, error) {
	var mine []*line
	for _, l := range lines {
		if a.does(l.Line) {
			mine = append(mine, l)
		}
	}
	var work []ledger.WorkOffer
	for len(work) < a.Limit && len(mine) > 0 {
		l := slices.MinFunc(mine, func(x, y *line) int {
			return cmp.Or(cmp.Compare(d.turns.last(x.Line), d.turns.last(y.Line)), cmp.Compare(x.Since, y.Since))
		})
		id, ok, err := d.next(ctx, l, now)
		if err != nil {
			return work, err
		}
		if !ok {
			mine = slices.DeleteFunc(mine, func(other *line) bool { return other == l })
			continue
		}
		d.turns.serve(l.Line)
		work = append(work, ledger.WorkOffer{Operation: id, Up: l.up})
	}
	return work, nil
}

// does reports whether the worker may have operations of a line.
func (a Ask) does(l store.Line) bool {
	if a.Tenant != "" && a.Tenant != l.Tenant {
		return false
	}
	return len(a.Capabilities) == 0 || slices.Contains(a.Capabilities, l.Model) || slices.Contains(a.Capabilities, l.Upstream+"/"+l.Model)
}

// batch is how many operations of a line are read beyond those that are taken.
const batch = 64

// next takes a line's first operation that nobody else is offered.
func (d *Desk) next(ctx context.Context, l *line, now pawl.Time) (pawl.ID, bool, error) {
	if !l.read {
		d.mu.Lock()
		held := maps.Clone(d.taken)
		d.mu.Unlock()
		ids, err := d.o.Reader.WorkWaiting(ctx, l.Line, now, len(held)+batch)
		if err != nil {
			return pawl.ID{}, false, err
		}
		// What was taken before it was read may have been leased since, and be free
		// only by what was read. What is left beyond is there for the next look.
		l.ids, l.read = slices.DeleteFunc(ids, func(id pawl.ID) bool { return held[id] }), true
	}
	if len(l.ids) == 0 {
		return pawl.ID{}, false, nil
	}
	id := l.ids[0]
	l.ids = l.ids[1:]
	d.mu.Lock()
	d.taken[id] = true
	d.mu.Unlock()
	return id, true, nil
}
