package postgres

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	historyOf  = "WHERE operation = $1::uuid ORDER BY at, id"
	attemptsOf = "WHERE delivery = $1::uuid ORDER BY id"
	feedOf     = "WHERE endpoint = $1::uuid AND sequence > 0 AND sequence > $2::bigint ORDER BY sequence LIMIT $3::bigint"

	operationAttempts = "WHERE delivery = ANY (ARRAY(SELECT id FROM deliveries WHERE operation = $1::uuid)) ORDER BY delivery, id"
)

// History is an operation's timeline, oldest first.
func (r *Reader) History(ctx context.Context, operation pawl.ID) ([]ledger.History, error) {
	return list(ctx, r, &history, historyOf, idValue(operation))
}

// Attempts are a delivery's, oldest first.
func (r *Reader) Attempts(ctx context.Context, delivery pawl.ID) ([]ledger.Attempt, error) {
	return list(ctx, r, &attempts, attemptsOf, idValue(delivery))
}

// AttemptsOf are those of all deliveries of an operation, one delivery after the
// other, oldest first.
func (r *Reader) AttemptsOf(ctx context.Context, operation pawl.ID) ([]ledger.Attempt, error) {
	return list(ctx, r, &attempts, operationAttempts, idValue(operation))
}

// Feed is an endpoint's stream from after a sequence on; see [store.Logs].
func (r *Reader) Feed(ctx context.Context, endpoint pawl.ID, after int64, most int) ([]ledger.Delivery, error) {
	return list(ctx, r, &deliveries.relation, feedOf, idValue(endpoint), intValue(after), limit(most))
}

// Entries is a page of an account's journal, newest first.
func (r *Reader) Entries(ctx context.Context, account pawl.ID, p store.Page) ([]ledger.Entry, error) {
	var s selection
	s.and("account = ?::uuid", idValue(account))
	return page(ctx, r, &entries, s, p)
}

// Audits is a page of what was changed by whom, newest first.
func (r *Reader) Audits(ctx context.Context, f store.AuditFilter, p store.Page) ([]ledger.Audit, error) {
	return page(ctx, r, &audits, selectAudits(f), p)
}

func selectAudits(f store.AuditFilter) (s selection) {
	s.text("subject", f.Subject)
	s.text("actor", f.Actor)
	s.text("action", f.Action)
	s.text("tenant", f.Tenant)
	s.between("at", f.From, f.Until)
	return s
}
