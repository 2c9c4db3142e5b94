package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"
)

// Gap says that an endpoint's stream lacks sequences: they are no longer stored.
type Gap struct{ From, To int64 }

// Error names the gap.
func (g *Gap) Error() string {
	return fmt.Sprintf("client: the feed has nothing for the sequences %d to %d: they are no longer stored", g.From, g.To)
}

// Feed follows an endpoint's stream from after a sequence on, 0 for its
// beginning: what is there, and then what comes, in order and each once, until
// the context ends, which ends the loop without an error. Keep the Sequence of
// the last event that you are done with, and begin after it next time.
//
// What an event from a source holds is there for keys with the scope payloads
// alone; for others it is [Event.Withheld].
//
// A server that is away is asked on. Other errors end the loop, but for a [*Gap],
// after which it goes on if the caller does.
func (c *Client) Feed(ctx context.Context, endpoint string, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		pause := c.o.Backoff
		for {
			began := time.Now()
			page, _, err := c.feed(ctx, endpoint, after, maxWait)
			_, lost := errors.AsType[*Unanswered](err)
			problem, refused := errors.AsType[*Problem](err)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !lost && !(refused && passing(problem.Status)):
				yield(Event{}, err)
				return
			}
			var more bool
			if after, more = emit(page, after, yield); !more {
				return
			}
			if len(page) > 0 || time.Since(began) > 5*time.Second {
				pause = c.o.Backoff
				continue
			}
			if sleep(ctx, pause) != nil {
				return
			}
			pause = min(2*pause, c.o.MaxBackoff)
		}
	}
}

// emit yields the events of a page and the gaps before them; false where the
// caller has had enough.
func emit(page []Event, after int64, yield func(Event, error) bool) (int64, bool) {
	for _, e := range page {
		if e.Sequence > after+1 && !yield(Event{}, &Gap{after + 1, e.Sequence - 1}) {
			return after, false
		}
		if !yield(e, nil) {
			return after, false
		}
		after = e.Sequence
	}
	return after, true
}

// feed reads a piece of a stream and where it ends now.
func (c *Client) feed(ctx context.Context, endpoint string, after int64, wait time.Duration) (page []Event, end int64, err error) {
	q := url.Values{"endpoint": {endpoint}, "after": {strconv.FormatInt(after, 10)}, "page_size": {strconv.Itoa(pageSize)}}
	if wait > 0 {
		q.Set("wait", strconv.Itoa(int(wait.Seconds())))
	}
	poll := get(events, q)
	poll.wait = wait
	a, err := c.send(ctx, poll)
	if err != nil {
		return nil, 0, err
	}
	var items struct {
		Items []StoredEvent `json:"items"`
	}
	if err := a.read(&items); err != nil {
		return nil, 0, err
	}
	end, err = strconv.ParseInt(a.header.Get("Pawl-Endpoint-Sequence"), 10, 64)
	if err != nil {
		return nil, 0, errors.New("client: the answer is not a feed")
	}
	for _, e := range items.Items {
		page = append(page, e.Delivered())
	}
	return page, end, nil
}

// End is the last sequence in an endpoint's stream now: where to begin with a
// [Client.Feed] that is to have only what comes.
func (c *Client) End(ctx context.Context, endpoint string) (int64, error) {
	_, end, err := c.feed(ctx, endpoint, 1<<62, 0)
	return end, err
}

// Missed yields what an endpoint's stream has, up to its end at the beginning of
// the loop, and the receiver has not seen, in order. What is on its way just now
// counts as missed: a receiver knows repeats by their ids anyway. What waits for an
// endpoint that is disabled, or has never been tried, has no sequence yet and is not
// there: enable the endpoint first, and it will be sent.
//
// Call it when a sequence was skipped ([Seen.Gaps]), at the start, and now and
// then:
//
//	for event, err := range c.Missed(ctx, endpoint, &seen) {
//		if err != nil {
//			return err
//		}
//		handle(event) // As if it had been delivered.
//		seen.Add(event.Sequence)
//	}
func (c *Client) Missed(ctx context.Context, endpoint string, seen *Seen) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after, until := seen.Until(), int64(-1)
		unseen := func(e Event, err error) bool {
			return e.Sequence > 0 && seen.Has(e.Sequence) || yield(e, err)
		}
		for {
			page, end, err := c.feed(ctx, endpoint, after, 0)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if until < 0 {
				until = end
			}
			for len(page) > 0 && page[len(page)-1].Sequence > until {
				page = page[:len(page)-1]
			}
			var more bool
			if after, more = emit(page, after, unseen); !more || len(page) == 0 || after >= until {
				return
			}
		}
	}
}
