package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// unfinished is the condition that operations_open serves.
const unfinished = "(state <= 3 OR money = 2) AND state <= 3"

// ofTask finds operations through the claims of their tasks; where the
// upstream is not known, by a hop over the names in the index. One look-up for
// each name leaves the planner no choice: a join would read all tasks.
const (
	ofTask         = "id = ANY (ARRAY(SELECT operation FROM tasks WHERE upstream = ?::text AND task = ?::text))"
	ofTaskAnywhere = `id = ANY (ARRAY(WITH RECURSIVE known (name) AS (
	SELECT min(upstream) FROM tasks
	UNION ALL SELECT (SELECT min(upstream) FROM tasks WHERE upstream > name) FROM known WHERE name IS NOT NULL
) SELECT (SELECT operation FROM tasks WHERE upstream = name AND task = ?::text) FROM known))`
)

// Operations is a page of operations; see [store.Lists].
func (r *Reader) Operations(ctx context.Context, f store.OperationFilter, p store.Page) ([]ledger.Operation, error) {
	if f.MetadataKey != "" {
		return r.withMetadata(ctx, f, p)
	}
	return page(ctx, r, &operations.relation, selectOperations(f), p)
}

func selectOperations(f store.OperationFilter) (s selection) {
	s.named("correlation_id", f.CorrelationID)
	s.named("request_id", f.RequestID)
	s.named("upstream_request_id", f.UpstreamRequestID)
	switch {
	case f.Task != "" && f.Upstream != "":
		s.only(ofTask, textValue(f.Upstream), textValue(f.Task))
	case f.Task != "":
		s.only(ofTaskAnywhere, textValue(f.Task))
	}
	switch {
	case f.Unfinished || f.State != 0 && !f.State.Terminal():
		s.only(unfinished)
		s.number("state", uint8(f.State))
	case f.State > pawl.Succeeded && !s.driven:
		s.only("state >= 5 AND state = ?::bigint", intValue(f.State))
	default:
		s.number("state", uint8(f.State))
	}
	s.text("tenant", f.Tenant)
	s.driven = true
	s.text("task", f.Task)
	s.text("upstream", f.Upstream)
	return s
}

// Events is a page of events; see [store.Lists].
func (r *Reader) Events(ctx context.Context, f store.EventFilter, p store.Page) ([]ledger.Event, error) {
	return page(ctx, r, &events.relation, selectEvents(f), p)
}

func selectEvents(f store.EventFilter) (s selection) {
	s.named("external_id", f.ExternalID)
	s.id("operation", f.Operation)
	// Those that are done are most of them, and have no index.
	if f.Inbox != 0 && f.Inbox != pawl.InboxDone && !s.driven {
		s.only("inbox IN (1, 2, 4) AND inbox = ?::bigint", intValue(f.Inbox))
	} else {
		s.number("inbox", uint8(f.Inbox))
	}
	if f.Verdict >= 4 && !s.driven {
		s.only("verdict >= 4 AND verdict = ?::bigint", intValue(f.Verdict))
	} else {
		s.number("verdict", uint8(f.Verdict))
	}
	s.named("source", f.Source)
	s.text("tenant", f.Tenant)
	s.driven = true
	s.text("task", f.Task)
	s.text("type", f.Type)
	s.number("direction", uint8(f.Direction))
	s.between("at", f.From, f.Until)
	return s
}

// Deliveries is a page of deliveries; see [store.Lists].
func (r *Reader) Deliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]ledger.Delivery, error) {
	return page(ctx, r, &deliveries.relation, selectDeliveries(f), p)
}

func selectDeliveries(f store.DeliveryFilter) (s selection) {
	s.id("event", f.Event)
	s.id("operation", f.Operation)
	if f.State == pawl.DeliveryDead && !s.driven {
		// Served by an index of the dead alone.
		s.only("state = 4")
	} else {
		s.number("state", uint8(f.State))
	}
	s.id("endpoint", f.Endpoint)
	s.text("tenant", f.Tenant)
	s.between("created_at", f.From, f.Until)
	return s
}

// Endpoints is a page of endpoints that are not deleted; see [store.Lists].
func (r *Reader) Endpoints(ctx context.Context, f store.EndpointFilter, p store.Page) ([]ledger.Endpoint, error) {
	return page(ctx, r, &endpoints.relation, selectEndpoints(f), p)
}

func selectEndpoints(f store.EndpointFilter) (s selection) {
	s.and("deleted_at = 'epoch'")
	s.id("api_key", f.APIKey)
	if f.URL != "" {
		s.sift("url = ?::text", textValue(f.URL))
	}
	s.text("tenant", f.Tenant)
	s.number("kind", uint8(f.Kind))
	return s
}

// Reviews is a page of reviews; see [store.Lists].
func (r *Reader) Reviews(ctx context.Context, f store.ReviewFilter, p store.Page) ([]ledger.Review, error) {
	return page(ctx, r, &reviews.relation, selectReviews(f), p)
}

func selectReviews(f store.ReviewFilter) (s selection) {
	s.id("operation", f.Operation)
	if f.Open && s.driven {
		s.sift("closed_at = 'epoch'")
	} else if f.Open {
		s.only("closed_at = 'epoch'")
	}
	s.text("tenant", f.Tenant)
	s.number("reason", uint8(f.Reason))
	return s
}

// Accounts is a page of accounts; an empty tenant means all.
func (r *Reader) Accounts(ctx context.Context, tenant string, p store.Page) ([]ledger.Account, error) {
	var s selection
	s.text("tenant", tenant)
	return page(ctx, r, &accounts.relation, s, p)
}

// APIKeys is a page of API keys; see [store.Lists].
func (r *Reader) APIKeys(ctx context.Context, f store.APIKeyFilter, p store.Page) ([]ledger.APIKey, error) {
	return page(ctx, r, &apiKeys.relation, selectAPIKeys(f), p)
}

func selectAPIKeys(f store.APIKeyFilter) (s selection) {
	if f.Hash != (ledger.Digest{}) {
		s.only("(hash = ?::bytea OR former_hash = ?::bytea)", blobValue(f.Hash[:]), blobValue(f.Hash[:]))
	}
	s.text("tenant", f.Tenant)
	return s
}

// Tenants is all tenants in the order of their names.
func (r *Reader) Tenants(ctx context.Context) ([]ledger.Tenant, error) {
	return list(ctx, r, &tenants.relation, "ORDER BY name")
}
