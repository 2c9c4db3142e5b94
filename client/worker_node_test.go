package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/pawltest"
)

// ownJob is a job for own workers.
func ownJob(n int) client.Submission {
	return client.Submission{Upstream: pawltest.Workers, Model: "m", Input: map[string]int{"n": n}, ExpectedCost: price}
}

// atNode runs a worker against a real node until the test ends, or stop is called.
func atNode(t *testing.T, p *pawltest.Pawl, w client.Worker) (stop func()) {
	t.Helper()
	w.Client = p.Client
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// Three workers do fifty operations of a real node, each once.
func TestWorkersAtANode(t *testing.T) {
	t.Parallel()
	const n = 50
	p, ctx := pawltest.New(t, pawltest.Options{Types: []string{pawl.TypeSucceeded}}), t.Context()
	var mu sync.Mutex
	did := make(map[string]int) // operations, by how often they were done
	by := make([]int, 3)        // workers, by how many they did
	for i := range by {
		atNode(t, p, client.Worker{
			Concurrency: 2, Capabilities: []string{pawltest.Workers + "/m"}, Lost: func(_ *client.Job, err error) { t.Error(err) },
			Do: func(ctx context.Context, j *client.Job) (client.Done, error) {
				mu.Lock()
				did[j.Operation.ID]++
				by[i]++
				mu.Unlock()
				if err := j.Progress(ctx, 50, "half"); err != nil {
					return client.Done{}, err
				}
				time.Sleep(5 * time.Millisecond)
				return client.Done{Result: j.Operation.Input, Cost: &client.Money{Amount: 100_000_000, Currency: "USD"}}, nil
			},
		})
	}
	var ids []string
	for i := range n {
		op, err := p.Client.Submit(ctx, ownJob(i))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, op.ID)
	}
	for i, id := range ids {
		op, err := p.Client.Wait(ctx, id)
		if err != nil || op.State != pawl.Succeeded || string(op.Result) != fmt.Sprintf(`{"n":%d}`, i) || op.Cost.Amount != 100_000_000 || op.Attempts != 1 || op.Metadata != nil {
			t.Fatalf("%+v %v", op, err)
		}
		p.Wait(pawl.TypeSucceeded, id)
	}
	if len(did) != n || by[0]+by[1]+by[2] != n || slices.Contains(by, 0) {
		t.Errorf("%d operations were done by %v", len(did), by)
	}
	accounts, err := client.Collect(p.Client.Accounts(ctx), 0)
	// 100 USD less 50 × 0.1.
	if err != nil || accounts[0].Balance != 95*pawl.AmountScale || accounts[0].Reserved != 0 {
		t.Errorf("%+v %v", accounts, err)
	}
}

// cutWire is a connection to the server that can be cut, as if the process had
// died: what is said after that is never heard.
type cutWire struct{ dead atomic.Bool }

func (w *cutWire) cut() { w.dead.Store(true) }

// RoundTrip implements [http.RoundTripper].
func (w *cutWire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.dead.Load() {
		return nil, errors.New("the wire is cut")
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (w *cutWire) client() *http.Client { return &http.Client{Transport: w} }

// A worker that dies in the middle is found out by its lease, and another one does
// the operation.
func TestWorkerDies(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{Lease: time.Second}), t.Context()
	op, err := p.Client.Submit(ctx, ownJob(1))
	if err != nil {
		t.Fatal(err)
	}
	wire := new(cutWire)
	dying, err := client.New(client.Options{Server: p.URL, Key: p.Key, HTTP: wire.client(), Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	began, lost := make(chan struct{}), make(chan error, 8)
	dies, kill := context.WithCancel(ctx)
	gone := make(chan error, 1)
	first := client.Worker{Client: dying, Drain: time.Millisecond, Lost: func(_ *client.Job, err error) { lost <- err }, Do: func(ctx context.Context, j *client.Job) (client.Done, error) {
		close(began)
		<-ctx.Done()
		return client.Done{}, context.Cause(ctx)
	}}
	go func() { gone <- first.Run(dies) }()
	<-began
	wire.cut()
	kill()
	died := time.Now()

	attempts := make(chan int, 8)
	atNode(t, p, client.Worker{Do: func(_ context.Context, j *client.Job) (client.Done, error) {
		attempts <- j.Attempt
		return client.Done{Result: "by the second"}, nil
	}})
	ended, err := p.Client.Wait(ctx, op.ID)
	if err != nil || ended.State != pawl.Succeeded || string(ended.Result) != `"by the second"` || ended.Attempts != 2 {
		t.Fatalf("%+v %v", ended, err)
	}
	if attempt := <-attempts; attempt != 2 || len(attempts) != 0 {
		t.Errorf("attempt %d, and %d more", attempt, len(attempts))
	}
	if took := time.Since(died); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if err := <-lost; err == nil {
		t.Error("the first worker was told of nothing")
	}
}

// A cancel reaches the worker's context, and the operation ends as canceled; so
// does a deadline.
func TestWorkerIsCanceled(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{Lease: 2 * time.Second}), t.Context()
	began, causes := make(chan string, 1), make(chan error, 1)
	atNode(t, p, client.Worker{Do: func(ctx context.Context, j *client.Job) (client.Done, error) {
		began <- j.Operation.ID
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return client.Done{}, ctx.Err()
	}})
	op, err := p.Client.Submit(ctx, ownJob(1))
	if err != nil {
		t.Fatal(err)
	}
	if id := <-began; id != op.ID {
		t.Errorf("%s began, not %s", id, op.ID)
	}
	if _, err := p.Client.Cancel(ctx, op.ID); err != nil {
		t.Fatal(err)
	}
	if cause := <-causes; !errors.Is(cause, client.ErrCanceled) {
		t.Error(cause)
	}
	ended, err := p.Client.Wait(ctx, op.ID)
	if err != nil || ended.State != pawl.Canceled || !ended.Cancel.Confirmed || ended.Cost.Amount != 0 {
		t.Errorf("%+v %v", ended, err)
	}
}

// A worker's failures are what it says, and a fault of its own is tried again.
func TestWorkerFailsAtANode(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{}), t.Context()
	var lost lossy
	atNode(t, p, client.Worker{Concurrency: 2, Lost: lost.add, Do: func(_ context.Context, j *client.Job) (client.Done, error) {
		var in struct{ N int }
		if err := json.Unmarshal(j.Operation.Input, &in); err != nil {
			return client.Done{}, err
		}
		switch {
		case in.N == 1:
			return client.Done{}, &client.Failure{Code: pawl.FailContentRejected, Message: "no kites"}
		case j.Attempt == 1:
			panic("a fault of the worker's own")
		}
		return client.Done{}, nil
	}})
	refused, err := p.Client.Run(ctx, ownJob(1))
	if err != nil || refused.State != pawl.Failed || refused.Error.Code != pawl.FailContentRejected || refused.Error.Message != "no kites" || refused.Attempts != 1 {
		t.Errorf("%+v %v", refused, err)
	}
	again, err := p.Client.Run(ctx, ownJob(2))
	if err != nil || again.State != pawl.Succeeded || again.Attempts != 2 {
		t.Errorf("%+v %v", again, err)
	}
	lost.mu.Lock()
	defer lost.mu.Unlock()
	if len(lost.all) != 1 {
		t.Error(lost.all)
	}
}
