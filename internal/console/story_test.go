package console

import (
	"testing"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// story is a ledger with something of each kind that a page shows, all of it
// acme's and written by a hostile provider.
type story struct {
	*rig
	// succeeded has a delivery that is dead; held withholds its result; failed tells
	// a hostile message; unconfirmed waits for a person, pending for its turn.
	succeeded, held, failed, unconfirmed, pending string
	endpoint, delivery, event                     string
	// request is that which submitted succeeded.
	request string
	// orphan is a review of nobody's event, unconfirmedReview that of unconfirmed.
	orphan string
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{rig: newRig(t)}
	endpoint := s.do(ledger.CreateEndpoint{Header: head(), Endpoint: ledger.Endpoint{
		ID: store.NewID(), Tenant: "acme", URL: "https://hooks.example.com/in", Scheme: "standard-webhooks", Description: hostile,
	}}).(ledger.Endpoint)
	s.endpoint = endpoint.ID.Text(pawl.PrefixEndpoint)
	s.succeeded = s.submit("studio", `,"correlation_id":"order-1","metadata":{"note":"<script>alert(4)</script>"},"owner":"<b>owner</b>"`)
	s.request = s.rig.request
	s.end(s.created("studio", ledger.CreateAccepted, "job_1"), "e1", pawl.Succeeded, `{"text":"RESULT-OPEN"}`)
	s.kill(endpoint.ID)
	s.held = s.submit("held", "")
	s.end(s.created("held", ledger.CreateAccepted, "job_2"), "e2", pawl.Succeeded, `{"text":"RESULT-HELD"}`)
	s.failed = s.submit("studio", "")
	s.created("studio", ledger.CreateRefused, "")
	s.unconfirmed = s.submit("unsafe", "")
	s.created("unsafe", ledger.CreateUnknown, "")
	s.pending = s.submit("studio", `,"correlation_id":"order-2"`)
	lost := s.do(ledger.ReceiveEvent{Header: head(), Up: s.policy("studio"), Event: "e9", Body: `{"a":1}`, Obs: ledger.Observation{
		Task: "job_9", Word: hostile, State: pawl.Succeeded, Progress: -1,
	}}).(ledger.Received)
	s.do(ledger.OrphanOverdue{Header: head(), Event: lost.Event})
	s.event = lost.Event.Text(pawl.PrefixEvent)
	reviews, err := s.driver.Reviews(t.Context(), store.ReviewFilter{Reason: pawl.ReviewOrphan}, store.Page{Limit: 1})
	if err != nil || len(reviews) != 1 {
		t.Fatal(reviews, err)
	}
	s.orphan = reviews[0].ID.Text(pawl.PrefixReview)
	return s
}

// end has a callback end an operation.
func (s *story) end(op ledger.Operation, event string, state pawl.State, result string) {
	s.t.Helper()
	s.do(ledger.ReceiveEvent{Header: head(), Up: s.policy(op.Upstream), Token: op.ID, Event: event, Body: result, Obs: ledger.Observation{
		Task: op.Task, Word: "succeeded " + hostile, State: state, Progress: -1, Result: result, HasCost: true, Cost: 120_000_000, CostText: "0.12", Settled: ledger.SettledYes,
	}})
}

// kill has the endpoint refuse the first of its deliveries for good.
func (s *story) kill(endpoint pawl.ID) {
	s.t.Helper()
	leased := s.do(ledger.LeaseDeliveries{Header: head(), Endpoint: endpoint, Limit: 1}).([]ledger.Delivery)
	if len(leased) != 1 {
		s.t.Fatalf("%d deliveries", len(leased))
	}
	s.delivery = leased[0].ID.Text(pawl.PrefixDelivery)
	s.do(ledger.RecordAttempt{
		Header: head(), Delivery: leased[0].ID, Endpoint: endpoint, Fence: leased[0].Lease, Policy: ledger.DefaultPolicy(),
		At: pawl.Time(4_000_000_000_000_000), Status: 400, Error: hostile, Excerpt: hostile,
	})
}
