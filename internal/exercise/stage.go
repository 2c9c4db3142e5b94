package exercise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/intake"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
	"github.com/pawlhq/pawl/internal/upstream"
)

const (
	// tenant owns the operations of an exercise.
	tenant = "exercise"
	// never is a schedule of reads of which none becomes due by itself.
	never = 12 * time.Hour
	// deadline is that of the operations.
	deadline = 24 * time.Hour
	// patience is how long one step may take, on a machine that has much else
	// to do.
	patience = 60 * time.Second
)

// core is a ledger with its rules and its receiver, over any driver: what the
// exercise, its replay and its child have in common.
type core struct {
	fix       Fixture
	ring      keyring
	driver    store.Driver
	store     *store.Committer
	upstreams upstream.Set
	callbacks upstream.Callbacks
}

// newCore takes the driver over: [core.close] closes it. Base is where the
// provider is.
func newCore(fix Fixture, ring keyring, driver store.Driver, base string, onCommit func(store.Commit)) (*core, error) {
	c := &core{fix: fix, ring: ring, driver: driver, callbacks: upstream.NewCallbacks("http://127.0.0.1", ring.derive(forTokens))}
	up, err := newUpstream(fix, ring, base)
	if err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	c.upstreams = upstream.Set{up.Name(): up}
	c.store = store.NewCommitter(driver, store.Options{OnCommit: onCommit})
	return c, nil
}

func newUpstream(fix Fixture, ring keyring, base string) (upstream.Upstream, error) {
	settings := config.DefaultUpstream()
	settings.BaseURL = base
	settings.Orphans = config.OrphansReject
	settings.Read = config.Read{First: never, Factor: 1, Max: never, Rate: 50}
	settings.Timeout = patience / 2
	settings.Owner = "the exercise"
	var err error
	if settings.Key, err = config.NewSecret(ring.secret(forProvider)); err != nil {
		return upstream.Upstream{}, err
	}
	secret, err := config.NewSecret(ring.secret(forSource))
	if err != nil {
		return upstream.Upstream{}, err
	}
	settings.WebhookKeys = []config.DatedSecret{{Key: secret}}
	return upstream.New(fix.spec.Name, fix.spec, settings)
}

// up is the one upstream of an exercise.
func (c *core) up() upstream.Upstream { return c.upstreams[c.fix.spec.Name] }

func (c *core) receiver(m *telemetry.Metrics) http.Handler {
	return intake.New(intake.Options{
		Store: c.store, Upstreams: c.upstreams, Callbacks: c.callbacks, Metrics: m, Log: slog.New(slog.DiscardHandler),
	})
}

// do has a command decided; a refusal is an error.
func (c *core) do(ctx context.Context, command ledger.Command) (any, error) {
	out, err := c.store.Do(ctx, command)
	if err == nil && out.Err != nil {
		err = out.Err
	}
	return out.Value, err
}

// close ends the committer and the driver.
func (c *core) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(c.store.Drain(ctx), c.driver.Close())
}

// stage is a core with its two ports: the receiver, and the fake provider.
type stage struct {
	*core
	sender   sender
	wire     *wire
	client   *egress.Client
	metrics  *telemetry.Metrics
	provider *provider
	ports    []*listener
	// hooks is the address of the receiver.
	hooks string
	// reads gets the operation of each read that was recorded.
	reads      chan pawl.ID
	operations map[string]pawl.ID
}

// openStage starts both ports over a driver, which it takes over.
func openStage(fix Fixture, ring keyring, driver store.Driver, d *dialer, w *wire) (_ *stage, err error) {
	s := &stage{
		wire: w, metrics: telemetry.NewMetrics(nil), provider: newProvider(fix.spec),
		reads: make(chan pawl.ID, maxSteps), operations: make(map[string]pawl.ID),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.client, err = d.client(); err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	upstreamPort, err := s.listen(s.provider.handler(w))
	if err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	if s.core, err = newCore(fix, ring, driver, "http://"+upstreamPort, s.committed); err != nil {
		return nil, err
	}
	s.sender = sender{fix, ring, s.callbacks, s.client, w, s.operations}
	s.hooks, err = s.listen(s.receiver(s.metrics))
	return s, err
}

func (s *stage) listen(h http.Handler) (string, error) {
	l, err := listen(h)
	if err != nil {
		return "", err
	}
	s.ports = append(s.ports, l)
	return l.address(), nil
}

// committed notices the reads that were recorded.
func (s *stage) committed(c store.Commit) {
	for id, change := range c.Rows.Operations.Changes() {
		if change.Now.Reads > change.Was.Reads {
			select {
			case s.reads <- id:
			default:
			}
		}
	}
}

// addresses are those of the ports, the provider's first.
func (s *stage) addresses() (all []string) {
	for _, l := range s.ports {
		all = append(all, l.address())
	}
	return all
}

// close frees both ports and closes the ledger.
func (s *stage) close() error {
	var errs []error
	for _, l := range s.ports {
		errs = append(errs, l.close())
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.core != nil {
		errs = append(errs, s.core.close())
	}
	return errors.Join(errs...)
}

// bindAll binds every operation of the fixture to its task.
func (s *stage) bindAll(ctx context.Context) error {
	for _, op := range s.fix.Operations {
		id, err := s.bind(ctx, op)
		if err != nil {
			return fmt.Errorf("bind task %q: %w", op.Task, err)
		}
		s.operations[op.Task] = id
	}
	return nil
}
