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
)

// History is an operation's timeline, oldest first.
func (r *Reader) History(ctx context.Context, operation pawl.ID) ([]ledger.History, error) {
	return list(ctx, r, &history, historyOf, idValue(operation))
}

// Attempts are a delivery's, oldest first.
func (r *Reader) Attempts(ctx context.Context, delivery pawl.ID) ([]ledger.Attempt, error) {
	return list(ctx, r, &attempts, attemptsOf, idValue(delivery))
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

// Audits is a page of what was changed by whom, newest first; an empty tenant
// means all.
func (r *Reader) Audits(ctx context.Context, tenant string, p store.Page) ([]ledger.Audit, error) {
	var s selection
	s.text("tenant", tenant)
	return page(ctx, r, &audits, s, p)
}
