package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxAnswer bounds an answer, in bytes: one page of a list at most.
const maxAnswer = 64 << 20

// call is one call of the API.
type call struct {
	method, path string
	query        url.Values
	// in is sent as JSON, nil for no body.
	in any
	// key is its Idempotency-Key, made by keyed where it is empty.
	key string
	// ifMatch is the version that a change is for.
	ifMatch string
	// wait is how long the server is asked to wait.
	wait time.Duration
	// safe says that it can be repeated whatever became of the last try.
	safe bool
}

// answer is what came back from a call that was carried out.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func get(path string, query url.Values) call {
	return call{method: http.MethodGet, path: path, query: query, safe: true}
}

// keyed is a POST under an Idempotency-Key: one for all of its tries.
func keyed(path, key string, in any) call {
	if key == "" {
		key = NewKey()
	}
	return call{method: http.MethodPost, path: path, key: key, in: in, safe: true}
}

// repeatable is a POST that changes nothing the second time.
func repeatable(path string, in any) call {
	return call{method: http.MethodPost, path: path, in: in, safe: true}
}

// do makes a call, again if need be, and reads the answer into out.
func (c *Client) do(ctx context.Context, cl call, out any) error {
	a, err := c.send(ctx, cl)
	if err == nil {
		err = a.read(out)
	}
	return err
}

// made is do for calls that answer with one thing.
func made[T any](ctx context.Context, c *Client, cl call) (out T, err error) {
	err = c.do(ctx, cl, &out)
	return out, err
}

func (a *answer) read(out any) error {
	if out == nil || len(a.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(a.body, out); err != nil {
		return errors.New("client: the answer is not what this version of the client knows")
	}
	return nil
}

// send makes a call, again if need be.
func (c *Client) send(ctx context.Context, cl call) (*answer, error) {
	var body []byte
	if cl.in != nil {
		var err error
		if body, err = json.Marshal(cl.in); err != nil {
			return nil, errors.New("client: the request cannot be written as JSON")
		}
	}
	wait := c.o.Backoff
	for tries := 1; ; tries++ {
		a, err := c.try(ctx, cl, body)
		if err == nil {
			return a, nil
		}
		lost := func(err error) error {
			return &Unanswered{Method: cl.method, Path: cl.path, Tries: tries, IdempotencyKey: cl.key, Err: err}
		}
		problem, refused := errors.AsType[*Problem](err)
		switch {
		case ctx.Err() != nil:
			return nil, lost(context.Cause(ctx))
		case refused && !passing(problem.Status):
			return nil, err
		case tries >= c.o.Attempts || !cl.safe && !untaken(problem, err):
			if refused {
				return nil, err
			}
			return nil, lost(err)
		}
		pause := wait/2 + rand.N(wait/2+1)
		if refused {
			pause = max(pause, problem.RetryAfter)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < pause {
			// The next try would come too late: better to say so now.
			if refused {
				return nil, err
			}
			return nil, lost(errors.Join(err, context.DeadlineExceeded))
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, lost(err)
		}
		wait = min(2*wait, c.o.MaxBackoff)
	}
}

// passing reports whether the same call may be answered later.
func passing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// untaken reports whether a try was certainly not carried out.
func untaken(p *Problem, err error) bool {
	if p != nil {
		return p.Status == http.StatusTooManyRequests
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// try makes a call once. Its errors are a *Problem or the connection's, without
// the address, which the caller knows.
func (c *Client) try(ctx context.Context, cl call, body []byte) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout+cl.wait)
	defer cancel()
	r, err := c.request(ctx, cl, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.o.HTTP.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20)
	}
	if resp.StatusCode >= 400 || resp.StatusCode >= 300 && resp.StatusCode != http.StatusFound {
		return nil, problemOf(resp.StatusCode, resp.Header, text)
	}
	return &answer{resp.StatusCode, resp.Header, text}, nil
}

func (c *Client) request(ctx context.Context, cl call, body []byte) (*http.Request, error) {
	query := cl.query
	if c.o.Tenant != "" {
		query = url.Values{"tenant": {c.o.Tenant}}
		for name, values := range cl.query {
			query[name] = values
		}
	}
	address := c.server + cl.path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, cl.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("client: the call cannot be made into a request")
	}
	r.Header.Set("Authorization", "Bearer "+string(c.o.Key))
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "pawl-go")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if cl.key != "" {
		r.Header.Set("Idempotency-Key", cl.key)
	}
	if cl.ifMatch != "" {
		r.Header.Set("If-Match", cl.ifMatch)
	}
	if cl.wait > 0 && cl.query.Get("wait") == "" && cl.method != http.MethodPost {
		r.Header.Set("Prefer", fmt.Sprintf("wait=%d", int(cl.wait.Seconds())))
	}
	return r, nil
}

// segment is an id as a part of a path.
func segment(id string) string { return url.PathEscape(id) }
