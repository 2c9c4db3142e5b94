// Command bench measures a node against the plainest thing that could do part
// of its job: a net/http handler that reads 1 KB, verifies its signature and
// answers. All rounds of all measurements run interleaved in one run, and what
// counts is the ratio within that run, since machines are noisy.
//
//	go run ./bench [-rounds 5] [-length 4s] [-connections 256] [-finished 0]
//	go run ./bench -postgres        # one and three nodes, and one transaction an event
//	go run ./bench -pages 1000000 -rounds 50 [-postgres]   # every page of a full ledger
//	go run ./bench -hot 100000      # events on ten operations: no deadlock, no retry
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

type settings struct {
	rounds      int
	length      time.Duration
	connections int
	finished    int
	postgres    bool
	binary      string
	hot         int
	pages       int
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		child(os.Args[2])
		return
	}
	var s settings
	flag.IntVar(&s.rounds, "rounds", 5, "rounds of each measurement; medians are reported")
	flag.DurationVar(&s.length, "length", 4*time.Second, "length of one measurement")
	flag.IntVar(&s.connections, "connections", 256, "connections of the load client")
	flag.IntVar(&s.finished, "finished", 0, "operations of others to put into the ledger before measuring")
	flag.BoolVar(&s.postgres, "postgres", false, "measure PostgreSQL: one node, three nodes, and the plain way")
	flag.IntVar(&s.hot, "hot", 0, "send so many events of ten operations to three nodes on PostgreSQL, and look for deadlocks")
	flag.IntVar(&s.pages, "pages", 0, "fill a ledger with so many operations and measure every page of it, as often as there are rounds")
	flag.StringVar(&s.binary, "binary", "", "a pawl to measure, instead of building one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// result is one measurement of one round.
type result struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       float64 // seconds of the measured processes per 1,000
}

// measurement is what is measured in each round. A key names it in ratios.
type measurement struct {
	key, name string
	run       func(context.Context) (result, error)
	results   []result
}

func (m *measurement) median(of func(result) float64) float64 { return median(m.results, of) }

func (m *measurement) rate() float64 {
	return m.median(func(r result) float64 { return r.perSecond })
}

func run(ctx context.Context, s settings) error {
	st, err := start(ctx, s)
	if err != nil {
		return err
	}
	defer st.stop()
	if s.pages > 0 {
		return st.pages(ctx)
	}
	if s.postgres || s.hot > 0 {
		return onPostgres(ctx, st)
	}
	b, err := st.ledger(ctx, "sqlite", "", 1)
	if err != nil {
		return err
	}
	defer b.stop()
	if err := b.fill(ctx, s.finished); err != nil {
		return err
	}
	all := []*measurement{
		st.bareline(),
		{key: "b", name: "intake: distinct events of running operations", run: b.intake},
		{key: "c", name: "submit", run: b.submit},
		{key: "d", name: "submit → create → callback → settled → delivered", run: b.cycle},
	}
	if err := s.measure(ctx, all); err != nil {
		return err
	}
	return b.closing(ctx)
}

func (b *stage) bareline() *measurement {
	return &measurement{key: "a", name: "bare handler: read 1 KB, verify, 202", run: b.bare}
}

// measure runs all rounds and prints the medians, as parts of the first too.
func (s settings) measure(ctx context.Context, all []*measurement) error {
	for round := range s.rounds {
		for _, m := range all {
			fmt.Fprintf(os.Stderr, "round %d/%d (%s) %s\n", round+1, s.rounds, m.key, m.name)
			r, err := m.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			m.results = append(m.results, r)
		}
	}
	fmt.Printf("| measurement | per second | of (a) | p50 | p99 | CPU s per 1,000 |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, m := range all {
		fmt.Printf("| (%s) %s | %.0f | %.2f | %s | %s | %.3f |\n", m.key, m.name, m.rate(), m.rate()/all[0].rate(),
			time.Duration(m.median(func(r result) float64 { return float64(r.p50) })).Round(10*time.Microsecond),
			time.Duration(m.median(func(r result) float64 { return float64(r.p99) })).Round(10*time.Microsecond),
			m.median(func(r result) float64 { return r.cpu }))
	}
	return nil
}

func median(rs []result, of func(result) float64) float64 {
	values := make([]float64, len(rs))
	for i, r := range rs {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
