package postgres

import (
	"context"
	"time"
)

// Hindrance is what keeps the database from cleaning up after changed rows:
// claims of due work then walk over more and more dead ones, and get slower
// (O-119).
type Hindrance struct {
	// Age is how long the oldest transaction that anybody has open holds back the
	// cleaning; 0 for none.
	Age time.Duration
	// Who names its holder: process, user and program; a prepared transaction by
	// its name.
	Who string
	// DeadRows counts changed and removed rows of the tables of due work that are
	// not cleaned up yet.
	DeadRows int64
}

// Only the pg_monitor role sees the transactions of other users. The query of a
// holder is not shown: it may hold anybody's data.
const (
	oldestTransaction = `SELECT extract(epoch FROM clock_timestamp() - since)::bigint, who FROM (
	SELECT xact_start AS since, format('process %s of user %s, program %s, %s', pid, usename, application_name, state) AS who
	FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
		AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
	UNION ALL
	SELECT prepared, format('prepared transaction %s', gid) FROM pg_prepared_xacts WHERE database = current_database()
) held ORDER BY since LIMIT 1`
	deadRows = `SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables
WHERE relname IN ('queues', 'operations', 'deliveries', 'artifacts')`
)

// Hindrance tells what holds the cleaning back now.
func (r *Reader) Hindrance(ctx context.Context) (h Hindrance, err error) {
	err = r.each(ctx, "look for old transactions", oldestTransaction, nil, func(row [][]byte) error {
		h.Age, h.Who = time.Duration(fromInt(row[0]))*time.Second, fromText(row[1])
		return nil
	})
	if err != nil {
		return h, err
	}
	return h, r.each(ctx, "count dead rows", deadRows, nil, func(row [][]byte) error {
		h.DeadRows = fromInt(row[0])
		return nil
	})
}
