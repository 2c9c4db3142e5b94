package simulate

import (
	"context"
	"sync"
	"time"
)

// Summary adds up runs.
type Summary struct {
	// Seeds, Failed, Operations, Commands, Commits and Steps are over all runs.
	Seeds      int           `json:"seeds"`
	Failed     int           `json:"failed"`
	Operations int           `json:"operations"`
	Commands   int           `json:"commands"`
	Commits    int           `json:"commits"`
	Steps      int           `json:"steps"`
	Struck     map[Fault]int `json:"struck"`
	// Virtual is the time that passed in the runs, Took how long they took
	// together, side by side.
	Virtual time.Duration `json:"virtual_ns"`
	Took    time.Duration `json:"took_ns"`
}

func (s *Summary) add(r Result) {
	s.Seeds++
	if r.Failed() {
		s.Failed++
	}
	s.Operations += r.Operations
	s.Commands += r.Commands
	s.Commits += r.Commits
	s.Steps += r.Steps
	s.Virtual += r.Virtual
	for f, n := range r.Struck {
		s.Struck[f] += n
	}
}

// PerSecond is how many commands were decided in a second.
func (s Summary) PerSecond() float64 { return float64(s.Commands) / max(s.Took.Seconds(), 1e-9) }

// Sweep runs the seeds from first to last, so many at a time, each in a
// goroutine of its own, and tells of each result in the order of the seeds. When
// the context ends, no further run begins.
func Sweep(ctx context.Context, first, last uint64, workers int, o Options, tell func(Result)) Summary {
	began := time.Now()
	s := Summary{Struck: map[Fault]int{}}
	workers = max(workers, 1)
	// Each run has a place to put its result; they are read in the order of the
	// seeds, and only so many runs are ahead of the one that is awaited.
	queue := make(chan chan Result, 2*workers)
	slots := make(chan struct{}, workers)
	var runs sync.WaitGroup
	go func() {
		defer close(queue)
		for seed := first; seed <= last && ctx.Err() == nil; seed++ {
			result := make(chan Result, 1)
			queue <- result
			slots <- struct{}{}
			runs.Go(func() {
				result <- Run(seed, o)
				<-slots
			})
			if seed == last { // The next one might not be a number.
				break
			}
		}
	}()
	for result := range queue {
		r := <-result
		s.add(r)
		tell(r)
	}
	runs.Wait()
	s.Took = time.Since(began)
	return s
}
