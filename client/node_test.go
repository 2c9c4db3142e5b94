package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/pawltest"
)

var price = &client.Money{Amount: 150_000_000, Currency: "USD"}

func job(prompt string) client.Submission {
	return client.Submission{Upstream: pawltest.Name, Model: "m", Input: map[string]string{"prompt": prompt}, ExpectedCost: price}
}

// Every call means to a real node what it says.
func TestCalls(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{}), t.Context()
	c := p.Client
	p.Upstream.Script(pawltest.Script{Result: map[string]string{"text": "done"}, Cost: "0.12"})
	s := job("a red kite")
	s.CorrelationID, s.Metadata, s.Owner, s.IdempotencyKey, s.Deadline = "order-7", map[string]any{"order": "7"}, "video", "mine", time.Now().Add(30*time.Minute)
	op, err := c.Run(ctx, s)
	if err != nil || op.State != pawl.Succeeded || string(op.Result) != `{"text":"done"}` || op.Cost.String() != "0.120000000 USD" || !op.Cost.Settled || op.TaskID != "task-1" {
		t.Fatalf("%+v %v", op, err)
	}
	if op.CorrelationID != "order-7" || op.Owner != "video" || string(op.Input) != `{"prompt":"a red kite"}` || !op.FinishedAt.IsSet() || !op.Metered {
		t.Errorf("%+v", op)
	}
	again, err := c.Submit(ctx, s)
	if err != nil || again.ID != op.ID {
		t.Errorf("the same key: %s %v", again.ID, err)
	}
	if byKey, err := c.OperationOfKey(ctx, "mine"); err != nil || byKey.ID != op.ID {
		t.Error(byKey.ID, err)
	}
	if _, err := c.OperationOfKey(ctx, "nobody's"); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
	for _, f := range []client.OperationFilter{{TaskID: "task-1"}, {CorrelationID: "order-7"}, {MetadataKey: "order", MetadataValue: "7"}, {State: pawl.Succeeded, Upstream: pawltest.Name}} {
		if found, err := client.Collect(c.Operations(ctx, f), 0); err != nil || len(found) != 1 || found[0].ID != op.ID {
			t.Errorf("%+v: %d %v", f, len(found), err)
		}
	}
	lines, err := c.Timeline(ctx, op.ID)
	if err != nil || len(lines) == 0 || !slices.ContainsFunc(lines, func(l client.TimelineItem) bool { return l.Kind == "money" && l.Amount.Amount == price.Amount }) {
		t.Errorf("%+v %v", lines, err)
	}
	if _, err := c.Retry(ctx, op.ID, client.Retry{}); !errors.Is(err, client.ErrConflict) {
		t.Error(err)
	}

	p.Upstream.Script(pawltest.Script{End: pawl.Failed, Code: "timeout"})
	failed, err := c.Run(ctx, job("fails"))
	if err != nil || failed.Error == nil || failed.Error.Code != pawl.FailTimeout {
		t.Fatalf("%+v %v", failed, err)
	}
	p.Upstream.Script(pawltest.Script{Hold: true})
	retried, err := c.Retry(ctx, failed.ID, client.Retry{ExpectedCost: price})
	if err != nil || retried.RetryOf != failed.ID {
		t.Fatalf("%+v %v", retried, err)
	}
	p.Wait(pawl.TypeRunning, retried.ID)
	if _, err := c.Cancel(ctx, retried.ID); err != nil {
		t.Error(err)
	}
	if ended, err := c.Wait(ctx, retried.ID); err != nil || ended.State != pawl.Canceled || !ended.Cancel.Confirmed {
		t.Errorf("%+v %v", ended, err)
	}
	if fixed, err := c.Resolve(ctx, failed.ID, client.Decision{Decision: "succeeded", From: "failed", Note: "it is there"}); err != nil || fixed.State != pawl.Succeeded {
		t.Errorf("%+v %v", fixed, err)
	}
	if _, err := c.Reconcile(ctx, failed.ID); err != nil && !errors.Is(err, client.ErrConflict) {
		t.Error(err)
	}
	if _, err := c.Submit(ctx, client.Submission{Upstream: "none", Model: "m", Input: struct{}{}}); !errors.Is(err, &client.Problem{Reason: "unknown_upstream"}) {
		t.Error(err)
	}
	if _, err := c.Submit(ctx, client.Submission{Upstream: pawltest.Name, Model: "m"}); err == nil {
		t.Error("a submission without input")
	}
	dear := job("dear")
	dear.ExpectedCost = &client.Money{Amount: 1000 * pawl.AmountScale, Currency: "USD"}
	if _, err := c.Submit(ctx, dear); !errors.Is(err, client.ErrPayment) {
		t.Error(err)
	}
}

// Endpoints, deliveries and published events.
func TestDelivering(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{}), t.Context()
	c := p.Client
	ep, err := c.Endpoint(ctx, p.Receiver.Endpoint())
	if err != nil || ep.Kind != "webhook" || ep.Secret != "" || ep.Policy == nil {
		t.Fatalf("%+v %v", ep, err)
	}
	owner := "video"
	changed, err := c.ChangeEndpoint(ctx, ep, client.EndpointChange{Owner: &owner})
	if err != nil || changed.Owner != owner || changed.Version != ep.Version+1 {
		t.Errorf("%+v %v", changed, err)
	}
	if _, err := c.ChangeEndpoint(ctx, ep, client.EndpointChange{Owner: &owner}); !errors.Is(err, client.ErrChanged) {
		t.Error(err)
	}
	types, err := c.EventTypes(ctx)
	if err != nil || !slices.ContainsFunc(types, func(e client.EventType) bool { return e.Type == pawl.TypeSucceeded && e.Example.Sequence == 17 }) {
		t.Error(types, err)
	}

	d, err := c.TestEndpoint(ctx, ep.ID, pawl.TypeFailed, nil)
	if err != nil || d.EndpointID != ep.ID {
		t.Fatal(d, err)
	}
	event := p.Wait(pawl.TypeFailed, "")
	if op, ok := event.Operation(); !event.Test || !ok || op.State != pawl.Failed {
		t.Errorf("%+v", event)
	}
	published, err := c.Publish(ctx, "order-7", "order.paid", map[string]int{"n": 7})
	if err != nil || published.ExternalID != "order-7" {
		t.Fatal(published, err)
	}
	if event = p.Wait("order.paid", ""); event.ID != "order-7" || string(event.Data) != `{"n":7}` || event.Test {
		t.Errorf("%+v", event)
	}
	stored, err := client.Collect(c.Events(ctx, client.EventFilter{Type: "order.paid", Direction: "outbound", From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}), 0)
	if err != nil || len(stored) != 1 || stored[0].ID != published.ID {
		t.Error(stored, err)
	}
	if one, err := c.Event(ctx, published.ID); err != nil || string(one.Data) != `{"n":7}` {
		t.Error(one, err)
	}
	rows, err := client.Collect(c.Deliveries(ctx, client.DeliveryFilter{Endpoint: ep.ID, Event: published.ID}), 0)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	for rows[0].State != "delivered" {
		if rows[0], err = c.Delivery(ctx, rows[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	tries, err := c.Attempts(ctx, rows[0].ID)
	if err != nil || len(tries) != 1 || tries[0].Status != http.StatusNoContent {
		t.Error(tries, err)
	}
	if _, err := c.RetryDelivery(ctx, rows[0].ID); err != nil {
		t.Error(err)
	}
	if paused, err := c.PauseEndpoint(ctx, ep.ID); err != nil || !paused.Disabled {
		t.Error(paused, err)
	}
	if enabled, err := c.EnableEndpoint(ctx, ep.ID); err != nil || enabled.Disabled {
		t.Error(enabled, err)
	}
	if rotated, err := c.RotateSecret(ctx, ep.ID, time.Hour); err != nil || rotated.Secret == "" || !rotated.FormerSecretUntil.IsSet() {
		t.Error(rotated, err)
	}
	for range 2 {
		if err := c.DeleteEndpoint(ctx, ep.ID); err != nil {
			t.Error(err)
		}
	}
	if all, err := client.Collect(c.Endpoints(ctx), 0); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}

// Accounts and keys.
func TestMoneyAndKeys(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{}), t.Context()
	all, err := client.Collect(p.Client.Accounts(ctx), 0)
	if err != nil || len(all) != 1 || all[0].Available != 100*pawl.AmountScale || all[0].Currency != "USD" {
		t.Fatal(all, err)
	}
	for range 2 {
		a, err := p.Admin.Credit(ctx, all[0].ID, *price, "more", "once")
		if err != nil || a.Balance != 100*pawl.AmountScale+price.Amount {
			t.Error(a, err)
		}
	}
	if a, err := p.Client.Account(ctx, all[0].ID); err != nil || a.Balance != 100*pawl.AmountScale+price.Amount {
		t.Error(a, err)
	}
	entries, err := client.Collect(p.Client.Entries(ctx, all[0].ID), 0)
	if err != nil || len(entries) != 2 || entries[0].Amount != *price || entries[0].Note != "more" {
		t.Error(entries, err)
	}
	who, err := p.Client.Whoami(ctx)
	if err != nil || who.Tenant != pawltest.Tenant || who.Secret != "" {
		t.Error(who, err)
	}
	if _, err := p.Client.CreateKey(ctx, client.NewAPIKey{Scopes: []string{"read"}}); !errors.Is(err, client.ErrForbidden) {
		t.Error(err)
	}
	made, err := p.Admin.CreateKey(ctx, client.NewAPIKey{Tenant: "other", Scopes: []string{"read"}})
	if err != nil || made.Secret == "" || made.WebhookSecret == "" {
		t.Fatal(err)
	}
	rotated, err := p.Admin.RotateKey(ctx, made.ID, 0)
	if err != nil || rotated.Secret == made.Secret {
		t.Error(err)
	}
	if again, err := p.Admin.RotateWebhookSecret(ctx, made.ID, time.Hour); err != nil || again.WebhookSecret == "" {
		t.Error(err)
	}
	if err := p.Admin.RevokeKey(ctx, made.ID); err != nil {
		t.Error(err)
	}
	if k, err := p.Admin.Key(ctx, made.ID); err != nil || !k.RevokedAt.IsSet() {
		t.Error(k, err)
	}
	narrow, err := client.New(client.Options{Server: p.URL, Key: client.Secret("pawl_sk_pawltest0123456789abcdef0123456789"), Tenant: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := client.Collect(narrow.Keys(ctx), 0); err != nil || len(keys) != 1 || keys[0].ID != made.ID {
		t.Error(keys, err)
	}
}

// A receiver finds and fetches what it missed, in five lines, and a feed goes on
// through a restart of the server (1-product E3).
func TestFeeds(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{Types: []string{"order.paid"}}), t.Context()
	publish := func(n int) {
		t.Helper()
		if _, err := p.Client.Publish(ctx, "", "order.paid", n); err != nil {
			t.Fatal(err)
		}
	}
	feed, err := p.Client.CreateEndpoint(ctx, client.NewEndpoint{Types: []string{"order.paid"}})
	if err != nil || feed.Kind != "feed" {
		t.Fatal(feed, err)
	}
	for n := range 250 {
		publish(n)
	}
	// A receiver that has got the even ones only.
	var seen client.Seen
	for n := int64(2); n <= 250; n += 2 {
		seen.Add(n)
	}
	var missed []string
	for event, err := range p.Client.Missed(ctx, feed.ID, &seen) {
		if err != nil {
			t.Fatal(err)
		}
		missed = append(missed, string(event.Data))
		seen.Add(event.Sequence)
	}
	if len(missed) != 125 || missed[0] != "0" || missed[124] != "248" || seen.Until() != 250 || len(seen.Gaps()) != 0 {
		t.Errorf("missed %v, until %d", missed, seen.Until())
	}
	for range p.Client.Missed(ctx, feed.ID, &seen) {
		t.Error("something is missed still")
	}
	if end, err := p.Client.End(ctx, feed.ID); err != nil || end != 250 {
		t.Error(end, err)
	}

	following, stop := context.WithCancel(ctx)
	defer stop()
	published := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		p.Restart()
		var err error
		for n := range 3 {
			_, failed := p.Client.Publish(ctx, "", "order.paid", 250+n)
			err = errors.Join(err, failed)
		}
		published <- err
	}()
	last := int64(245)
	for event, err := range p.Client.Feed(following, feed.ID, last) {
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		if err := json.Unmarshal(event.Data, &n); err != nil || event.Sequence != last+1 || n != last {
			t.Fatalf("after %d comes %+v", last, event)
		}
		if last = event.Sequence; last == 253 {
			stop()
		}
	}
	if last != 253 {
		t.Errorf("the feed ended at %d", last)
	}
	if err := <-published; err != nil {
		t.Error(err)
	}
	for _, err := range p.Client.Feed(ctx, "ep_none", 0) {
		if !errors.Is(err, &client.Problem{Status: 400}) {
			t.Error(err)
		}
	}
}

// The feed of an endpoint with an address holds what was delivered to it, in the
// order of the sequence and with the same data.
func TestFeedIsWhatWasDelivered(t *testing.T) {
	t.Parallel()
	p, ctx := pawltest.New(t, pawltest.Options{}), t.Context()
	p.Upstream.Script(pawltest.Script{Result: map[string]string{"text": "done <&> \u2028"}, Cost: "0.1", Takes: 50 * time.Millisecond})
	for n := range 5 {
		s := job("film")
		s.Metadata = map[string]int{"n": n}
		if _, err := p.Client.Run(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Client.Publish(ctx, "order-7", "order.paid", "last"); err != nil {
		t.Fatal(err)
	}
	p.Wait("order.paid", "")
	// Deliveries of different operations may overtake each other on their way.
	delivered := map[int64]client.Event{}
	for int64(len(delivered)) < 11 {
		for _, e := range p.Receiver.Events() {
			delivered[e.Sequence] = e
		}
		time.Sleep(5 * time.Millisecond)
	}
	var seen client.Seen
	versions := map[string]int64{}
	n := int64(0)
	for e, err := range p.Client.Missed(ctx, p.Receiver.Endpoint(), &seen) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; e.Sequence != n {
			t.Errorf("%d comes as number %d", e.Sequence, n)
		}
		was := delivered[e.Sequence]
		if e.ID != was.ID || e.Type != was.Type || e.Timestamp != was.Timestamp || string(e.Data) != string(was.Data) {
			t.Errorf("the feed has %+v\nit was delivered as %+v", e, was)
		}
		if op, ok := e.Operation(); ok {
			if op.Version <= versions[op.ID] {
				t.Errorf("version %d of %s comes after %d", op.Version, op.ID, versions[op.ID])
			}
			versions[op.ID] = op.Version
		}
	}
	if n != 11 {
		t.Errorf("%d events", n)
	}
}
