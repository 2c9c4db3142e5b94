package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

const (
	learners = 500
	kills    = 20
)

// TestKilledReceiver: 500 completed courses, each told one to three times to a
// receiver that is killed 20 times, are 500 certificates and 500 messages. The
// naive receiver, in the same run, makes more.
func TestKilledReceiver(t *testing.T) {
	bin := build(t, ".")
	t.Run("careful", func(t *testing.T) {
		certificates, messages := rush(t, bin)
		if certificates != learners || messages != learners {
			t.Errorf("%d certificates and %d messages, want %d of each", certificates, messages, learners)
		}
	})
	t.Run("naive", func(t *testing.T) {
		certificates, messages := rush(t, bin, "-naive")
		if certificates <= learners || messages <= learners {
			t.Errorf("%d certificates and %d messages: it does no harm, so the test shows nothing", certificates, messages)
		}
		t.Logf("%d certificates and %d messages for %d learners", certificates, messages, learners)
	})
}

// rush tells a receiver of all learners while it is killed, and counts what it
// has made in the end.
func rush(t *testing.T, bin string, more ...string) (certificates, messages int) {
	file, mail := filepath.Join(t.TempDir(), "school.db"), newMailbox(t)
	r := newReceiver(t, bin, file, mail.URL, more...)
	todo := make(chan int, learners)
	for n := range learners {
		todo <- n
	}
	close(todo)
	var told atomic.Int64
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for n := range todo {
				for range 1 + n%3 {
					tell(t, r.url(), n)
				}
				told.Add(1)
			}
		})
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range int64(kills) { // spread over the whole load
		for told.Load() < (i+1)*learners/(kills+1) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
		r.kill()
		r.start()
	}
	senders.Wait()
	for range 500 { // messages follow the answers
		if _, n := mail.messages(); n == learners {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	messages, _ = mail.messages()
	return count(t, file), messages
}

// tell sends an event as a sender does that goes on until it is answered 2xx,
// under one id.
func tell(t *testing.T, url string, n int) {
	for try := 0; ; try++ {
		r, err := signed(t.Context(), url, secret, n)
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode/100 == 2 {
				return
			}
		}
		if try == 1000 || t.Context().Err() != nil {
			t.Errorf("event %d is not taken: %v", n, err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// signed is the request that tells of a learner, made now.
func signed(ctx context.Context, url, secret string, n int) (*http.Request, error) {
	body := fmt.Appendf(nil, `{"type":"course.completed","learner":"L-%03d"}`, n)
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(secret)
	if err != nil {
		return nil, err
	}
	header, err := scheme.Sign(webhook.Message{ID: fmt.Sprintf("course_%03d", n), Timestamp: time.Now().Unix(), Body: body}, key)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

func count(t *testing.T, file string) (n int) {
	db, err := sql.Open("sqlite3", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(`SELECT count(*) FROM certificates`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
