// Command mutate breaks the program one line at a time and runs the test that
// must notice: a rule that no test defends is found here, not in production.
//
// It reads the patches of testdata/mutations, weaves them into one program that
// takes on one at a time, and hands what cannot be woven to the compiler one by
// one. Both are overlays, so that the tree itself is never touched. It prints how
// many were killed and how many survived, and must be started in the root of the
// module.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func main() {
	dir := flag.String("patches", "testdata/mutations", "folder of the patches")
	only := flag.String("run", "", "apply only the patches whose name matches this expression")
	workers := flag.Int("workers", runtime.NumCPU(), "patches tried at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	survived, err := run(ctx, *dir, *only, *workers)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	case survived > 0:
		os.Exit(1)
	}
}

func run(ctx context.Context, folder, only string, workers int) (survived int, err error) {
	want, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	all, err := readPatches(folder)
	if err != nil {
		return 0, err
	}
	var chosen []patch
	for _, p := range all {
		if want.MatchString(p.name) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return 0, fmt.Errorf("no patch in %s matches", folder)
	}
	began := time.Now()
	dir, err := os.MkdirTemp("", "pawl-mutate-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	programs, err := build(ctx, dir, chosen)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%d of %d patches are in one program, built in %.0f s\n", len(programs.has), len(chosen), time.Since(began).Seconds())
	if err := programs.sound(ctx, chosen); err != nil {
		return 0, err
	}
	results := programs.tryAll(ctx, chosen, max(workers, 1))
	killed, broken := 0, 0
	for i, r := range results {
		switch r.fate {
		case killedFate:
			killed++
		case survivedFate:
			survived++
		default:
			broken++
			fmt.Printf("%-34s could not be tried: %s\n", chosen[i].name, r.detail)
		}
	}
	fmt.Printf("%d killed, %d survived", killed, survived)
	if broken > 0 {
		fmt.Printf(", %d could not be tried", broken)
	}
	fmt.Printf(" in %.0f s\n", time.Since(began).Seconds())
	if broken > 0 {
		err = fmt.Errorf("%d patches could not be tried", broken)
	}
	return survived, err
}

// tryAll tries every patch, a few at a time, and tells of each as it ends.
func (b *binaries) tryAll(ctx context.Context, patches []patch, workers int) []result {
	results := make([]result, len(patches))
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range workers {
		wg.Go(func() {
			for i := range next {
				began := time.Now()
				r := b.try(ctx, patches[i])
				mu.Lock()
				results[i] = r
				fmt.Printf("%-8s %-34s %5.1f s  %s\n", r.fate, patches[i].name, time.Since(began).Seconds(), patches[i].why)
				mu.Unlock()
			}
		})
	}
	for i := range patches {
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}
