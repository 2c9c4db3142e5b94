package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlhq/pawl"
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
	asked := strings.TrimSpace(v.r.URL.Query().Get("q"))
	out := searchView{Asked: asked}
	if asked == "" {
		return v.show(http.StatusOK, "search", "Search", out)
	}
	if ours, err := v.ours(asked); err != nil {
		return err
	} else if ours {
		return v.redirect(to(asked))
	}
	seen := make(map[string]bool)
	for _, name := range [...]string{"task_id", "correlation_id", "request_id", "upstream_request_id"} {
		var found list[ledger.OperationJSON]
		if err := v.get("/v1/operations", url.Values{name: {asked}}, &found); err != nil {
			return err
		}
		for _, op := range found.Items {
			if !seen[op.ID] {
				seen[op.ID] = true
				out.Operations = append(out.Operations, op)
			}
		}
	}
	var events list[eventItem]
	if err := v.get("/v1/events", url.Values{"external_id": {asked}}, &events); err != nil {
		return err
	}
	out.Events = events.Items
	switch {
	case len(out.Operations) == 1 && len(out.Events) == 0:
		return v.redirect(to(out.Operations[0].ID))
	case len(out.Operations) == 0 && len(out.Events) == 1:
		return v.redirect(to(cmp.Or(out.Events[0].OperationID, out.Events[0].ID)))
	}
	status := http.StatusOK
	if len(out.Operations)+len(out.Events) == 0 {
		status = http.StatusNotFound
	}
	return v.show(status, "search", "Search", out)
}

// ours reports whether an id is one of our own that the visitor may see: others
// give ids that look like ours (evt_…), for their tasks and events too.
func (v *visit) ours(id string) (bool, error) {
	prefix, _, _ := strings.Cut(id, "_")
	if _, err := pawl.ParseID(prefix, id); err != nil || to(id) == "" {
		return false, nil
	}
	err := v.get("/v1/"+places[prefix]+"/"+id, nil, nil)
	if p, ok := err.(*problem); ok && p.Status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}
