package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"

	public "github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/webhook"
)

// hand posts an event until it is taken, so that none overtakes another. What the
// user does not take stays where it is, also beyond an interruption.
func (l *listener) hand(event public.StoredEvent) error {
	switch {
	case event.Withheld:
		return fmt.Errorf("event %d came from the source %s, and what it holds is for keys with the scope payloads alone: give a key with that scope (--key or PAWL_KEY), or follow other types", event.Sequence, plain(event.Source))
	case event.Unsendable != "":
		l.s.say("event %d is left out: %s", event.Sequence, plain(event.Unsendable)) // It would be a dead letter.
		return l.done(event)
	case event.Rendered == nil:
		return errors.New("the server does not write the events of feeds as they are sent; it is older than this program")
	}
	wait := newBackoff(200*time.Millisecond, 5*time.Second)
	said := -1
	for try := 1; ; try++ {
		r, err := l.request(event, try)
		if err != nil {
			return err // The next try would end so too.
		}
		began := time.Now()
		status, after := l.post(r)
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
		if status == 0 && try == 1 {
			l.s.say("%s does not answer; the event waits for it", plain(l.to))
		}
		if taken || l.skip && status > 0 {
			return l.done(event)
		}
		if pause(l.s.ctx, wait.next(after)) != nil {
			return nil
		}
	}
}

// done keeps the place after an event.
func (l *listener) done(event public.StoredEvent) error {
	l.last = event.Sequence
	return l.kept.reach(l.last)
}

// request is the POST of an event: the bytes that are sent to the endpoint, signed
// for the address here.
func (l *listener) request(event public.StoredEvent, try int) (*http.Request, error) {
	body, content := event.Rendered.Body, http.Header{}
	for name, value := range event.Rendered.Headers {
		content.Set(name, value)
	}
	header, err := l.scheme.Sign(webhook.Message{
		ID: event.Delivered().ID, Timestamp: l.s.Now().Unix(), URL: l.to, ContentType: content.Get("Content-Type"), Body: body,
	}, l.key)
	if err != nil {
		return nil, fmt.Errorf("event %d cannot be signed: %w", event.Sequence, err)
	}
	r, err := http.NewRequestWithContext(l.s.ctx, http.MethodPost, l.to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header
	maps.Copy(r.Header, content)
	r.Header.Set("User-Agent", "pawl/"+version().Version)
	r.Header.Set("Pawl-Delivery", event.DeliveryID)
	r.Header.Set("Pawl-Attempt", strconv.Itoa(try))
	r.Header.Set("Pawl-Endpoint-Sequence", strconv.FormatInt(event.Sequence, 10))
	return r, nil
}

// post posts an event once; the status is 0 where there was no answer.
func (l *listener) post(r *http.Request) (status int, after time.Duration) {
	resp, err := l.http.Do(r)
	if err != nil {
		return 0, 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // The connection is used again.
	return resp.StatusCode, retryAfter(&refusal{wait: resp.Header.Get("Retry-After")})
}

// tell prints one line of an event.
func (l *listener) tell(event public.StoredEvent, status int, took time.Duration) error {
	line := fmt.Appendf(nil, `{"sequence":%d,"id":%s,"type":%s,"status":%d,"ms":%d}`,
		event.Sequence, quoted(event.Delivered().ID), quoted(event.Type), status, took.Milliseconds())
	return l.s.printItem(l.lines, line)
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // A string can always be written.
	return b
}
