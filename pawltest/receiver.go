package pawltest

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/webhook"
)

// Receiver is an endpoint of the tenant's that verifies what comes and keeps it.
// It is safe for concurrent use.
type Receiver struct {
	scheme   webhook.Scheme
	key      webhook.Key
	endpoint string

	mu     sync.Mutex
	events []client.Event
	bad    []string
	answer func(client.Event) int
	// more is closed, and replaced, when something comes.
	more chan struct{}
}

func newReceiver(secret string) (*Receiver, error) {
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(secret)
	return &Receiver{scheme: scheme, key: key, more: make(chan struct{}), answer: func(client.Event) int { return http.StatusNoContent }}, err
}

// Endpoint is the receiver's id as an endpoint of the tenant's.
func (r *Receiver) Endpoint() string { return r.endpoint }

// Answer decides what the receiver answers to each delivery; 204 for all unless
// it is called. What is not 2xx is delivered again.
func (r *Receiver) Answer(status func(client.Event) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = status
}

// Events is everything that was delivered so far, repeats included, in the order
// in which it came, but for what was not answered 2xx.
func (r *Receiver) Events() []client.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]client.Event(nil), r.events...)
}

// Wait gives the first delivery that matches, of those that came and those that
// come.
func (r *Receiver) Wait(ctx context.Context, match func(client.Event) bool) (client.Event, error) {
	for seen := 0; ; {
		r.mu.Lock()
		fresh, more := r.events[seen:], r.more
		seen = len(r.events)
		r.mu.Unlock()
		for _, e := range fresh {
			if match(e) {
				return e, nil
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return client.Event{}, context.Cause(ctx)
		}
	}
}

// ServeHTTP takes a delivery.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, err := r.scheme.Verify(webhook.Request{Header: req.Header, Body: body}, time.Now(), r.key); err != nil {
		r.refuse(w, err)
		return
	}
	event, err := client.ParseEvent(body)
	if err != nil {
		r.refuse(w, err)
		return
	}
	r.mu.Lock()
	answer := r.answer
	r.mu.Unlock()
	status := answer(event)
	if status/100 == 2 {
		r.mu.Lock()
		r.events = append(r.events, event)
		close(r.more)
		r.more = make(chan struct{})
		r.mu.Unlock()
	}
	w.WriteHeader(status)
}

func (r *Receiver) refuse(w http.ResponseWriter, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = append(r.bad, err.Error())
	w.WriteHeader(http.StatusUnauthorized)
}

func (r *Receiver) refusals() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bad
}

// Wait gives the first event of a type about an operation that is delivered to
// the receiver; an empty operation stands for any. It fails the test if none
// comes in time, see Options.Patience.
func (p *Pawl) Wait(kind, operation string) client.Event {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), p.o.Patience)
	defer cancel()
	event, err := p.Receiver.Wait(ctx, func(e client.Event) bool {
		if e.Type != kind {
			return false
		}
		op, ok := e.Operation()
		return operation == "" || ok && op.ID == operation
	})
	if err != nil {
		var got []string
		for _, e := range p.Receiver.Events() {
			got = append(got, e.Type)
		}
		p.t.Fatalf("pawltest: no %s of %s came within %s; there came %v", kind, operation, p.o.Patience, got)
	}
	return event
}
