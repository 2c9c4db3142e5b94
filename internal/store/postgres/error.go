package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/internal/store"
)

// advice is what a person can do about an error, by its SQLSTATE.
var advice = []struct {
	codes []string
	words string
}{
	{[]string{"28P01", "28000"}, "the database refuses the user or the password: look at the URL"},
	{[]string{"3D000"}, "the database does not exist: make it with createdb"},
	{[]string{"42501"}, "the user may not do that: make it the owner of the database"},
	{[]string{"53100"}, "the database's disk is full: free some space"},
	{[]string{"53300"}, "the database takes no more connections: raise max_connections, or put a pooler before it"},
	{[]string{"57P01", "57P02", "57P03"}, "the database is stopping or starting"},
	{[]string{"25006"}, "the database takes no writes: name the primary server"},
	{[]string{"26000", "42P05"}, "prepared statements are lost between transactions: a pooler is in between, add pooler=transaction to the URL"},
	{[]string{"22021", "42P02"}, "the database must have the encoding UTF8"},
}

// explain puts the operation and, where there is one, the advice before an
// error. What the database says of the values in a statement is left out: they
// may be anybody's. An interruption is the context's error.
func explain(ctx context.Context, op string, err error) error {
	if err == nil || errors.Is(err, store.ErrClosed) {
		return err
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("postgres: %s: %w: %w", op, cause, bare(err))
	}
	if told := (*pgconn.PgError)(nil); errors.As(err, &told) {
		for _, a := range advice {
			if slices.Contains(a.codes, told.Code) {
				return fmt.Errorf("postgres: %s: %s: %w", op, a.words, bare(err))
			}
		}
	}
	return fmt.Errorf("postgres: %s: %w", op, bare(err))
}

// bare takes an error of the server down to its message, and one of a connection
// to one line.
func bare(err error) error {
	if told := (*pgconn.PgError)(nil); errors.As(err, &told) {
		return &serverError{told}
	}
	if failed := (*pgconn.ConnectError)(nil); errors.As(err, &failed) {
		return &connectionError{failed}
	}
	return err
}

// connectionError is a connection that could not be made.
type connectionError struct{ err *pgconn.ConnectError }

// Error is the cause on one line.
func (e *connectionError) Error() string {
	return strings.Join(strings.Fields(e.err.Error()), " ") + "; look at the URL, and whether the database runs and lets this machine in"
}

// Unwrap is the error as the library gave it.
func (e *connectionError) Unwrap() error { return e.err }

// serverError is what the server said, without the detail, which quotes rows.
type serverError struct{ err *pgconn.PgError }

// Error is the message and its code.
func (e *serverError) Error() string {
	if len(e.err.Code) == 5 && (e.err.Code[:2] == "22" || e.err.Code[:2] == "23") {
		// These messages quote values.
		return "the database refused a row (SQLSTATE " + e.err.Code + ")"
	}
	return e.err.Message + " (SQLSTATE " + e.err.Code + ")"
}

// Unwrap is the error as the library gave it.
func (e *serverError) Unwrap() error { return e.err }
