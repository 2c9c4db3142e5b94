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

	latestHistory    = "WHERE operation = $1::uuid AND at < $2::timestamptz ORDER BY at DESC, id DESC LIMIT $3::bigint"
	latestEntries    = "WHERE operation = $1::uuid AND at < $2::timestamptz ORDER BY id DESC LIMIT $3::bigint"
	latestDeliveries = "WHERE operation = $1::uuid AND created_at < $2::timestamptz ORDER BY id DESC LIMIT $3::bigint"
	latestAttempts   = "WHERE delivery = ANY ($1::uuid[]) AND at < $2::timestamptz ORDER BY id DESC LIMIT $3::bigint"
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
	of := []value{idValue(operation), timeValue(before), limit(most)}
	err = r.read(ctx, "read what happened", func(c *conn) (err error) {
		if s.History, err = query(ctx, c, &history, latestHistory, of...); err != nil {
			return err
		}
		if s.Entries, err = query(ctx, c, &entries, latestEntries, of...); err != nil {
			return err
		}
		if s.Deliveries, err = query(ctx, c, &deliveries.relation, latestDeliveries, of...); err != nil || len(s.Deliveries) == 0 {
			return err
		}
		ids := make([]pawl.ID, len(s.Deliveries))
		for i, d := range s.Deliveries {
			ids[i] = d.ID
		}
		s.Attempts, err = query(ctx, c, &attempts, latestAttempts, idArray(ids), of[1], of[2])
		return err
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
