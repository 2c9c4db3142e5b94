package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// page is one page of a table, newest first.
func page[R identified](ctx context.Context, s *Store, from func(*tables) map[pawl.ID]R, p store.Page, want func(*tables, R) bool) (rows []R, err error) {
	err = s.read(ctx, func(t *tables) {
		order := newest[R]
		if p.Oldest {
			order = byID[R]
		}
		rows = limited(sorted(from(t), order, func(r R) bool {
			return before(p, idOf(r)) && want(t, r)
		}), p.Limit)
	})
	return rows, err
}

// Operations is a page of operations; see [store.Lists].
func (s *Store) Operations(ctx context.Context, f store.OperationFilter, p store.Page) ([]ledger.Operation, error) {
	from := func(t *tables) map[pawl.ID]ledger.Operation { return t.operations }
	return page(ctx, s, from, p, func(t *tables, o ledger.Operation) bool {
		return passes(f.Tenant, o.Tenant) && passes(f.State, o.State) && !(f.Unfinished && o.State.Terminal()) &&
			passes(f.Upstream, o.Upstream) && passes(f.Task, o.Task) && passes(f.CorrelationID, o.CorrelationID) &&
			passes(f.RequestID, o.RequestID) && passes(f.UpstreamRequestID, o.UpstreamRequestID) &&
			(f.MetadataKey == "" || t.hasMetadata(o.ID, f.MetadataKey, f.MetadataValue))
	})
}

// hasMetadata reports whether the operation's metadata has the member with
// that value: a text, or a number or boolean as it is written.
func (t *tables) hasMetadata(operation pawl.ID, key, value string) bool {
	var members map[string]json.RawMessage
	body := t.payloads[ledger.PayloadID{Owner: operation, Kind: ledger.MetadataPayload}]
	if json.Unmarshal([]byte(body), &members) != nil || len(members[key]) == 0 {
		return false
	}
	switch member := members[key]; member[0] {
	case '"':
		var text string
		return json.Unmarshal(member, &text) == nil && text == value
	case '{', '[', 'n':
		return false
	default:
		return string(member) == value
	}
}

// Events is a page of events; see [store.Lists].
func (s *Store) Events(ctx context.Context, f store.EventFilter, p store.Page) ([]ledger.Event, error) {
	from := func(t *tables) map[pawl.ID]ledger.Event { return t.events }
	return page(ctx, s, from, p, func(_ *tables, e ledger.Event) bool {
		return passes(f.Tenant, e.Tenant) && passes(f.Direction, e.Direction) && passes(f.Source, e.Source) &&
			passes(f.Verdict, e.Verdict) && passes(f.Task, e.Task) && passes(f.Type, e.Type) && passes(f.Operation, e.Operation) &&
			passes(f.Inbox, e.Inbox) && passes(f.ExternalID, e.ExternalID) && e.At >= f.From && (f.Until == 0 || e.At < f.Until)
	})
}

// Deliveries is a page of deliveries; see [store.Lists].
func (s *Store) Deliveries(ctx context.Context, f store.DeliveryFilter, p store.Page) ([]ledger.Delivery, error) {
	from := func(t *tables) map[pawl.ID]ledger.Delivery { return t.deliveries }
	return page(ctx, s, from, p, func(_ *tables, d ledger.Delivery) bool {
		return passes(f.Tenant, d.Tenant) && passes(f.State, d.State) && passes(f.Endpoint, d.Endpoint) &&
			passes(f.Event, d.Event) && passes(f.Operation, d.Operation) &&
			d.CreatedAt >= f.From && (f.Until == 0 || d.CreatedAt < f.Until)
	})
}

// Endpoints is a page of endpoints that are not deleted; see [store.Lists].
func (s *Store) Endpoints(ctx context.Context, f store.EndpointFilter, p store.Page) ([]ledger.Endpoint, error) {
	from := func(t *tables) map[pawl.ID]ledger.Endpoint { return t.endpoints }
	return page(ctx, s, from, p, func(_ *tables, e ledger.Endpoint) bool {
		return e.DeletedAt == 0 && passes(f.Tenant, e.Tenant) && passes(f.Kind, e.Kind) && passes(f.APIKey, e.APIKey) && passes(f.URL, e.URL)
	})
}

// Reviews is a page of reviews; see [store.Lists].
func (s *Store) Reviews(ctx context.Context, f store.ReviewFilter, p store.Page) ([]ledger.Review, error) {
	from := func(t *tables) map[pawl.ID]ledger.Review { return t.reviews }
	return page(ctx, s, from, p, func(_ *tables, r ledger.Review) bool {
		return passes(f.Tenant, r.Tenant) && !(f.Open && r.ClosedAt != 0) && passes(f.Reason, r.Reason) && passes(f.Operation, r.Operation)
	})
}

// Accounts is a page of accounts; an empty tenant means all.
func (s *Store) Accounts(ctx context.Context, tenant string, p store.Page) ([]ledger.Account, error) {
	from := func(t *tables) map[pawl.ID]ledger.Account { return t.accounts }
	return page(ctx, s, from, p, func(_ *tables, a ledger.Account) bool { return passes(tenant, a.Tenant) })
}

// APIKeys is a page of API keys; see [store.Lists].
func (s *Store) APIKeys(ctx context.Context, f store.APIKeyFilter, p store.Page) ([]ledger.APIKey, error) {
	from := func(t *tables) map[pawl.ID]ledger.APIKey { return t.apiKeys }
	return page(ctx, s, from, p, func(_ *tables, k ledger.APIKey) bool {
		return passes(f.Tenant, k.Tenant) && (passes(f.Hash, k.Hash) || f.Hash == k.FormerHash)
	})
}

// Tenants is all tenants in the order of their names.
func (s *Store) Tenants(ctx context.Context) (rows []ledger.Tenant, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = sorted(t.tenants, func(a, b ledger.Tenant) int { return cmp.Compare(a.Name, b.Name) },
			all[ledger.Tenant])
	})
	return rows, err
}

// WrappingKeys are all keys that were ever used, in the order of their names.
func (s *Store) WrappingKeys(ctx context.Context) (rows []ledger.WrappingKey, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = sorted(t.wrappingKeys, func(a, b ledger.WrappingKey) int { return cmp.Compare(a.Name, b.Name) },
			all[ledger.WrappingKey])
	})
	return rows, err
}

// AuditSeals are those after a number, in their order; see [store.Seals].
func (s *Store) AuditSeals(ctx context.Context, after int64, limit int) (rows []ledger.AuditSeal, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.auditSeals, func(a, b ledger.AuditSeal) int { return cmp.Compare(a.Number, b.Number) },
			func(r ledger.AuditSeal) bool { return r.Number > after }), limit)
	})
	return rows, err
}

// LatestAuditSeal is the one with the highest number; see [store.Seals].
func (s *Store) LatestAuditSeal(ctx context.Context) (latest ledger.AuditSeal, err error) {
	err = s.read(ctx, func(t *tables) {
		for number, r := range t.auditSeals {
			if number > latest.Number {
				latest = r
			}
		}
	})
	return latest, err
}

// Feed is an endpoint's stream from after a sequence on; see [store.Logs].
func (s *Store) Feed(ctx context.Context, endpoint pawl.ID, after int64, limit int) (rows []ledger.Delivery, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(sorted(t.deliveries, func(a, b ledger.Delivery) int {
			return cmp.Compare(a.Sequence, b.Sequence)
		}, func(d ledger.Delivery) bool {
			return d.Endpoint == endpoint && d.Sequence > 0 && d.Sequence > after
		}), limit)
	})
	return rows, err
}

// History is an operation's timeline, oldest first.
func (s *Store) History(ctx context.Context, operation pawl.ID) (rows []ledger.History, err error) {
	err = s.read(ctx, func(t *tables) { rows = t.historyOf(operation) })
	return rows, err
}

func (t *tables) historyOf(operation pawl.ID) []ledger.History {
	return picked(t.history, func(a, b ledger.History) int {
		return cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID))
	}, func(h ledger.History) bool { return h.Operation == operation })
}

// Attempts are a delivery's, oldest first.
func (s *Store) Attempts(ctx context.Context, delivery pawl.ID) (rows []ledger.Attempt, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = picked(t.attempts, byID, func(a ledger.Attempt) bool { return a.Delivery == delivery })
	})
	return rows, err
}

// Story is what happened to an operation; see [store.Logs].
func (s *Store) Story(ctx context.Context, operation pawl.ID, before pawl.Time, limit int) (story store.Story, err error) {
	err = s.read(ctx, func(t *tables) {
		story.History = limited(picked(t.history, func(a, b ledger.History) int {
			return cmp.Or(cmp.Compare(b.At, a.At), b.ID.Compare(a.ID))
		}, func(h ledger.History) bool { return h.Operation == operation && h.At < before }), limit)
		story.Entries = limited(picked(t.entries, newest, func(e ledger.Entry) bool { return e.Operation == operation && e.At < before }), limit)
		story.Deliveries = limited(sorted(t.deliveries, func(a, b ledger.Delivery) int { return b.ID.Compare(a.ID) }, func(d ledger.Delivery) bool {
			return d.Operation == operation && d.CreatedAt < before
		}), limit)
		has := make(map[pawl.ID]bool)
		for _, d := range story.Deliveries {
			has[d.ID] = true
		}
		story.Attempts = limited(picked(t.attempts, func(a, b ledger.Attempt) int { return b.ID.Compare(a.ID) }, func(a ledger.Attempt) bool {
			return has[a.Delivery] && a.At < before
		}), limit)
	})
	return story, err
}

// Entries is a page of an account's journal, newest first.
func (s *Store) Entries(ctx context.Context, account pawl.ID, p store.Page) (rows []ledger.Entry, err error) {
	err = s.read(ctx, func(t *tables) {
		rows = limited(picked(t.entries, newest, func(e ledger.Entry) bool {
			return e.Account == account && before(p, e.ID)
		}), p.Limit)
	})
	return rows, err
}

// Audits is a page of what was changed by whom, newest first; see [store.Lists].
func (s *Store) Audits(ctx context.Context, f store.AuditFilter, p store.Page) (rows []ledger.Audit, err error) {
	order := newest[ledger.Audit]
	if p.Oldest {
		order = byID[ledger.Audit]
	}
	err = s.read(ctx, func(t *tables) {
		rows = limited(picked(t.audits, order, func(a ledger.Audit) bool {
			return before(p, a.ID) && passes(f.Tenant, a.Tenant) && passes(f.Actor, a.Actor) && passes(f.Action, a.Action) &&
				passes(f.Subject, a.Subject) && a.At >= f.From && (f.Until == 0 || a.At < f.Until)
		}), p.Limit)
	})
	return rows, err
}

// picked is [sorted] for a log.
func picked[R any](from []R, order func(a, b R) int, want func(R) bool) []R {
	var rows []R
	for _, r := range from {
		if want(r) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, order)
	return rows
}

// passes reports whether a row's value passes a filter whose zero value lets all
// pass.
func passes[V comparable](filter, value V) bool {
	var none V
	return filter == none || filter == value
}

func before(p store.Page, id pawl.ID) bool {
	if p.Oldest {
		return id.Compare(p.After) > 0
	}
	return p.After.IsZero() || id.Compare(p.After) < 0
}
