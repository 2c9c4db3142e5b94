package inbox

import (
	"context"
	"strings"
)

// schema holds both tables. Times are microseconds since 1970, in UTC; due_at
// is 0 when nothing is to be done.
const schema = `
CREATE TABLE IF NOT EXISTS inbox_events (
	source      TEXT    NOT NULL,
	id          TEXT    NOT NULL,
	state       TEXT    NOT NULL,
	body        BYTES,
	result      BYTES,
	attempts    BIGINT  NOT NULL,
	effects     BIGINT  NOT NULL,
	received_at BIGINT  NOT NULL,
	due_at      BIGINT  NOT NULL,
	finished_at BIGINT  NOT NULL,
	last_error  TEXT    NOT NULL,
	PRIMARY KEY (source, id)
);
CREATE INDEX IF NOT EXISTS inbox_events_due ON inbox_events (due_at) WHERE due_at > 0;
CREATE INDEX IF NOT EXISTS inbox_events_open ON inbox_events (received_at) WHERE state <> 'done';
CREATE TABLE IF NOT EXISTS inbox_effects (
	id          TEXT    NOT NULL PRIMARY KEY,
	source      TEXT    NOT NULL,
	event       TEXT    NOT NULL,
	kind        TEXT    NOT NULL,
	payload     BYTES,
	state       TEXT    NOT NULL,
	attempts    BIGINT  NOT NULL,
	due_at      BIGINT  NOT NULL,
	finished_at BIGINT  NOT NULL,
	last_error  TEXT    NOT NULL
);
CREATE INDEX IF NOT EXISTS inbox_effects_due ON inbox_effects (due_at) WHERE due_at > 0;
CREATE INDEX IF NOT EXISTS inbox_effects_event ON inbox_effects (source, event);
`

// Schema is the SQL that makes the inbox's two tables and their indexes, for
// those who keep their own migrations. It may be run again.
func Schema(d Dialect) string {
	if d == PostgreSQL {
		return strings.ReplaceAll(schema, "BYTES", "BYTEA")
	}
	return strings.ReplaceAll(schema, "BYTES", "BLOB")
}

// Migrate makes the inbox's tables where they are missing.
func (in *Inbox[T]) Migrate(ctx context.Context) error {
	return in.db.in(ctx, func(t tx[T]) error {
		for statement := range strings.SplitSeq(Schema(in.db.dialect), ";") {
			if strings.TrimSpace(statement) == "" {
				continue
			}
			if _, err := t.exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}
