-- +goose Up

-- The copy of another ledger into this one (`pawl copy`): one row, with the
-- table that is under way and how many of its rows are here.
CREATE TABLE copies (
	source BLOB NOT NULL PRIMARY KEY,
	place TEXT NOT NULL,
	done INTEGER NOT NULL,
	started_at INTEGER NOT NULL,
	finished_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
