package sender

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/listing"
)

// listTimeout bounds a page of a list that names no bound.
const listTimeout = 10 * time.Second

// List is the source's list of what it has sent; false if it has none.
func (s Sender) List() (listing.List, bool) {
	l := s.settings.List
	if l == nil {
		return listing.List{}, false
	}
	return listing.List{
		Spec: l.Listing(), Timeout: cmp.Or(l.Timeout, listTimeout), State: func(string) pawl.State { return 0 },
		Request: func(ctx context.Context, page url.Values) (*http.Request, error) {
			at, err := url.Parse(l.URL)
			if err != nil {
				return nil, errList
			}
			query := at.Query()
			maps.Copy(query, page)
			at.RawQuery = query.Encode()
			r := (&http.Request{Method: http.MethodGet, URL: at, Header: http.Header{"Accept": {jsonType}}}).WithContext(ctx)
			authorize(r.Header, l.Key, l.Header, l.Format)
			return r, nil
		},
	}, true
}

var errList = &settingError{"list.url", "must be an absolute http or https URL without user and fragment"}

// checkList checks what the settings say of the list.
func (s Sender) checkList(l config.SourceList) error {
	at, err := url.Parse(l.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || at.Fragment != "" {
		return errList
	}
	if err := listing.Check(l.Listing()); err != nil {
		return &settingError{"list", err.Error()}
	}
	switch {
	case l.Fields.Event == "":
		return &settingError{"list.fields.event", "is missing; point to the event's id in an entry"}
	case s.places.event == digest:
		return &settingError{"list.fields.event", "cannot be compared: the source's events are known by a digest of their body; name their id with event"}
	case l.Fields.State != "":
		return &settingError{"list.fields.state", "must go: nothing behind a generic source has a state"}
	case l.Fields.Task != "":
		return &settingError{"list.fields.task", "must go: no task is behind a generic source"}
	}
	return nil
}

// ListEvery is the least time between two pages of the list.
func (s Sender) ListEvery() time.Duration {
	rate := 2.0
	if l := s.settings.List; l != nil && l.Rate > 0 {
		rate = l.Rate
	}
	return time.Duration(float64(time.Second) / rate)
}
