package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/pawlhq/pawl/internal/ledger"
)

// searchView is what an id led to where that is not one page.
type searchView struct {
	Asked      string
	Operations []ledger.OperationJSON
	Events     []eventItem
}

// search leads from any id to its page: of an operation, event, delivery or
// review; else by a task, a correlation id, or the id that a provider gave a
// request or an event.
func (v *visit) search() error {
	given := v.r.URL.Query().Get("q")
	asked := strings.TrimSpace(given)
	out := searchView{Asked: asked}
	if asked == "" {
		return v.show(http.StatusOK, "search", "Search", out)
	}
	page, err := v.own(asked)
	if err != nil {
		return err
	}
	if page != "" {
		return v.redirect(page)
	}
	if err := out.find(v, asked); err != nil {
		return err
	}
	if given != asked && out.none() { // The spaces may be part of somebody's id.
		if err := out.find(v, given); err != nil {
			return err
		}
	}
	switch {
	case len(out.Operations) == 1 && len(out.Events) == 0:
		return v.redirect(to(out.Operations[0].ID))
	case len(out.Operations) == 0 && len(out.Events) == 1:
		return v.redirect(to(cmp.Or(out.Events[0].OperationID, out.Events[0].ID)))
	}
	status := http.StatusOK
	if out.none() {
		status = http.StatusNotFound
	}
	return v.show(status, "search", "Search", out)
}

// own is the page of an id of ours, whatever its case, alone or at the end of an
// address; empty for one that leads nowhere: the id of a task or an application may
// look like ours.
func (v *visit) own(asked string) (string, error) {
	if u, err := url.Parse(asked); err == nil {
		asked = path.Base(u.Path)
	}
	id := strings.ToLower(asked)
	place := placeOf(id)
	if place == "" {
		return "", nil
	}
	err := v.get("/v1/"+place+"/"+id, nil, nil)
	if p := (*problem)(nil); errors.As(err, &p) {
		if p.Status == http.StatusNotFound {
			return "", nil
		}
		err = nil // The page says it.
	}
	return to(id), err
}

// none reports whether nothing was found.
func (s *searchView) none() bool { return len(s.Operations)+len(s.Events) == 0 }

// find looks for an id of somebody else's, as it is.
func (s *searchView) find(v *visit, asked string) error {
	seen := make(map[string]bool)
	for _, name := range [...]string{"task_id", "correlation_id", "request_id", "upstream_request_id"} {
		var found list[ledger.OperationJSON]
		if err := v.get("/v1/operations", url.Values{name: {asked}}, &found); err != nil {
			return err
		}
		for _, op := range found.Items {
			if !seen[op.ID] {
				seen[op.ID] = true
				s.Operations = append(s.Operations, op)
			}
		}
	}
	var events list[eventItem]
	if err := v.get("/v1/events", url.Values{"external_id": {asked}}, &events); err != nil {
		return err
	}
	s.Events = events.Items
	return nil
}
