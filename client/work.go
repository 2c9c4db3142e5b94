package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

const work = "/v1/work"

// lease is one operation that a worker has for a while.
type lease struct {
	Lease     string    `json:"lease"`
	Operation Operation `json:"operation"`
	Attempt   int       `json:"attempt"`
	ExpiresAt pawl.Time `json:"expires_at"`
	// lasts is how long it lasts from when the answer came.
	lasts time.Duration
}

// take leases at most so many operations, and waits for some.
func (c *Client) take(ctx context.Context, capabilities []string, most int, wait time.Duration) ([]lease, error) {
	a, err := c.send(ctx, call{method: http.MethodPost, path: work + "/lease", wait: wait, in: struct {
		Capabilities []string `json:"capabilities,omitempty"`
		Wait         int      `json:"wait"`
		Max          int      `json:"max"`
	}{capabilities, int(wait.Seconds()), most}})
	if err != nil || a.status == http.StatusNoContent {
		return nil, err
	}
	var got struct {
		lease
		More []lease `json:"more"`
	}
	if err := a.read(&got); err != nil {
		return nil, err
	}
	if got.Lease == "" {
		return nil, errors.New("client: the answer is not a lease")
	}
	all := append([]lease{got.lease}, got.More...)
	for i := range all {
		all[i].lasts = lasting(all[i].ExpiresAt, a.header)
	}
	return all, nil
}

// lasting is how long it is until a moment of the server's. The server's own
// clock is asked, which is told in whole seconds: this machine's may be wrong.
func lasting(until pawl.Time, header http.Header) time.Duration {
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return until.Std().Sub(now)
}

// status is what a worker hears about its lease.
type status struct {
	ExpiresAt       pawl.Time `json:"expires_at"`
	CancelRequested bool      `json:"cancel_requested"`
}

func (c *Client) heartbeat(ctx context.Context, id string) (s status, lasts time.Duration, err error) {
	a, err := c.send(ctx, repeatable(work+"/"+segment(id)+"/heartbeat", struct{}{}))
	if err != nil {
		return s, 0, err
	}
	err = a.read(&s)
	return s, lasting(s.ExpiresAt, a.header), err
}

func (c *Client) progress(ctx context.Context, id string, percent *float64, message string) (status, error) {
	return made[status](ctx, c, repeatable(work+"/"+segment(id)+"/progress", struct {
		Percent *float64 `json:"percent,omitempty"`
		Message string   `json:"message,omitempty"`
	}{percent, message}))
}

func (c *Client) complete(ctx context.Context, id string, result json.RawMessage, cost *Money, canceled bool) error {
	return c.do(ctx, repeatable(work+"/"+segment(id)+"/complete", struct {
		Result   json.RawMessage `json:"result,omitempty"`
		Cost     *Money          `json:"cost,omitempty"`
		Canceled bool            `json:"canceled,omitempty"`
	}{result, cost, canceled}), nil)
}

func (c *Client) fail(ctx context.Context, id string, f Failure) error {
	return c.do(ctx, repeatable(work+"/"+segment(id)+"/fail", struct {
		Code      pawl.FailureCode `json:"code"`
		Message   string           `json:"message,omitempty"`
		Retryable bool             `json:"retryable"`
	}{f.Code, forPeople(f.Message), f.Retryable}), nil)
}

// maxMessage bounds the message of a failure, in bytes.
const maxMessage = 1000

// forPeople is a message as the server takes it: of one line, and not too long.
// Errors of other programs often are neither.
func forPeople(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}
