package simulate

import (
	"slices"
	"strings"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// emitted holds the events of a commit against the endpoints that live: each
// that wants one has its delivery in the same commit, or there was no outbox.
func (w *world) emitted(r *ledger.Rows) {
	type pair struct{ event, endpoint pawl.ID }
	has := make(map[pair]bool)
	for _, c := range r.Deliveries.Changes() {
		if !c.Existed {
			has[pair{c.Now.Event, c.Now.Endpoint}] = true
		}
	}
	for _, c := range r.Events.Changes() {
		e := c.Now
		if c.Existed || e.Direction != ledger.Outbound {
			continue
		}
		for _, ep := range w.living(e, r) {
			if wanted(ep, e.Type) != has[pair{e.ID, ep.ID}] {
				w.violate("an event has its deliveries from the same commit on", "event %s, %s, for %s with types %q: %t",
					e.ID.Suffix(), e.Type, ep.Scheme, ep.Types, has[pair{e.ID, ep.ID}])
			}
		}
	}
}

// living are the endpoints of an event that lived unchanged through its commit.
func (w *world) living(e ledger.Event, r *ledger.Rows) []ledger.Endpoint {
	all, err := w.driver.Endpoints(noLimit, store.EndpointFilter{Tenant: e.Tenant, Kind: ledger.WebhookEndpoint}, wide)
	if err != nil {
		panic(err)
	}
	op, _ := w.operation(e.Operation)
	if callback, ok := w.rows(ledger.Keys{Endpoints: []pawl.ID{op.Callback}}).Endpoints.Get(op.Callback); ok && callback.DeletedAt == 0 {
		all = append(all, callback)
	}
	changed := make(map[pawl.ID]bool)
	for id := range r.Endpoints.Changes() {
		changed[id] = true
	}
	return slices.DeleteFunc(all, func(ep ledger.Endpoint) bool { return changed[ep.ID] })
}

// wanted is what 2-contracts says of an endpoint's types: those it names, else
// all but progress that its dialect has a word for.
func wanted(ep ledger.Endpoint, kind string) bool {
	if own := !strings.HasPrefix(kind, "operation."); own && (ep.Scheme == "media-v2" || ep.Scheme == "body-timestamp") {
		return false // Their bodies can tell of tasks alone.
	}
	if ep.Types != "" {
		return slices.Contains(strings.Split(ep.Types, ","), kind)
	}
	reviews := kind == pawl.TypeReviewOpened || kind == pawl.TypeReviewClosed || kind == pawl.TypeReleased
	switch ep.Scheme {
	case "media-v2": // Its events have no version: what comes late takes nothing back (7-rules R43).
		return kind != pawl.TypeProgress && !reviews && kind != pawl.TypeRunning && kind != pawl.TypeUnconfirmed
	case "body-timestamp":
		return kind != pawl.TypeProgress && !reviews && kind != pawl.TypeSettled
	}
	return kind != pawl.TypeProgress
}
