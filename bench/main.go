// Command bench measures a node against the plainest thing that could do part
// of its job: a net/http handler that reads 1 KB, verifies its signature and
// answers. All rounds of all measurements run interleaved in one run, and what
// counts is the ratio within that run, since machines are noisy.
//
//	go run ./bench [-rounds 5] [-seconds 4] [-connections 256] [-finished 0]
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
	flag.IntVar(&s.finished, "finished", 0, "finished operations to put into the ledger before measuring")
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
	cpu       float64 // seconds of the measured process per 1,000
}

func run(ctx context.Context, s settings) error {
	b, err := start(ctx, s)
	if err != nil {
		return err
	}
	defer b.stop()
	if err := b.fill(ctx, s.finished); err != nil {
		return err
	}
	measurements := []struct {
		name string
		run  func(context.Context) (result, error)
	}{
		{"(a) bare handler: read 1 KB, verify, 202", b.bare},
		{"(b) intake: distinct events of running operations", b.intake},
		{"(c) submit", b.submit},
		{"(d) submit → create → callback → settled → delivered", b.cycle},
	}
	results := make([][]result, len(measurements))
	for round := range s.rounds {
		for i, m := range measurements {
			fmt.Fprintf(os.Stderr, "round %d/%d %s\n", round+1, s.rounds, m.name)
			r, err := m.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	fmt.Printf("| measurement | per second | of (a) | p50 | p99 | CPU s per 1,000 |\n| --- | --- | --- | --- | --- | --- |\n")
	base := median(results[0], func(r result) float64 { return r.perSecond })
	for i, m := range measurements {
		rate := median(results[i], func(r result) float64 { return r.perSecond })
		fmt.Printf("| %s | %.0f | %.2f | %s | %s | %.3f |\n", m.name, rate, rate/base,
			time.Duration(median(results[i], func(r result) float64 { return float64(r.p50) })).Round(10*time.Microsecond),
			time.Duration(median(results[i], func(r result) float64 { return float64(r.p99) })).Round(10*time.Microsecond),
			median(results[i], func(r result) float64 { return r.cpu }))
	}
	return b.closing(ctx)
}

func median(rs []result, of func(result) float64) float64 {
	values := make([]float64, len(rs))
	for i, r := range rs {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
