package exercise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/work"
)

// The phases of a run, in its receipts.
const (
	phaseEvents   = "events"
	phaseRecovery = "recovery"
)

// phases are all of them; those of the crashes are named after their points.
var phases = []string{phaseEvents, phaseRecovery, stopAfterCommit, stopBeforeDelivery}

func phaseOf(s Step) string {
	if s.Recovery {
		return phaseRecovery
	}
	return phaseEvents
}

// played is what became of a step.
type played struct {
	step          Step
	exchange      exchange
	verdict       string
	reason        string
	before, after map[string]standing
}

// standing is what the ledger holds of an operation, as far as an event or a
// read can change it.
type standing struct {
	State         pawl.State
	UpstreamState string
	Version       int64
}

// play makes one step happen and observes it.
func (s *stage) play(ctx context.Context, step Step) (p played, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p.step = step
	if p.before, err = s.standings(ctx); err != nil {
		return p, err
	}
	s.wire.now(phaseOf(step), step.Check)
	if step.Event != nil {
		err = s.playEvent(ctx, &p)
	} else {
		err = s.playRead(ctx, &p)
	}
	if err != nil {
		return p, err
	}
	p.after, err = s.standings(ctx)
	return p, err
}

func (s *stage) playEvent(ctx context.Context, p *played) error {
	l, err := s.sender.sign(*p.step.Event)
	if err != nil {
		return err
	}
	if p.exchange, err = s.sender.post(ctx, l, s.hooks); err != nil {
		return err
	}
	p.verdict, p.reason, err = s.judged(ctx, *p.exchange.Answer)
	return err
}

// judged is the verdict on the event that was answered last: the answer tells
// it, except for what was stored and refused, which the ledger tells.
func (s *stage) judged(ctx context.Context, a answer) (verdict, reason string, err error) {
	var said struct {
		Verdict string `json:"verdict"`
		Reason  string `json:"reason"`
	}
	_ = json.Unmarshal([]byte(a.Body), &said) // an answer that is no JSON says nothing
	if a.Status != 400 {
		return said.Verdict, said.Reason, nil
	}
	latest, err := s.driver.Events(ctx, store.EventFilter{Direction: ledger.Inbound, Source: s.fix.spec.Name}, store.Page{Limit: 1})
	if err != nil || len(latest) == 0 {
		return "", said.Reason, err
	}
	return latest[0].Verdict.String(), latest[0].Reason, nil
}

// playRead makes a read due, lets the real loop do it, and stops the loop when
// its outcome is recorded.
func (s *stage) playRead(ctx context.Context, p *played) error {
	reply := p.step.Read
	id := s.operations[reply.Task]
	before, err := s.driver.History(ctx, id)
	if err != nil {
		return err
	}
	had := len(s.wire.exchanges())
	s.provider.expect(reply)
	out, err := s.store.Do(ctx, ledger.ReadNow{Header: store.NewHeader(""), Operation: id, Up: s.up().Policy()})
	if err != nil || out.Reason != "due" {
		return errors.Join(fmt.Errorf("a read cannot be made due: %s", out.Reason), err)
	}
	if err := s.runLoop(ctx, id); err != nil {
		return err
	}
	found := s.wire.exchanges()[had:]
	if len(found) != 1 || found[0].Kind != read {
		return fmt.Errorf("%d requests reached the provider where one status read was expected", len(found))
	}
	p.exchange = found[0]
	after, err := s.driver.History(ctx, id)
	if err != nil {
		return err
	}
	// A read that brings nothing leaves no line.
	p.verdict, p.reason = pawl.Stale.String(), "nothing_new"
	for _, h := range after[len(before):] {
		if h.Kind == "read" {
			p.verdict, p.reason = h.Verdict.String(), h.Reason
		}
	}
	return nil
}

// runLoop runs the work loop until a read of the operation is recorded.
func (s *stage) runLoop(ctx context.Context, id pawl.ID) error {
	w := work.New(work.Options{
		Store: s.store, Reader: s.driver, Client: s.client, Upstreams: s.upstreams, Callbacks: s.callbacks,
		Metrics: s.metrics, Log: slog.New(slog.DiscardHandler),
	})
	claiming, stop := context.WithCancel(ctx)
	var loop sync.WaitGroup
	loop.Go(func() { w.Run(claiming, ctx) })
	defer loop.Wait()
	defer stop()
	for {
		select {
		case done := <-s.reads:
			if done == id {
				return nil
			}
		case <-ctx.Done():
			return errors.New("no read was made in time")
		}
	}
}

// standings are those of all bound operations, by task.
func (s *stage) standings(ctx context.Context) (map[string]standing, error) {
	all := make(map[string]standing, len(s.operations))
	var keys ledger.Keys
	for _, id := range s.operations {
		keys.Operations = append(keys.Operations, id)
	}
	var rows ledger.Rows
	if err := s.driver.Load(ctx, &keys, &rows); err != nil {
		return nil, err
	}
	for task, id := range s.operations {
		op, ok := rows.Operations.Get(id)
		if !ok {
			return nil, fmt.Errorf("the operation of task %q is not in the ledger", task)
		}
		all[task] = standing{op.State, op.UpstreamState, op.Version}
	}
	return all, nil
}
