package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/webhook"
)

// stage holds what a demo runs.
type stage struct {
	o    Options
	dir  string
	plan sim.Plan
	cfg  config.Config

	sim      *sim.Server
	receiver *sim.Receiver
	sink     string
	node     *node
	api      *apiClient
	endpoint string
	// operations are the ids by number.
	operations []string
	// verdicts is how often the node came to each, in its first life.
	verdicts map[string]int
}

// node is a running server and the way to stop it.
type node struct {
	*server.Node
	stop    context.CancelFunc
	stopped chan error
}

func (s *stage) start(ctx context.Context) (err error) {
	if s.sim, err = sim.NewServer(s.plan, sim.Config{Speed: speed, Hold: 3 * time.Second}); err != nil {
		return err
	}
	provider, err := s.sim.Start()
	if err != nil {
		return err
	}
	secret, err := webhook.NewSecret(nil)
	if err != nil {
		return err
	}
	s.receiver, err = sim.NewReceiver(sim.ReceiverConfig{Secrets: []string{secret}, Seed: s.o.Seed, Trouble: 10, Hold: 500 * time.Millisecond})
	if err != nil {
		return err
	}
	if s.sink, err = s.receiver.Start(); err != nil {
		return err
	}
	if s.cfg, err = config.Parse("demo.yaml", []byte(s.configuration(provider)), os.LookupEnv); err != nil {
		return err
	}
	if err := s.startNode(ctx); err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(s.dir, "admin.key"))
	if err != nil {
		return err
	}
	s.api = newAPIClient(s.node.APIURL(), strings.TrimSpace(string(key)))
	return s.makeEndpoint(ctx, secret)
}

func (s *stage) configuration(provider string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\ndata: %q\n", s.dir) + Upstreams(provider, s.sim)
}

func (s *stage) startNode(ctx context.Context) error {
	n, err := server.Start(ctx, s.cfg, server.Options{})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.node = &node{Node: n, stop: stop, stopped: make(chan error, 1)}
	go func(node *node) { node.stopped <- node.Run(running) }(s.node)
	// Callback addresses hold the bound port: a restart keeps it.
	s.cfg.Listen = strings.TrimPrefix(n.APIURL(), "http://")
	return nil
}

func (s *stage) stopNode() error {
	if s.node == nil {
		return nil
	}
	n := s.node
	s.node = nil
	n.stop()
	return <-n.stopped
}

func (s *stage) makeEndpoint(ctx context.Context, secret string) error {
	var ep struct {
		ID string `json:"id"`
	}
	err := s.api.post(ctx, "/v1/endpoints", "", map[string]any{
		"url": s.sink + "/outcomes", "secret": secret,
		"policy": map[string]any{"schedule": []string{"0s", "200ms", "500ms", "1s", "2s", "5s", "10s"}},
	}, &ep)
	s.endpoint = ep.ID
	return err
}

// submit hands in every operation once, a few at a time.
func (s *stage) submit(ctx context.Context) error {
	s.operations = make([]string, s.plan.Len())
	numbers := make(chan int)
	errs := make(chan error, s.plan.Len())
	var hands sync.WaitGroup
	for range 16 {
		hands.Go(func() {
			for n := range numbers {
				errs <- s.submitOne(ctx, n)
			}
		})
	}
	for n := range s.plan.Len() {
		numbers <- n
	}
	close(numbers)
	hands.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

func (s *stage) submitOne(ctx context.Context, n int) error {
	script, _ := s.plan.Script(n)
	var op operation
	err := s.api.post(ctx, "/v1/operations", fmt.Sprintf("demo-%d-%d", s.o.Seed, n), map[string]any{
		"upstream": upstreams[script.Dialect], "model": "demo", "input": map[string]any{"n": n},
		"expected_cost": map[string]any{"amount": script.Price.String(), "currency": currency},
	}, &op)
	s.operations[n] = op.ID
	return err
}

// settle waits until the ledger holds every outcome that can be learned, the
// money is settled and no delivery is waiting.
func (s *stage) settle(ctx context.Context) error {
	for {
		open, waiting, err := s.open(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.o.Progress, "         %d of %d outcomes known, %d deliveries under way\n", s.plan.Len()-open, s.plan.Len(), waiting)
		if open == 0 && waiting == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d operations and %d deliveries are still open: %w", open, waiting, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// open counts what has not come to its end yet.
func (s *stage) open(ctx context.Context) (operations, deliveries int, err error) {
	ops, err := s.api.operations(ctx)
	if err != nil {
		return 0, 0, err
	}
	for n, id := range s.operations {
		script, _ := s.plan.Script(n)
		state, _ := script.Expected()
		op := ops[id]
		if op.State != state.String() && !terminal(op.State) || terminal(op.State) && !op.Cost.Settled {
			operations++
		}
	}
	deliveries, err = s.api.waitingDeliveries(ctx, s.endpoint)
	return operations, deliveries, err
}

func terminal(word string) bool {
	state, ok := pawl.ParseState(word)
	return ok && state.Terminal()
}

// restart proves that the ledger is what holds the job, not the process.
func (s *stage) restart(ctx context.Context) (err error) {
	if s.verdicts, err = s.api.verdicts(ctx, s.node.AdminURL()); err != nil {
		return err
	}
	if err := s.stopNode(); err != nil {
		return err
	}
	return s.startNode(ctx)
}

func (s *stage) close() error {
	err := s.stopNode()
	if s.sim != nil {
		err = errors.Join(err, s.sim.Close())
	}
	if s.receiver != nil {
		err = errors.Join(err, s.receiver.Close())
	}
	return err
}
