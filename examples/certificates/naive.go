package main

import (
	"context"
	"database/sql"
	"io"
	"net/http"

	"github.com/pawlhq/pawl/inbox"
)

// naively issues a certificate, sends the message and answers. Whatever ends
// between the first and the last of these makes the next try a second
// certificate, a second message, or both.
type naively struct {
	db     *sql.DB
	verify inbox.Verify
	post   *post
}

func (n naively) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if _, err := n.verify(r.Header, body); err != nil {
		http.Error(w, "the signature does not verify", http.StatusUnauthorized)
		return
	}
	if err := n.issue(r.Context(), body); err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}

func (n naively) issue(ctx context.Context, body []byte) error {
	who, err := learner(body)
	if err != nil {
		return err
	}
	if _, err := n.db.ExecContext(ctx, `INSERT INTO certificates (learner) VALUES (?)`, who); err != nil {
		return err
	}
	return n.post.send(ctx, who, "")
}
