-- +goose Up

-- The copy of another ledger into this one (`pawl copy`): one row, with the
-- table that is under way and how many of its rows are here.
CREATE TABLE copies (
	source uuid NOT NULL PRIMARY KEY,
	place text COLLATE "C" NOT NULL DEFAULT '',
	done bigint NOT NULL DEFAULT 0,
	started_at timestamptz NOT NULL DEFAULT 'epoch',
	finished_at timestamptz NOT NULL DEFAULT 'epoch'
);
