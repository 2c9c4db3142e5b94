package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// hand posts an event until it is taken, so that none overtakes another. What the
// user does not take stays where it is, also beyond an interruption.
func (l *listener) hand(event fed) error {
	body, err := event.body()
	if err != nil {
		return err
	}
	wait := newBackoff(200*time.Millisecond, 5*time.Second)
	said := -1
	for try := 1; ; try++ {
		began := time.Now()
		status, after, err := l.post(event, body, try)
		if l.s.ctx.Err() != nil {
			return nil
		}
		taken := status/100 == 2
		if taken || status != said {
			if err := l.tell(event, status, time.Since(began)); err != nil {
				return err
			}
			said = status
		}
		if err != nil && try == 1 {
			l.s.say("%s does not answer; the event waits for it", plain(l.to))
		}
		if taken || l.skip && status > 0 {
			l.last = event.Sequence
			return l.kept.reach(l.last)
		}
		if pause(l.s.ctx, wait.next(after)) != nil {
			return nil
		}
	}
}

// post posts an event once; the status is 0 where there was no answer.
func (l *listener) post(event fed, body []byte, try int) (status int, after time.Duration, err error) {
	header, err := l.scheme.Sign(webhook.Message{ID: event.publicID(), Timestamp: l.s.Now().Unix(), Body: body}, l.key)
	if err != nil {
		return 0, 0, err
	}
	r, err := http.NewRequestWithContext(l.s.ctx, http.MethodPost, l.to, bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "pawl/"+version().Version)
	r.Header.Set("Pawl-Attempt", strconv.Itoa(try))
	r.Header.Set("Pawl-Endpoint-Sequence", strconv.FormatInt(event.Sequence, 10))
	resp, err := l.http.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // The connection is used again.
	return resp.StatusCode, retryAfter(&refusal{wait: resp.Header.Get("Retry-After")}), nil
}

// tell prints one line of an event.
func (l *listener) tell(event fed, status int, took time.Duration) error {
	line := fmt.Appendf(nil, `{"sequence":%d,"id":%s,"type":%s,"status":%d,"ms":%d}`,
		event.Sequence, quoted(event.publicID()), quoted(event.Type), status, took.Milliseconds())
	return l.s.printItem(l.lines, line)
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // A string can always be written.
	return b
}
