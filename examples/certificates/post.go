package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// post is a mail service that sends one message a key.
type post struct {
	url    string
	client http.Client
}

func (p *post) send(ctx context.Context, learner, key string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(learner))
	if err != nil {
		return err
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the mail service answered %d", answer.StatusCode)
	}
	return nil
}
