package torture

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/sim"
)

// load is the application: it hands in operations, each with one key for as
// often as it takes.
type load struct {
	client   *client.Client
	endpoint string
	plan     sim.Plan
	seed     uint64
	numbers  chan int
	released int
	done     chan struct{}

	mu sync.Mutex
	// answered are the operations that were answered 2xx, by number.
	answered []string
	// refused are answers that no fault excuses.
	refused []string
}

// hands is how many submit at once.
const hands = 24

// upstreamOf is what [demo.Upstreams] calls the upstream of a dialect.
var upstreamOf = map[sim.Dialect]string{sim.Native: "sim", sim.MediaV2: "studio", sim.BodyTimestamp: "tasks"}

// newLoad makes the load; of what is released, at most ahead waits to be handed
// in.
func newLoad(ctx context.Context, c *cluster, plan sim.Plan, seed uint64, ahead int, sink, secret string) (*load, error) {
	api, err := client.New(client.Options{
		Server: "http://" + c.front.address(), Key: client.Secret(c.key), Timeout: 5 * time.Second, Attempts: 8, MaxBackoff: time.Second,
	})
	if err != nil {
		return nil, err
	}
	endpoint, err := api.CreateEndpoint(ctx, client.NewEndpoint{
		URL: sink + "/outcomes", Secret: client.Secret(secret),
		Policy: &client.Policy{Attempts: 50, Timeout: "2s", Schedule: []string{"0s", "200ms", "500ms", "1s", "2s"}},
	})
	if err != nil {
		return nil, err
	}
	l := &load{
		client: api, endpoint: endpoint.ID, plan: plan, seed: seed,
		numbers: make(chan int, ahead), done: make(chan struct{}), answered: make([]string, plan.Len()),
	}
	var working sync.WaitGroup
	for range hands {
		working.Go(func() {
			for n := range l.numbers {
				l.submit(ctx, n)
			}
		})
	}
	go func() {
		working.Wait()
		close(l.done)
	}()
	return l, nil
}

// release lets the operations below a number be handed in. It waits where too
// many are ahead, so that the faults do not run away from the work. It is called
// by one goroutine; the last one ends the load.
func (l *load) release(ctx context.Context, until int) error {
	for ; l.released < until; l.released++ {
		select {
		case l.numbers <- l.released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if l.released+1 == l.plan.Len() {
			close(l.numbers)
		}
	}
	return nil
}

// wait returns when all are handed in.
func (l *load) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *load) submit(ctx context.Context, n int) {
	script, _ := l.plan.Script(n)
	price, err := client.MoneyOf(script.Price.String(), currency)
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil {
		op, err := l.client.Submit(ctx, client.Submission{
			Upstream: upstreamOf[script.Dialect], Model: "torture", Input: map[string]int{"n": n}, ExpectedCost: &price,
			IdempotencyKey: fmt.Sprintf("torture-%d-%d", l.seed, n),
		})
		if err == nil {
			l.mu.Lock()
			l.answered[n] = op.ID
			l.mu.Unlock()
			return
		}
		p, refused := errors.AsType[*client.Problem](err)
		if !refused || p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
			continue
		}
		l.mu.Lock()
		l.refused = append(l.refused, fmt.Sprintf("operation %d: %v", n, err))
		l.mu.Unlock()
		if p.Status < http.StatusInternalServerError || pause(ctx, 200*time.Millisecond) != nil {
			return
		}
	}
}
