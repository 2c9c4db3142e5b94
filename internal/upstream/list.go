package upstream

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/listing"
)

// listTimeout is the most that a page may take: whoever asks for it waits.
const listTimeout = 15 * time.Second

// List is the provider's list of its tasks, or of what it sent; false if it has
// none.
func (u Upstream) List() (listing.List, bool) {
	if u.spec.List == nil {
		return listing.List{}, false
	}
	return listing.List{
		Spec: u.spec.List.listing(), Envelope: u.spec.Envelope.Code, Timeout: min(u.settings.Timeout, listTimeout),
		State: func(word string) pawl.State { return u.spec.States[word] },
		Request: func(ctx context.Context, page url.Values) (*http.Request, error) {
			query := make(url.Values, len(page)+len(u.spec.List.Query))
			for name, value := range u.spec.List.Query {
				query.Set(name, value)
			}
			maps.Copy(query, page)
			req, err := u.request(ctx, Call{Method: http.MethodGet, Path: u.spec.List.Path}, values{}, nil)
			if err == nil {
				req.URL.RawQuery = query.Encode()
			}
			return req, err
		},
	}, true
}

func (l ListCall) listing() config.Listing {
	return config.Listing{Items: l.Items, Fields: l.Fields, Paging: l.Paging}
}

// list checks the call, whose entries must name the task: without it nothing
// finds an operation.
func (c *checker) list(s Spec) {
	l := s.List
	if l == nil {
		return
	}
	c.request("list", Call{Method: http.MethodGet, Path: l.Path})
	if err := listing.Check(l.listing()); err != nil {
		c.that(false, "list", err.Error())
	}
	c.that(l.Fields.Task != "", "list.fields.task", "is missing")
	// The key of an event must be what the list calls it.
	named := s.Callback != nil && len(s.Callback.Event.From) == 1
	c.that(l.Fields.Event == "" || named, "list.fields.event", "needs callback.event.from with the one place of the event's id")
	for name := range l.Query {
		c.that(name != "" && name != l.Paging.Param, "list.query", "a parameter must be named, and not be that of the pages")
	}
}
