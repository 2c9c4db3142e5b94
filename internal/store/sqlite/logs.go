package sqlite

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	historyOf  = "WHERE operation = ? ORDER BY at, id"
	attemptsOf = "WHERE delivery = ? ORDER BY id"
	feedOf     = "WHERE endpoint = ? AND sequence > 0 AND sequence > ? ORDER BY sequence LIMIT ?"

	latestHistory    = "WHERE operation = ? AND at < ? ORDER BY at DESC, id DESC LIMIT ?"
	latestEntries    = "WHERE operation = ? AND +at < ? ORDER BY id DESC LIMIT ?"
	latestDeliveries = "WHERE operation = ? AND +created_at < ? ORDER BY id DESC LIMIT ?"
	latestAttempts   = `WHERE delivery IN (SELECT id FROM deliveries INDEXED BY deliveries_by_operation WHERE operation = ? AND +created_at < ? ORDER BY id DESC LIMIT ?)
	AND +at < ? ORDER BY id DESC LIMIT ?`
)

// History is an operation's timeline, oldest first.
func (r *Reader) History(ctx context.Context, operation pawl.ID) ([]ledger.History, error) {
	return list(ctx, r, &history, historyOf, idValue(operation))
}

// Attempts are a delivery's, oldest first.
func (r *Reader) Attempts(ctx context.Context, delivery pawl.ID) ([]ledger.Attempt, error) {
	return list(ctx, r, &attempts, attemptsOf, idValue(delivery))
}

// Story is what happened to an operation; see [store.Logs].
func (r *Reader) Story(ctx context.Context, operation pawl.ID, before pawl.Time, most int) (s store.Story, err error) {
	of := []value{idValue(operation), intValue(before), limit(most)}
	err = r.read(ctx, "read what happened", func(c *conn) error {
		return first(
			func() error { return fill(c, &s.History, &history, latestHistory, of...) },
			func() error { return fill(c, &s.Entries, &entries, latestEntries, of...) },
			func() error { return fill(c, &s.Deliveries, &deliveries.relation, latestDeliveries, of...) },
			func() error { return fill(c, &s.Attempts, &attempts, latestAttempts, append(of, of[1], of[2])...) },
		)
	})
	return s, err
}

// Feed is an endpoint's stream from after a sequence on; see [store.Logs].
func (r *Reader) Feed(ctx context.Context, endpoint pawl.ID, after int64, most int) ([]ledger.Delivery, error) {
	return list(ctx, r, &deliveries.relation, feedOf, idValue(endpoint), intValue(after), limit(most))
}

// Entries is a page of an account's journal, newest first.
func (r *Reader) Entries(ctx context.Context, account pawl.ID, p store.Page) ([]ledger.Entry, error) {
	var s selection
	s.equal("account", idValue(account))
	return page(ctx, r, &entries, s, p)
}

// Audits is a page of what was changed by whom, newest first.
func (r *Reader) Audits(ctx context.Context, f store.AuditFilter, p store.Page) ([]ledger.Audit, error) {
	return page(ctx, r, &audits, selectAudits(f), p)
}

// selectAudits walks along the index of what has the fewest rows.
func selectAudits(f store.AuditFilter) (s selection) {
	s.text("subject", f.Subject)
	s.text("actor", f.Actor)
	s.text("action", f.Action)
	s.text("tenant", f.Tenant)
	s.between("at", f.From, f.Until)
	return s
}
