package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load runs one at a time on every connection until the time is up; do gets a
// number that no other call gets.
func (b *stage) load(ctx context.Context, pids []int, do func(ctx context.Context, n int) error) (result, error) {
	before, err := cpus(pids)
	if err != nil {
		return result{}, err
	}
	var next atomic.Int64
	took := make([][]time.Duration, b.s.connections)
	errs := make(chan error, b.s.connections)
	started := time.Now()
	end := started.Add(b.s.length)
	var hands sync.WaitGroup
	for i := range took {
		hands.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				at := time.Now()
				if err := do(ctx, int(next.Add(1))); err != nil {
					errs <- err
					return
				}
				took[i] = append(took[i], time.Since(at))
			}
		})
	}
	hands.Wait()
	length := time.Since(started)
	close(errs)
	if err := <-errs; err != nil {
		return result{}, err
	}
	after, err := cpus(pids)
	all := slices.Concat(took...)
	slices.Sort(all)
	return summary(all, length, after-before), err
}

func summary(sorted []time.Duration, length time.Duration, cpu float64) result {
	n := len(sorted)
	return result{
		perSecond: float64(n) / length.Seconds(), p50: sorted[n/2], p99: sorted[n*99/100], cpu: cpu / float64(n) * 1000,
	}
}

func (b *stage) bare(ctx context.Context) (result, error) {
	s, k := scheme(providerSecret)
	return b.load(ctx, []int{b.barePID}, func(_ context.Context, n int) error {
		return post(b.client, b.bareURL, eventBody("sim-1", n), s, k, "evt_"+strconv.Itoa(n))
	})
}

// eventBody is an event of 1 KB that shows new progress each time.
func eventBody(task string, n int) []byte {
	body := fmt.Appendf(nil, `{"id":"evt_%d","type":"task.updated","task":%q,"state":"processing","progress":0.%04d,"padding":"`, n, task, n%10000)
	return append(append(body, padding[:max(0, 1022-len(body))]...), `"}`...)
}

// intake sends distinct events of running operations, each operation's in turn.
func (b *bench) intake(ctx context.Context) (result, error) {
	if err := b.holdSome(ctx); err != nil {
		return result{}, err
	}
	s, k := scheme(providerSecret)
	first := b.events
	r, err := b.load(ctx, b.pids(), func(_ context.Context, n int) error {
		n += first
		return post(b.client, b.api(n)+"/hooks/bench", eventBody(b.tasks[n%len(b.tasks)], n), s, k, "evt_"+strconv.Itoa(n))
	})
	b.events += int(r.perSecond*b.s.length.Seconds()*2) + 1000
	return r, err
}

// holdSome makes operations that stay running, once.
func (b *bench) holdSome(ctx context.Context) error {
	if len(b.tasks) > 0 {
		return nil
	}
	return b.hold(ctx, 1000)
}

func (b *bench) hold(ctx context.Context, wanted int) error {
	const hands = 16
	errs := make([]error, hands)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for n := i; n < wanted && errs[i] == nil; n += hands {
				errs[i] = b.submitOne(ctx, n, "hold-"+strconv.Itoa(n), true)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for token := ""; ; {
		text, err := b.get(ctx, b.api(0)+"/v1/operations?state=running&page_size=200&page_token="+url.QueryEscape(token))
		if err != nil {
			return err
		}
		var page struct {
			Items []struct {
				TaskID string `json:"task_id"`
			}
			Next string `json:"next_page_token"`
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			return err
		}
		for _, op := range page.Items {
			b.tasks = append(b.tasks, op.TaskID)
		}
		if token = page.Next; token != "" {
			continue
		}
		if len(b.tasks) >= wanted {
			return nil
		}
		b.tasks = nil
		time.Sleep(200 * time.Millisecond)
	}
}

func (b *bench) submitOne(ctx context.Context, n int, key string, hold bool) error {
	body := fmt.Appendf(nil, `{"upstream":"bench","model":"m","expected_cost":{"amount":"0.1","currency":"USD"},"input":{"hold":%t,"prompt":%q}}`, hold, padding[:900])
	return b.callText(ctx, b.api(n), "/v1/operations", key, body, nil)
}

func (b *bench) submit(ctx context.Context) (result, error) {
	b.keys++
	r, err := b.load(ctx, b.pids(), func(ctx context.Context, n int) error {
		return b.submitOne(ctx, n, fmt.Sprintf("submit-%d-%d", b.keys, n), false)
	})
	if err != nil {
		return r, err
	}
	return r, b.drained(ctx)
}

// cycle counts whole lives: from the submit until the sink has the outcome. A
// bounded number is under way at any time.
func (b *bench) cycle(ctx context.Context) (result, error) {
	if err := b.drained(ctx); err != nil {
		return result{}, err
	}
	b.cycles++
	before, err := b.delivered(ctx)
	if err != nil {
		return result{}, err
	}
	used, err := cpus(b.pids())
	if err != nil {
		return result{}, err
	}
	started := time.Now()
	r, err := b.load(ctx, b.pids(), func(ctx context.Context, n int) error {
		return b.submitOne(ctx, n, fmt.Sprintf("cycle-%d-%d", b.cycles, n), false)
	})
	if err != nil {
		return r, err
	}
	if err := b.drained(ctx); err != nil {
		return r, err
	}
	length := time.Since(started)
	after, err := b.delivered(ctx)
	if err != nil {
		return r, err
	}
	now, err := cpus(b.pids())
	n := float64(after - before)
	return result{perSecond: n / length.Seconds(), p50: r.p50, p99: r.p99, cpu: (now - used) / n * 1000}, err
}

func (b *stage) delivered(ctx context.Context) (int, error) {
	text, err := b.get(ctx, b.sinkURL+"/")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// drained waits until the sink has an outcome for every finished operation:
// until its count stands still while nothing is pending.
func (b *bench) drained(ctx context.Context) error {
	for {
		var pending, waiting struct{ Items []struct{} }
		text, err := b.get(ctx, b.api(0)+"/v1/operations?state=pending&page_size=1")
		if err == nil {
			err = json.Unmarshal([]byte(text), &pending)
		}
		if err != nil {
			return err
		}
		if text, err = b.get(ctx, b.api(0)+"/v1/deliveries?state=pending&page_size=1"); err == nil {
			err = json.Unmarshal([]byte(text), &waiting)
		}
		if err != nil {
			return err
		}
		count, err := b.delivered(ctx)
		if err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
		again, err := b.delivered(ctx)
		if err != nil {
			return err
		}
		if len(pending.Items) == 0 && len(waiting.Items) == 0 && count == again {
			return nil
		}
	}
}

// closing prints what is measured once: start, idle memory and latency, and
// memory after the load.
func (b *bench) closing(ctx context.Context) error {
	resident, err := residentKB(b.nodes[0].Process.Pid)
	if err != nil {
		return err
	}
	var took []time.Duration
	s, k := scheme(providerSecret)
	for n := range 200 {
		b.events++
		at := time.Now()
		if err := post(b.client, b.api(0)+"/hooks/bench", eventBody(b.tasks[n%len(b.tasks)], b.events), s, k, "evt_idle_"+strconv.Itoa(n)); err != nil {
			return err
		}
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	sync, err := fsync(b.dir)
	if err != nil {
		return err
	}
	fmt.Printf("\nready in %s · idle memory %d MB · memory after the run %d MB · idle latency %s p50, one fsync %s p50\n",
		b.ready.Round(time.Millisecond), b.idle/1024, resident/1024, took[len(took)/2].Round(10*time.Microsecond), sync.Round(10*time.Microsecond))
	return nil
}
