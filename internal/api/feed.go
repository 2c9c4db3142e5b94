package api

import (
	"context"
	"encoding/json"
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
		case "endpoint", "after", "wait", "page_size", "tenant":
		default:
			return page[storedEvent]{}, refuse(http.StatusBadRequest, "invalid_query", "a feed has no other parameters than endpoint, after, wait and page_size")
		}
	}
	after, err := strconv.ParseInt(c.query.Get("after"), 10, 64)
	if err != nil || after < 0 || !c.query.Has("endpoint") {
		return page[storedEvent]{}, refuse(http.StatusBadRequest, "invalid_query", "a feed needs endpoint and after: the last sequence that is known, 0 for none")
	}
	endpoint, err := c.feedEndpoint()
	if err != nil {
		return page[storedEvent]{}, err
	}
	size, err := c.pageSize()
	if err != nil {
		return page[storedEvent]{}, err
	}
	rows, end, err := c.awaitFeed(endpoint, after, size)
	if err != nil {
		return page[storedEvent]{}, err
	}
	c.header.Set("Pawl-Endpoint-Sequence", strconv.FormatInt(end, 10))
	out := page[storedEvent]{Items: []storedEvent{}}
	for whole := 0; len(rows) > 0 && whole < maxFeed; {
		piece := rows[:min(feedPiece, len(rows))]
		rows = rows[len(piece):]
		items, bytes, err := c.showFeed(piece)
		if err != nil {
			return page[storedEvent]{}, err
		}
		out.Items, whole = append(out.Items, items...), whole+bytes
	}
	return out, nil
}

func (c *call) feedEndpoint() (pawl.ID, error) {
	id, err := c.filterID("endpoint", pawl.PrefixEndpoint)
	if err != nil {
		return id, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Endpoints: []pawl.ID{id}})
	if err != nil {
		return id, err
	}
	ep, ok := rows.Endpoints.Get(id)
	if !ok || ep.DeletedAt != 0 || !c.sees(ep.Tenant) {
		return id, errNotFound
	}
	return id, nil
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

// showFeed shows events as they are delivered, and how large that is.
func (c *call) showFeed(rows []ledger.Delivery) (items []storedEvent, bytes int, err error) {
	var keys ledger.Keys
	for _, d := range rows {
		keys.Events = append(keys.Events, d.Event)
	}
	found, err := c.load(c.ctx, keys)
	if err != nil {
		return nil, 0, err
	}
	events := make([]ledger.Event, len(rows))
	var wanted []ledger.PayloadID
	read := false // raw bodies, which is audited (7-rules R53)
	for i, d := range rows {
		events[i], _ = found.Events.Get(d.Event)
		if ids := feedPayloads(events[i]); events[i].Direction != ledger.Inbound {
			wanted = append(wanted, ids...)
		} else if c.may(ledger.ScopePayloads) {
			wanted, read = append(wanted, ids...), true
		}
	}
	if read {
		if err := c.accessed(rows[0].Tenant, "event.body", rows[0].Endpoint.Text(pawl.PrefixEndpoint)); err != nil {
			return nil, 0, err
		}
	}
	payloads, err := c.opts.Reader.Payloads(c.ctx, wanted...)
	if err != nil {
		return nil, 0, err
	}
	for i, d := range rows {
		e := events[i]
		e.ID = d.Event // Also where it is no longer stored.
		shown, size := feedShape(e, d, payloads)
		items, bytes = append(items, shown), bytes+size
	}
	return items, bytes, nil
}

func feedPayloads(e ledger.Event) []ledger.PayloadID {
	switch {
	case e.ID.IsZero():
		return nil
	case e.Direction == ledger.Inbound:
		return []ledger.PayloadID{{Owner: e.ID, Kind: ledger.BodyPayload}}
	case e.Operation.IsZero():
		return []ledger.PayloadID{{Owner: e.ID, Kind: ledger.DataPayload}}
	}
	ids := []ledger.PayloadID{{Owner: e.Operation, Kind: ledger.MetadataPayload}}
	if !e.Result.IsZero() {
		ids = append(ids, ledger.PayloadID{Owner: e.Result, Kind: ledger.ResultPayload})
	}
	return ids
}

// feedShape is an event with the data that is delivered: a result that would be
// too large to be sent goes by link here too (2-contracts §1, limits).
func feedShape(e ledger.Event, d ledger.Delivery, payloads map[ledger.PayloadID]string) (storedEvent, int) {
	shown := eventShape(e)
	shown.Sequence, shown.Type = d.Sequence, e.HandedType()
	if e.Direction == ledger.Inbound {
		body := payloads[ledger.PayloadID{Owner: e.ID, Kind: ledger.BodyPayload}]
		if shown.Body = []byte(body); json.Valid(shown.Body) {
			shown.Data = ledger.Raw(body)
		}
		return shown, 2 * len(body)
	}
	if e.Operation.IsZero() {
		data := payloads[ledger.PayloadID{Owner: e.ID, Kind: ledger.DataPayload}]
		shown.Data = ledger.Raw(data)
		return shown, len(data)
	}
	metadata := payloads[ledger.PayloadID{Owner: e.Operation, Kind: ledger.MetadataPayload}]
	result := payloads[ledger.PayloadID{Owner: e.Result, Kind: ledger.ResultPayload}]
	body, err := ledger.Render(e, d.Sequence, metadata, result)
	if err == nil && len(body) > maxOutbound {
		result = `{"href":"/v1/operations/` + shown.OperationID + `"}`
	}
	if data, err := e.Data(metadata, result); err == nil {
		shown.Data = data
	}
	return shown, min(len(body), maxOutbound)
}
