package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	// feedPiece is how many events of a feed are read at once.
	feedPiece = 16
	// maxFeed bounds the data of one answer, in bytes: what does not fit comes
	// with the next one.
	maxFeed = 4 << 20
)

// listFeed is an endpoint's stream from after a sequence on, oldest first
// (7-rules §3). It waits for something to come if it is asked to.
func listFeed(c *call) (page[storedEvent], error) {
	for name := range c.query {
		switch name {
		case "endpoint", "after", "wait", "page_size", "rendered", "tenant":
		default:
			return page[storedEvent]{}, refuse(http.StatusBadRequest, "invalid_query", "a feed has no other parameters than endpoint, after, wait, rendered and page_size")
		}
	}
	after, err := strconv.ParseInt(c.query.Get("after"), 10, 64)
	if err != nil || after < 0 || !c.query.Has("endpoint") {
		return page[storedEvent]{}, refuse(http.StatusBadRequest, "invalid_query", "a feed needs endpoint and after: the last sequence that is known, 0 for none")
	}
	f := feed{call: c}
	if f.rendered, err = filterWord(c, "rendered", parseTrue); err != nil {
		return page[storedEvent]{}, err
	}
	if f.endpoint, err = c.feedEndpoint(); err != nil {
		return page[storedEvent]{}, err
	}
	size, err := c.pageSize()
	if err != nil {
		return page[storedEvent]{}, err
	}
	rows, end, err := c.awaitFeed(f.endpoint.ID, after, size)
	if err != nil {
		return page[storedEvent]{}, err
	}
	c.header.Set("Pawl-Endpoint-Sequence", strconv.FormatInt(end, 10))
	out := page[storedEvent]{Items: []storedEvent{}}
	for whole := 0; len(rows) > 0 && whole < maxFeed; {
		piece := rows[:min(feedPiece, len(rows))]
		rows = rows[len(piece):]
		items, bytes, err := f.show(piece)
		if err != nil {
			return page[storedEvent]{}, err
		}
		out.Items, whole = append(out.Items, items...), whole+bytes
	}
	return out, nil
}

func (c *call) feedEndpoint() (ledger.Endpoint, error) {
	id, err := c.filterID("endpoint", pawl.PrefixEndpoint)
	if err != nil {
		return ledger.Endpoint{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Endpoints: []pawl.ID{id}})
	if err != nil {
		return ledger.Endpoint{}, err
	}
	ep, ok := rows.Endpoints.Get(id)
	if !ok || ep.DeletedAt != 0 || !c.sees(ep.Tenant) {
		return ledger.Endpoint{}, errNotFound
	}
	return ep, nil
}

// awaitFeed reads a piece of the stream and where the stream ends now.
func (c *call) awaitFeed(endpoint pawl.ID, after int64, size int) ([]ledger.Delivery, int64, error) {
	waiting, cancel := context.WithTimeout(c.ctx, c.wish.wait)
	defer cancel()
	wait := func(int64) bool { return false }
	if c.wish.wait > 0 && c.opts.Watch != nil {
		if waiter, ok := c.opts.Watch.JoinStream(endpoint); ok {
			defer waiter.Leave()
			wait = func(beyond int64) bool { return waiter.Wait(waiting, beyond) == nil }
			if c.wish.preferred {
				c.header.Set("Preference-Applied", "wait="+strconv.Itoa(int(c.wish.wait/time.Second)))
			}
		}
	}
	for {
		ends, err := store.Sequences(c.ctx, c.opts.Reader, endpoint)
		if err != nil {
			return nil, 0, err
		}
		rows, err := c.opts.Reader.Feed(c.ctx, endpoint, after, size)
		if err != nil {
			return nil, 0, err
		}
		end := ends[endpoint]
		if len(rows) > 0 {
			end = max(end, rows[len(rows)-1].Sequence)
		}
		if len(rows) > 0 || !wait(max(after, end)) {
			return rows, end, c.ctx.Err()
		}
	}
}
