package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/webhook"
)

// How often the application submits during an incident: to the provider that
// fails rarely enough that a person can decide what each of its jobs came to.
const (
	submitsEvery = 2 * time.Second
	failingEvery = 15 * time.Second
)

// incident lets the provider "sim" answer 500 and lose its callbacks, and the web
// team's receiver be down, for as long as the options say. The application goes
// on until what it returns is called, which waits for it.
func (s *stage) incident(ctx context.Context) (over func(), err error) {
	if s.o.Incident <= 0 {
		return func() {}, nil
	}
	web, err := s.webTeam(ctx)
	if err != nil {
		return nil, err
	}
	s.sim.Fail(sim.Native)
	web.Fail(true)
	fmt.Fprintf(s.o.Progress, "\nFor %s the provider sim answers 500 and loses its callbacks, and the web team's receiver is down.\n"+
		"Find it in the console, and clear it; docs/walk.md goes along.\n", s.o.Incident)
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		if wait(ctx, s.o.Incident) {
			s.sim.Fail()
			web.Fail(false)
			fmt.Fprintln(s.o.Progress, "\nThe provider sim and the web team's receiver say that they are up again.")
		}
	})
	all.Go(func() { s.submits(ctx, submitsEvery, upstreams[sim.MediaV2], upstreams[sim.BodyTimestamp]) })
	all.Go(func() { s.submits(ctx, failingEvery, upstreams[sim.Native]) })
	return func() {
		stop()
		all.Wait()
		_ = web.Close()
	}, nil
}

// wait reports whether the time has passed before the context ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// webTeam is a second receiver, whose endpoint gives up soon.
func (s *stage) webTeam(ctx context.Context) (*sim.Receiver, error) {
	secret, err := webhook.NewSecret(nil)
	if err != nil {
		return nil, err
	}
	r, err := sim.NewReceiver(sim.ReceiverConfig{Secrets: []string{secret}})
	if err != nil {
		return nil, err
	}
	at, err := r.Start()
	if err != nil {
		return nil, err
	}
	return r, s.api.post(ctx, "/v1/endpoints", "", map[string]any{
		"url": at + "/web", "secret": secret, "owner": "web team", "types": []string{"operation.succeeded"},
		"policy": map[string]any{"attempts": 3, "schedule": []string{"0s", "500ms", "1s"}},
	}, &struct{}{})
}

// submits hands in one job to each upstream again and again; all go well where the
// provider does. What is refused is not the application's to mend.
func (s *stage) submits(ctx context.Context, every time.Duration, to ...string) {
	for n := 0; ; n++ {
		for _, upstream := range to {
			_ = s.api.post(ctx, "/v1/operations", fmt.Sprintf("incident-%s-%d", upstream, n), map[string]any{
				"upstream": upstream, "model": "demo", "input": map[string]any{"n": s.plan.Len() + n}, "expected_cost": map[string]any{"amount": "0.15", "currency": currency},
			}, &struct{}{})
		}
		if !wait(ctx, every) {
			return
		}
	}
}
