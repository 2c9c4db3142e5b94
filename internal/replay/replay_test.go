package replay

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sender"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/upstream"
)

// shelf is a ledger of so many deliveries, of which one matches wherever want says
// so. It keeps the looks that were made.
type shelf struct {
	store.Reader
	rows  int
	want  func(n int) bool
	looks []int
}

// row is the id of the n-th row, from 1 on.
func row(n int) pawl.ID { return pawl.NewID(pawl.Time(n)*1000, uint64(n)) }

// Deliveries looks as [store.Look] says a store does.
func (s *shelf) Deliveries(_ context.Context, _ store.DeliveryFilter, p store.Page) (out []ledger.Delivery, _ error) {
	looked := 0
	for n := 1; n <= s.rows && len(out) < p.Limit; n++ {
		id := row(n)
		if id.Compare(p.After) <= 0 {
			continue
		}
		if looked == p.Look.Most {
			p.Look.End = row(n - 1)
			break
		}
		looked++
		if s.want(n) {
			out = append(out, ledger.Delivery{ID: id, Endpoint: row(1)})
		}
	}
	s.looks = append(s.looks, looked)
	return out, nil
}

// Events are the same rows as events, all of which have used their keys up.
func (s *shelf) Events(ctx context.Context, _ store.EventFilter, p store.Page) (out []ledger.Event, err error) {
	rows, err := s.Deliveries(ctx, store.DeliveryFilter{}, p)
	for _, r := range rows {
		out = append(out, ledger.Event{ID: r.ID, Verdict: pawl.Applied})
	}
	return out, err
}

// desk takes the commands and does nothing.
type desk struct{ got []ledger.Command }

// Do implements [store.Commands].
func (d *desk) Do(_ context.Context, c ledger.Command) (ledger.Outcome, error) {
	d.got = append(d.got, c)
	return ledger.Outcome{}, nil
}

// DoAll implements [store.Commands].
func (d *desk) DoAll(context.Context, ...ledger.Command) []store.Result { return nil }

func runnerOf(s *shelf) (*Runner, *desk) {
	d := &desk{}
	return New(Options{Store: d, Reader: s, Upstreams: upstream.Set{}, Senders: sender.Set{}}), d
}

// one is the single command of a step.
func one[C ledger.Command](t *testing.T, d *desk) C {
	t.Helper()
	if len(d.got) != 1 {
		t.Fatalf("%d commands, want one: %+v", len(d.got), d.got)
	}
	c, ok := d.got[0].(C)
	if !ok {
		t.Fatalf("%T", d.got[0])
	}
	d.got = nil
	return c
}

// Among many rows of others counting goes on from look to look, none longer than
// its bound, and finds just those that it is about.
func TestCountLooksSoFar(t *testing.T) {
	for _, kind := range []ledger.ReplayKind{ledger.ReplayDeliveries, ledger.ReplayEvents} {
		for _, c := range []struct {
			name string
			rows int
			want func(int) bool
			n    int64
		}{
			{"nothing", 0, func(int) bool { return true }, 0},
			{"none matches", 12_000, func(int) bool { return false }, 0},
			{"the last", 12_000, func(n int) bool { return n == 12_000 }, 1},
			{"at the end of a look", 10_001, func(n int) bool { return n == sift || n == 2*sift || n == 10_001 }, 3},
			{"just a look", sift, func(n int) bool { return n == sift }, 1},
			{"all", 1_200, func(int) bool { return true }, 1_200},
			{"just a page", lookMost, func(int) bool { return true }, lookMost},
		} {
			t.Run(fmt.Sprint(kind, " ", c.name), func(t *testing.T) {
				s := &shelf{rows: c.rows, want: c.want}
				r, d := runnerOf(s)
				// With a verdict asked for, events that have used their keys up are meant.
				job := ledger.Replay{ID: row(1), Lease: 7, Kind: kind, Filter: ledger.ReplayFilter{Verdict: pawl.Applied}}
				var counted int64
				for steps := 0; ; steps++ {
					if err := r.step(t.Context(), job); err != nil {
						t.Fatal(err)
					}
					rest := one[ledger.RestReplay](t, d)
					if rest.ID != job.ID || rest.Fence != 7 || rest.Worked != 0 {
						t.Fatalf("%+v", rest)
					}
					counted += rest.Counted
					if rest.End {
						break
					}
					if rest.After.Compare(job.After) <= 0 || steps > 100 {
						t.Fatalf("counting does not go on: %+v", rest)
					}
					job.After = rest.After
				}
				if counted != c.n {
					t.Errorf("%d counted, want %d", counted, c.n)
				}
				if most := slices.Max(s.looks); most > 5_000 {
					t.Errorf("a look was among %d rows", most)
				}
			})
		}
	}
}

// Sending sends each row that it is about once and in order, in steps no larger
// than the rate, and moves over many rows of others without sending.
func TestSendLooksSoFar(t *testing.T) {
	for _, c := range []struct {
		name   string
		rows   int
		rate   int32
		want   func(int) bool
		n      int
		atMost int
	}{
		{"nothing", 0, 10, func(int) bool { return true }, 0, 10},
		{"none matches", 12_000, 10, func(int) bool { return false }, 0, 10},
		{"the last of many", 12_000, 10, func(n int) bool { return n == 12_000 }, 1, 10},
		{"around the end of a look", 10_001, 10, func(n int) bool { return n == 3 || n == sift || n == sift+1 || n == 10_001 }, 4, 10},
		{"paced", 35, 10, func(int) bool { return true }, 35, 10},
		{"just a step", 10, 10, func(int) bool { return true }, 10, 10},
		{"no slower than one", 3, 0, func(int) bool { return true }, 3, 1},
		{"no step above a hundred", 350, 100_000, func(int) bool { return true }, 350, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shelf{rows: c.rows, want: c.want}
			r, d := runnerOf(s)
			job := ledger.Replay{ID: row(1), Lease: 7, Kind: ledger.ReplayDeliveries, Counted: true, Rate: c.rate}
			var sent []pawl.ID
			for end, steps := false, 0; !end; steps++ {
				if err := r.step(t.Context(), job); err != nil {
					t.Fatal(err)
				}
				if steps > 1_000 {
					t.Fatal("sending does not end")
				}
				if rest, ok := d.got[0].(ledger.RestReplay); ok {
					if rest.After.Compare(job.After) <= 0 || rest.End || rest.Worked != 0 {
						t.Fatalf("%+v", rest)
					}
					job.After, d.got = rest.After, nil
					continue
				}
				step := one[ledger.StepReplay](t, d)
				if step.Fence != 7 || len(step.Rows) > c.atMost {
					t.Fatalf("%d rows under fence %d", len(step.Rows), step.Fence)
				}
				for _, want := range step.Rows {
					sent = append(sent, want.Delivery)
					job.After = want.Delivery
				}
				end = step.End
			}
			var want []pawl.ID
			for n := 1; n <= c.rows; n++ {
				if c.want(n) {
					want = append(want, row(n))
				}
			}
			if !slices.Equal(sent, want) || len(want) != c.n {
				t.Errorf("%d sent, want %d", len(sent), c.n)
			}
			if most := slices.Max(s.looks); most > 5_000 {
				t.Errorf("a look was among %d rows", most)
			}
		})
	}
}

// Judging moves over events that are not meant, in looks with an end.
func TestJudgeLooksSoFar(t *testing.T) {
	s := &shelf{rows: 12_000, want: func(n int) bool { return n%4_000 == 0 }}
	r, d := runnerOf(s)
	job := ledger.Replay{ID: row(1), Lease: 7, Kind: ledger.ReplayEvents, Counted: true, Rate: 10}
	for steps := 0; ; steps++ {
		if err := r.step(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		rest := one[ledger.RestReplay](t, d)
		if rest.Worked != 0 {
			t.Fatalf("events with a verdict were judged: %+v", rest)
		}
		if rest.End {
			break
		}
		if rest.After.Compare(job.After) <= 0 || steps > 10 {
			t.Fatalf("judging does not go on: %+v", rest)
		}
		job.After = rest.After
	}
	if most := slices.Max(s.looks); most > 5_000 {
		t.Errorf("a look was among %d rows", most)
	}
}

// A step that fails gives its replay back; what holds no lease is left alone.
func TestFreeLeases(t *testing.T) {
	if most(ledger.Replay{Rate: 1}) != 1 || most(ledger.Replay{Rate: 99}) != 99 {
		t.Error("the rate is no bound of a step")
	}
	due := &dueOnce{jobs: []ledger.Replay{{ID: row(1)}, {ID: row(2), Leased: true, Lease: 5}}}
	r, d := runnerOf(&shelf{})
	r.o.Reader = due
	if err := r.FreeLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := one[ledger.FreeReplay](t, d); c.ID != row(2) || c.Fence != 5 {
		t.Errorf("%+v", c)
	}
}

// dueOnce has due replays, whose leases are gone the second time.
type dueOnce struct {
	store.Reader
	jobs []ledger.Replay
}

// DueReplays implements [store.Reader].
func (d *dueOnce) DueReplays(context.Context, pawl.Time, int) ([]ledger.Replay, error) {
	jobs := slices.Clone(d.jobs)
	for i := range d.jobs {
		d.jobs[i].Leased = false
	}
	return jobs, nil
}

// Waking never blocks, however often.
func TestWake(t *testing.T) {
	r, _ := runnerOf(&shelf{})
	for range 3 {
		r.Wake()
	}
	select {
	case <-r.wake:
	case <-time.After(time.Minute):
		t.Error("nobody is woken")
	}
}
