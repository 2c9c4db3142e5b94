package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
)

// gated is a memory store whose commits wait until the gate is opened.
func gated() (m *memory.Store, open func()) {
	gate := make(chan struct{})
	return memory.New(memory.Options{Fault: func(s memory.Step) error {
		if s == memory.BeforeCommit {
			<-gate
		}
		return nil
	}}), func() { close(gate) }
}

// send runs a command in a goroutine of its own, up to where it waits.
func send(c *store.Committer, cmd ledger.Command) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.Do(context.Background(), cmd)
		done <- err
	}()
	synctest.Wait()
	return done
}

func TestBatchFillsWhileCommitIsInFlight(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts store.Options
		size int
		want []int
	}{
		{"one batch", store.Options{}, 0, []int{1, 10}},
		{"bounded by commands", store.Options{Batch: 4}, 0, []int{1, 4, 4, 2}},
		{"bounded by bytes", store.Options{BatchBytes: 30}, 10, []int{1, 3, 3, 3, 1}},
		{"each larger than a batch", store.Options{BatchBytes: 9}, 10, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var commits []int
				tc.opts.OnCommit = sizes(&commits)
				m, open := gated()
				c := store.NewCommitter(m, tc.opts)
				var all []<-chan error
				for range 11 {
					cmd := counter("a")
					cmd.size = tc.size
					all = append(all, send(c, cmd))
				}
				if n := c.Waiting(); n != 10 {
					t.Errorf("%d are waiting, want 10", n)
				}
				open()
				for _, done := range all {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(commits, tc.want) {
					t.Errorf("commits held %v commands, want %v", commits, tc.want)
				}
			})
		})
	}
}

func TestQueueIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts store.Options
		size int
	}{
		{"commands", store.Options{Waiting: 2}, 0},
		{"bytes", store.Options{WaitingBytes: 25}, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, open := gated()
				c := store.NewCommitter(m, tc.opts)
				cmd := counter("a")
				cmd.size = tc.size
				accepted := []<-chan error{send(c, cmd), send(c, cmd), send(c, cmd)}
				if err := <-send(c, cmd); !errors.Is(err, store.ErrBusy) {
					t.Errorf("error is %v, want ErrBusy", err)
				}
				open()
				for _, done := range accepted {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				if err := <-send(c, cmd); err != nil {
					t.Errorf("still refused after the queue was worked off: %v", err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestDrainAnswersWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, open := gated()
		c := store.NewCommitter(m, store.Options{})
		first, second := send(c, counter("a")), send(c, counter("a"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Drain(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Drain gave %v, want its context's error", err)
		}
		if err := <-send(c, counter("a")); !errors.Is(err, store.ErrClosed) {
			t.Errorf("error is %v, want ErrClosed", err)
		}
		open()
		if err := c.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
		if n := counted(t, m, "a"); n != 2 {
			t.Errorf("%d took effect, want the 2 accepted", n)
		}
	})
}

func TestCallerMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, open := gated()
		c := store.NewCommitter(m, store.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := c.Do(ctx, counter("a"))
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want the context's", err)
		}
		if _, err := c.Do(ctx, counter("a")); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has left was taken in: %v", err)
		}
		open()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := counted(t, m, "a"); n != 1 {
			t.Errorf("%d took effect, want the one that was under way", n)
		}
	})
}

func TestAnswerOnlyAfterCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, open := gated()
		observed := false
		c := store.NewCommitter(m, store.Options{OnCommit: func(c store.Commit) {
			row, ok := c.Rows.Sources.Get("a")
			observed = ok && row.Parked == 1
		}})
		done := send(c, counter("a"))
		select {
		case <-done:
			t.Error("answered before the commit")
		default:
		}
		open()
		if err := <-done; err != nil || !observed {
			t.Errorf("error %v; observer saw the rows before the answer: %v", err, observed)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestManyCallers(t *testing.T) {
	const callers, each = 256, 20
	m := memory.New(memory.Options{})
	commits := 0
	c := store.NewCommitter(m, store.Options{OnCommit: func(store.Commit) { commits++ }})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			own := fmt.Sprint("own", i)
			for n := range int64(each) {
				out, err := c.Do(t.Context(), counter(own))
				if err != nil || out.Value != n+1 {
					t.Errorf("%s: outcome %v, %v; want %d", own, out.Value, err, n+1)
				}
				if _, err := c.Do(t.Context(), counter("shared")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n := counted(t, m, "shared"); n != callers*each {
		t.Errorf("shared is %d, want %d", n, callers*each)
	}
	if commits >= 2*callers*each {
		t.Errorf("%d commits for %d commands: nothing was batched", commits, 2*callers*each)
	}
}

func TestPanicOfKeysIsTheCallers(t *testing.T) {
	c := store.NewCommitter(memory.New(memory.Options{}), store.Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic reached the caller")
			}
		}()
		_, _ = c.Do(t.Context(), badKeys{})
	}()
	if _, err := c.Do(t.Context(), counter("a")); err != nil {
		t.Errorf("the committer did not survive: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

type badKeys struct{ command }

func (badKeys) Keys(*ledger.Keys) { panic("keys") }

// BenchmarkCommitter measures commands a second over the memory driver.
func BenchmarkCommitter(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			c := store.NewCommitter(memory.New(memory.Options{}), store.Options{})
			work := make(chan int, callers)
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for i := range work {
						if _, err := c.Do(b.Context(), counter(fmt.Sprint(i%1024))); err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.ReportAllocs()
			for i := range b.N {
				work <- i
			}
			close(work)
			all.Wait()
			if err := c.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}
