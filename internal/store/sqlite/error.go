package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"
)

// advice is what a person can do about an error.
var advice = []struct {
	cause error
	words string
}{
	{sqlite3.FULL, "the disk is full: free some space"},
	{unix.ENOSPC, "the disk is full: free some space"},
	{unix.EROFS, "the data folder is read-only: give Pawl a folder that it may write to"},
	{fs.ErrPermission, "the data folder is not accessible: give Pawl's user the right to write to it"},
	{sqlite3.READONLY, "the data folder is read-only: give Pawl a folder that it may write to"},
	{sqlite3.NOTADB, "pawl.db is damaged or not a ledger: restore a backup"},
	{sqlite3.CORRUPT, "pawl.db is damaged: restore a backup"},
	// A write that fails for want of space comes without its cause.
	{sqlite3.IOERR, "the disk is full, read-only or failing: free some space, or look at the disk"},
	{sqlite3.CANTOPEN, "pawl.db cannot be opened: the data folder must exist and be writable, even to be read; copy one on a read-only disk first"},
	{sqlite3.BUSY, "pawl.db is locked by another program: stop that one first"},
}

// explain puts the operation and, where there is one, the advice before an
// error. An interruption is the context's error.
func explain(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
		return fmt.Errorf("sqlite: %s: %w", op, ctx.Err())
	}
	for _, a := range advice {
		if errors.Is(err, a.cause) {
			return fmt.Errorf("sqlite: %s: %s: %w", op, a.words, err)
		}
	}
	return fmt.Errorf("sqlite: %s: %w", op, err)
}
