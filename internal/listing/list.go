package listing

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/egress"
	"github.com/pawlhq/pawl/internal/strict"
)

// Why a page could not be read: stable words.
const (
	ReasonUnreachable  = "unreachable"
	ReasonEgress       = "egress"
	ReasonTooLarge     = "too_large"
	ReasonStatus       = "status"
	ReasonUnauthorized = "unauthorized"
	ReasonMalformed    = "malformed_json"
	// ReasonNoItems: where the entries should be is no array.
	ReasonNoItems = "no_items"
	// ReasonTooMany: the page has more than 1,000 entries.
	ReasonTooMany = "too_many_items"
	// ReasonNoCursor: nothing says where the next page begins.
	ReasonNoCursor = "no_cursor"
	// ReasonLoop: the page leads back to an earlier one, or the walk had 10,000.
	ReasonLoop = "loop"
	// ReasonStuck: more entries have one time than a page holds.
	ReasonStuck = "stuck"
)

// Failure is a page that could not be read.
type Failure struct {
	Reason string
	// RetryAfter is how long the other side wants us to wait, 0 if it did not say.
	RetryAfter time.Duration
}

// Error is the reason.
func (f *Failure) Error() string { return "listing: the page could not be read: " + f.Reason }

// List is a list of one provider or sender.
type List struct {
	// Spec is how it is read; it has passed [Check].
	Spec config.Listing
	// Envelope points to a code in the answer that repeats its status, if any.
	Envelope string
	// State is what a provider's word stands for, zero for an unknown one.
	State func(word string) pawl.State
	// Request makes the request for a page, whose query says which.
	Request func(ctx context.Context, query url.Values) (*http.Request, error)
	// Timeout bounds one page.
	Timeout time.Duration
}

// maxAnswer bounds a page, in bytes.
const maxAnswer = 4 << 20

// Read reads the page at a cursor. With since it tells nothing older, and ends the
// walk where nothing younger can follow. The error is a [*Failure].
func (l List) Read(ctx context.Context, client *egress.Client, c Cursor, since pawl.Time) (Page, error) {
	req, err := l.Request(ctx, l.query(c, since))
	if err != nil {
		return Page{}, &Failure{Reason: ReasonUnreachable}
	}
	a, err := client.Do(ctx, req, egress.Limits{Timeout: l.Timeout, MaxResponse: maxAnswer})
	var refused *egress.Refused
	switch {
	case errors.As(err, &refused):
		return Page{}, &Failure{Reason: ReasonEgress}
	case err != nil || a.Cut != nil:
		return Page{}, &Failure{Reason: ReasonUnreachable}
	case a.Truncated:
		return Page{}, &Failure{Reason: ReasonTooLarge}
	}
	if reason := l.refusal(a); reason != "" {
		wait, _ := strict.RetryAfter(a.Header.Get("Retry-After"), time.Now())
		return Page{}, &Failure{Reason: reason, RetryAfter: wait}
	}
	page, reason := reader{l.Spec}.read(a.Body, c, since)
	if reason != "" {
		return page, &Failure{Reason: reason}
	}
	return page, nil
}

// query says which page is wanted.
func (l List) query(c Cursor, since pawl.Time) url.Values {
	query, how, r := url.Values{}, l.Spec.Paging, reader{l.Spec}
	if how.SizeParam != "" {
		query.Set(how.SizeParam, strconv.Itoa(how.Size))
	}
	if how.SinceParam != "" && since.IsSet() {
		query.Set(how.SinceParam, r.time(since.Std()))
	}
	switch {
	case c.At != "":
		query.Set(how.Param, c.At)
	case how.Overlap > 0 && since.IsSet():
		query.Set(how.Param, r.time(since.Std().Add(-how.Overlap)))
	}
	return query
}

// refusal is why an answer is no page; empty if it is one.
func (l List) refusal(a *egress.Response) string {
	status := a.Status
	if l.Envelope != "" && status/100 == 2 {
		code, _ := strict.Lookup(a.Body, l.Envelope)
		if n, err := strconv.Atoi(word(code)); err == nil && n != 0 && n/100 != 2 {
			status = n
		}
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return ReasonUnauthorized
	case status/100 != 2:
		return ReasonStatus
	}
	return ""
}
