package exercise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/upstream"
	"github.com/pawlhq/pawl/webhook"
)

// hiddenToken stands in wire/ where the token of a callback address was.
const hiddenToken = "{callback-token}"

// sender is the provider's side of callbacks.
type sender struct {
	fix       Fixture
	ring      keyring
	callbacks upstream.Callbacks
	client    *egress.Client
	wire      *wire
	// operations are those that have a callback address, by task.
	operations map[string]pawl.ID
}

// letter is a signed event, ready to be sent any number of times with the same
// bytes.
type letter struct {
	event  Inbound
	header http.Header
}

// sign signs an event as its provider would.
func (s sender) sign(e Inbound) (letter, error) {
	scheme, ok := webhook.Lookup(s.fix.spec.Callback.Scheme)
	if !ok {
		return letter{}, errors.New("the description's scheme is not known")
	}
	purpose := forSource
	if e.Stranger {
		purpose = forStranger
	}
	key, err := scheme.ParseKey(s.ring.secret(purpose))
	if err != nil {
		return letter{}, err
	}
	h, err := scheme.Sign(webhook.Message{ID: e.ID, Timestamp: time.Now().Unix() - e.Age, Body: e.Body}, key)
	if err != nil {
		return letter{}, fmt.Errorf("event %q cannot be signed: %w", e.ID, err)
	}
	h.Set("Content-Type", "application/json")
	return letter{e, h}, nil
}

// post sends a letter to a receiver and records what went over the wire. The
// error is that of a connection that was lost before an answer.
func (s sender) post(ctx context.Context, l letter, hooks string) (exchange, error) {
	path, public := "/hooks/"+s.fix.spec.Name, "/hooks/"+s.fix.spec.Name
	if l.event.To != "" {
		path += "/" + s.callbacks.Token(s.fix.spec.Name, s.operations[l.event.To])
		public += "/" + hiddenToken
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+hooks+path, bytes.NewReader(l.event.Body))
	if err != nil {
		return exchange{}, err
	}
	r.Header = l.header.Clone()
	signedBy := forSource
	if l.event.Stranger {
		signedBy = forStranger
	}
	number := s.wire.begin(exchange{
		Kind: callback, To: l.event.To, SignedBy: signedBy, Age: l.event.Age, EventID: l.event.ID,
		Request: request{http.MethodPost, public, shown(l.header), string(l.event.Body)},
	})
	got, err := s.client.Do(ctx, r, egress.Limits{Timeout: patience, NoResend: true})
	if err != nil {
		return s.wire.end(number, nil, "the connection was lost before an answer"), err
	}
	return s.wire.end(number, &answer{got.Status, shown(got.Header), string(got.Body)}, ""), nil
}
