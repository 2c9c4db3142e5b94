package exercise

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/sqlite"
	"github.com/pawlhq/pawl/internal/upstream"
)

// bookCrash is what a crash left, in ledger.json.
type bookCrash struct {
	Case string `json:"case"`
	// Killed says how the first life ended.
	Killed string `json:"killed"`
	// FirstAnswer is 0 where the connection was lost before an answer.
	FirstAnswer  int    `json:"first_answer"`
	RepeatAnswer int    `json:"repeat_answer"`
	EventID      string `json:"event_id"`
	TaskID       string `json:"task_id"`
	State        string `json:"state"`
	Upstream     string `json:"upstream_state"`
	Version      int64  `json:"version"`
	// StoredEvents counts the inbound events of the operation, Repeats those
	// that met their own first time.
	StoredEvents int   `json:"stored_events"`
	Repeats      int64 `json:"repeats"`
	// Outcomes are the ids of the outcomes that the receiver saw, each once;
	// Deliveries counts the requests that brought them.
	Outcomes   []string `json:"outcomes"`
	Deliveries int      `json:"deliveries"`
}

// crasher kills children.
type crasher struct {
	fix     Fixture
	raw     []byte
	ring    keyring
	program string
	dir     string
	dialer  *dialer
	client  *egress.Client
	wire    *wire

	receiver *sim.Receiver
	port     *listener
	arrived  chan struct{}
	// ports are the addresses of the children.
	ports []string
}

// open starts the receiver of outcomes.
func (c *crasher) open() (err error) {
	c.receiver, err = sim.NewReceiver(sim.ReceiverConfig{Secrets: []string{c.ring.secret(forEndpoint)}})
	if err != nil {
		return err
	}
	c.arrived = make(chan struct{}, 64)
	tapped := c.wire.tap(func(*http.Request) kind { return delivery }, drainBody, c.receiver)
	c.port, err = listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tapped.ServeHTTP(w, r)
		c.arrived <- struct{}{}
	}))
	return err
}

func (c *crasher) close() error {
	if c.port == nil {
		return nil
	}
	return errors.Join(c.receiver.Close(), c.port.close())
}

// run kills a child at one point, starts another on the same ledger and has the
// sender repeat the same event.
func (c *crasher) run(ctx context.Context, point, check string) (b bookCrash, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	step, _ := c.fix.crashEvent()
	b = bookCrash{Case: point, EventID: step.Event.ID, TaskID: step.Event.To}
	c.wire.now(point, check)
	o := order{Fixture: c.raw, Run: c.ring.String(), Ledger: filepath.Join(c.dir, point), Stop: point}
	id, err := c.prepare(ctx, o.Ledger, point)
	if err != nil {
		return b, fmt.Errorf("prepare the ledger: %w", err)
	}
	s := sender{c.fix, c.ring, upstream.NewCallbacks("http://127.0.0.1", c.ring.derive(forTokens)), c.client, c.wire, map[string]pawl.ID{step.Event.To: id}}
	l, err := s.sign(*step.Event)
	if err != nil {
		return b, err
	}
	if err := c.firstLife(ctx, o, s, l, &b); err != nil {
		return b, fmt.Errorf("first life: %w", err)
	}
	o.Stop = ""
	if err := c.secondLife(ctx, o, s, l, &b); err != nil {
		return b, fmt.Errorf("second life: %w", err)
	}
	c.outcomes(point, &b)
	return b, c.inspect(ctx, o.Ledger, id, &b)
}

func outcomePath(point string) string { return "/outcomes/" + point }

// prepare makes a ledger with the one operation and its endpoint.
func (c *crasher) prepare(ctx context.Context, dir, point string) (pawl.ID, error) {
	driver, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err != nil {
		return pawl.ID{}, err
	}
	core, err := newCore(c.fix, c.ring, driver, "http://127.0.0.1:1", nil)
	if err != nil {
		return pawl.ID{}, err
	}
	step, _ := c.fix.crashEvent()
	id, err := core.bind(ctx, c.fix.operation(step.Event.To))
	if err == nil {
		err = core.endpoint(ctx, "http://"+c.port.address()+outcomePath(point))
	}
	return id, errors.Join(err, core.close())
}

// firstLife posts the event and kills the child where it has stopped.
func (c *crasher) firstLife(ctx context.Context, o order, s sender, l letter, b *bookCrash) error {
	p, err := startChild(ctx, c.program, o, c.dialer)
	if err != nil {
		return err
	}
	defer p.kill()
	c.ports = append(c.ports, p.address)
	answers := make(chan exchange, 1)
	go func() {
		x, _ := s.post(ctx, l, p.address) // a lost answer is what is looked for
		answers <- x
	}()
	if err := p.stopped(ctx, o.Stop); err != nil {
		return err
	}
	if o.Stop == stopBeforeDelivery {
		x := <-answers
		answers <- x
	}
	err = p.kill()
	b.Killed = p.state()
	if x := <-answers; x.Answer != nil {
		b.FirstAnswer = x.Answer.Status
	}
	return err
}

// secondLife repeats the same bytes and waits for the outcome.
func (c *crasher) secondLife(ctx context.Context, o order, s sender, l letter, b *bookCrash) error {
	p, err := startChild(ctx, c.program, o, c.dialer)
	if err != nil {
		return err
	}
	defer p.kill()
	c.ports = append(c.ports, p.address)
	x, err := s.post(ctx, l, p.address)
	if err != nil {
		return fmt.Errorf("the repeat was not answered: %w", err)
	}
	b.RepeatAnswer = x.Answer.Status
	select {
	case <-c.arrived:
	case <-ctx.Done():
		return errors.New("no outcome was delivered in time")
	}
	return p.finish()
}

// outcomes counts what the receiver saw.
func (c *crasher) outcomes(point string, b *bookCrash) {
	b.Outcomes = []string{}
	for _, e := range c.receiver.Snapshot().Events {
		if e.Path == outcomePath(point) {
			b.Outcomes = append(b.Outcomes, e.Event)
			b.Deliveries += e.Count
		}
	}
}

// inspect reads what the two lives have left.
func (c *crasher) inspect(ctx context.Context, dir string, id pawl.ID, b *bookCrash) error {
	r, err := sqlite.OpenReadOnly(ctx, dir)
	if err != nil {
		return err
	}
	defer r.Close()
	all, err := r.OperationFacts(ctx, store.Page{Limit: 10})
	if err != nil {
		return err
	}
	if len(all) != 1 || all[0].Operation.ID != id {
		return fmt.Errorf("%d operations are in the ledger, expected the one", len(all))
	}
	f := all[0]
	b.State, b.Upstream, b.Version = f.Operation.State.String(), f.Operation.UpstreamState, f.Operation.Version
	b.StoredEvents = len(f.Inbound)
	for _, k := range f.EventKeys {
		b.Repeats += k.Repeats
	}
	for _, d := range f.Deliveries {
		if d.State != pawl.DeliveryDelivered {
			return fmt.Errorf("a delivery of the outcome is %s, expected delivered", d.State)
		}
	}
	return violations(ctx, r)
}

// violations runs the ledger's own check.
func violations(ctx context.Context, facts store.Facts) error {
	var found []error
	_, err := store.Check(ctx, facts, func(v ledger.Violation) error {
		found = append(found, errors.New(v.String()))
		return nil
	}, nil)
	return errors.Join(append(found, err)...)
}

// judge compares what a crash left with the same event of the main run, which
// nobody killed.
func (b bookCrash) judge(want standing) error {
	first := 0
	if b.Case == stopBeforeDelivery {
		first = http.StatusAccepted
	}
	var wrong []error
	differ := func(what string, got, want any) {
		if got != want {
			wrong = append(wrong, fmt.Errorf("%s is %v, expected %v", what, got, want))
		}
	}
	differ("the end of the first life", b.Killed, "signal: killed")
	differ("the first answer", b.FirstAnswer, first)
	differ("the answer to the repeat", b.RepeatAnswer, http.StatusOK)
	differ("the state", b.State, want.State.String())
	differ("the provider's word", b.Upstream, want.UpstreamState)
	differ("the version", b.Version, want.Version)
	differ("the number of stored events", b.StoredEvents, 1)
	differ("the number of repeats", b.Repeats, int64(1))
	differ("the number of outcomes", len(b.Outcomes), 1)
	return errors.Join(wrong...)
}
