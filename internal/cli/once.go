package cli

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// once is the part of commands that must not happen twice: they carry an
// idempotency key.
type once struct {
	IdempotencyKey string `placeholder:"KEY" help:"Use this key instead of a remembered one."`
	New            bool   `help:"Begin anew, even if the same command was not answered before."`
	Retry          int    `default:"3" help:"How often to try again, with the same key, if the server does not answer or is busy."`
}

// onceCall is a call that must not happen twice.
type onceCall struct {
	method, path string
	// arguments make two command lines the same; body may differ between runs,
	// as where it holds a moment that is counted from now.
	arguments any
	body      []byte
}

// sendOnce makes the call under a key that the same command keeps until its
// answer was printed; print gets the answer. A refusal that is final is an
// answer too.
func (s *session) sendOnce(o once, call onceCall, print func(*client, *answer) error) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	r := recall{Key: o.IdempotencyKey}
	if r.Key == "" {
		if r, err = s.recall(c, call, o.New); err != nil {
			return err
		}
	}
	a, err := s.persist(c, o.Retry, call, r.Key)
	if err == nil {
		err = print(c, a)
		if err != nil && !errors.Is(err, errShown) {
			return s.unanswered(r, err)
		}
		return errors.Join(err, r.forget())
	}
	if final(err) {
		return errors.Join(err, r.forget())
	}
	return s.unanswered(r, err)
}

func (s *session) recall(c *client, call onceCall, anew bool) (recall, error) {
	m, err := s.memory()
	if err != nil {
		return recall{}, err
	}
	r, err := m.recall(c, []any{call.method, call.path, call.arguments}, anew)
	if err == nil && r.Again {
		s.say("the same command was not answered before (%s): its idempotency key is used again, so nothing is done twice; --new begins anew", r.Started.Format("2006-01-02 15:04:05Z"))
	}
	return r, err
}

// unanswered tells what to do about a command of which the outcome is open.
func (s *session) unanswered(r recall, err error) error {
	if _, waited := errors.AsType[stillGoing](err); r.path != "" && !waited {
		s.say("the outcome is open: run the same command again, it will not be done twice")
	}
	return err
}

// final reports whether an error is the server's last word: repeating the call
// would bring the same.
func final(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && !refused.passing()
}

// passing reports whether the same call may be answered otherwise later.
func (r *refusal) passing() bool {
	return r.status >= 500 || r.status == http.StatusTooManyRequests || r.status == http.StatusRequestTimeout
}

// persist makes the call, and again while it may help, always with the same
// key.
func (s *session) persist(c *client, retries int, call onceCall, key string) (*answer, error) {
	wait := newBackoff(500*time.Millisecond, 10*time.Second)
	for try := 0; ; try++ {
		a, err := c.call(s.ctx, call.method, call.path, nil, call.body, "Idempotency-Key", key)
		if err == nil || s.ctx.Err() != nil || try >= retries || final(err) {
			return a, err
		}
		s.say("%s; trying again with the same key (%d of %d)", plain(err.Error()), try+1, retries)
		if err := pause(s.ctx, wait.next(retryAfter(err))); err != nil {
			return nil, err
		}
	}
}

// retryAfter is what a busy server asked for.
func retryAfter(err error) time.Duration {
	var refused *refusal
	if !errors.As(err, &refused) {
		return 0
	}
	seconds, err := strconv.Atoi(refused.wait)
	if err != nil {
		return 0
	}
	return min(time.Duration(max(seconds, 0))*time.Second, time.Minute)
}

// patiently makes a call that may be repeated, again where the server says that
// it is busy.
func (s *session) patiently(c *client, method, path string, query url.Values) (*answer, error) {
	wait := newBackoff(500*time.Millisecond, 10*time.Second)
	for try := 0; ; try++ {
		a, err := c.call(s.ctx, method, path, query, nil)
		if _, refused := errors.AsType[*refusal](err); !refused || try >= 3 || final(err) {
			return a, err
		}
		if err := pause(s.ctx, wait.next(retryAfter(err))); err != nil {
			return nil, err
		}
	}
}

// backoff is the pace of 1-product E1: ×1.5 each time up to a limit, ±10 %.
type backoff struct{ wait, most time.Duration }

func newBackoff(first, most time.Duration) *backoff { return &backoff{first, most} }

// next is how long to wait now, at least the given time.
func (b *backoff) next(least time.Duration) time.Duration {
	wait := time.Duration(float64(b.wait) * (0.9 + 0.2*rand.Float64()))
	b.wait = min(b.wait*3/2, b.most)
	return max(wait, least)
}

// pause waits, or gives up with the context.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errors.New("interrupted")
	}
}
