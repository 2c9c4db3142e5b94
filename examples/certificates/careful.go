package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlhq/pawl/inbox"
)

// completed is what an event says.
type completed struct {
	Learner string `json:"learner"`
}

func learner(body []byte) (string, error) {
	var c completed
	if err := json.Unmarshal(body, &c); err != nil || c.Learner == "" {
		return "", fmt.Errorf("the event names no learner")
	}
	return c.Learner, nil
}

// carefully answers after the commit of the event, the certificate and the
// message to be sent.
func carefully(school *inbox.Inbox[*sql.Tx], verify inbox.Verify) http.Handler {
	return inbox.Handler(verify, func(ctx context.Context, e inbox.Event) (inbox.Outcome, error) {
		return school.Apply(ctx, e, issue)
	})
}

// issue runs in the transaction that also remembers the event.
func issue(ctx context.Context, tx *sql.Tx, e inbox.Event, effects *inbox.Effects) ([]byte, error) {
	who, err := learner(e.Body)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO certificates (learner) VALUES (?)`, who); err != nil {
		return nil, err
	}
	effects.Add("message", []byte(who))
	return []byte("certificate of " + who), nil
}

// drain sends the messages that are due, each under its own stable id, until
// the context ends.
func drain(ctx context.Context, school *inbox.Inbox[*sql.Tx], to *post) {
	for ctx.Err() == nil {
		n, err := school.Drain(ctx, func(ctx context.Context, e inbox.Effect) error {
			return to.send(ctx, string(e.Payload), e.ID)
		})
		if n == 0 || err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}
