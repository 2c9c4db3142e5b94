package scale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// filters are the values that each parameter of each list is asked with: such as
// find much, little and nothing. A list or parameter that is not here is an
// error of [Site.Paths], so that none is forgotten.
var filters = map[string]map[string][]string{
	"/v1/operations": {
		"state": {"pending", "unconfirmed", "running", "succeeded", "failed", "canceled", "expired"}, "unfinished": {"true"},
		"upstream": {Studio, Closed, "nosuch"}, "task_id": {"task-30-1", "nosuch"}, "correlation_id": {"order-30-1", "nosuch"},
		"request_id": {"req_30-1", "nosuch"}, "upstream_request_id": {"theirs-30-1", "nosuch"}, "idempotency_key": {"nosuch"},
		"created_before": {"{old}", "2001-01-01T00:00:00Z"}, "metadata": {"order=o-30", "plan=nosuch", "nosuch=1"}, "tenant": {"acme", "tiny", "nosuch"},
	},
	"/v1/events": {
		"direction": {"inbound", "outbound"}, "source": {Studio, Shop, "nosuch"},
		"verdict": {"applied", "duplicate", "stale", "conflict", "orphan", "rejected", "unknown_state", "unknown_type"},
		"state":   {"received", "waiting", "done", "review"}, "task_id": {"task-30-1", "nosuch"}, "type": {"task.updated", "operation.settled", "nosuch"},
		"operation": {"{operations}"}, "external_id": {"end-40-1", "nosuch"}, "from": {"{old}", "2999-01-01T00:00:00Z"}, "until": {"{old}", "2001-01-01T00:00:00Z"},
		"endpoint": {"{endpoints}"}, "after": nil, "rendered": nil, "wait": nil, "tenant": {"acme", "tiny", "nosuch"},
	},
	"/v1/deliveries": {
		"state": {"pending", "delivering", "delivered", "dead", "skipped"}, "endpoint": {"{endpoints}"}, "event": {"{events}"}, "operation": {"{operations}"},
		"tenant": {"acme", "tiny", "nosuch"},
	},
	"/v1/reviews": {
		"open": {"false"}, "reason": {"conflict", "orphan", "dead_letter", "currency"}, "operation": {"{operations}"}, "overdue": {"true"},
		"tenant": {"acme", "tiny", "nosuch"},
	},
	"/v1/audit": {
		"actor": {"{keys}", "nosuch"}, "action": {"operation.input", "nosuch"}, "subject": {"{operations}", "nosuch"},
		"from": {"{old}", "2999-01-01T00:00:00Z"}, "until": {"{old}", "2001-01-01T00:00:00Z"}, "tenant": {"acme", "tiny", "nosuch"},
	},
	"/v1/endpoints":             {"kind": {"webhook", "callback"}, "tenant": {"acme", "nosuch"}},
	"/v1/accounts":              {"tenant": {"acme", "nosuch"}},
	"/v1/keys":                  {"tenant": {"acme", "nosuch"}},
	"/v1/replays":               {"tenant": {"acme", "nosuch"}},
	"/v1/tenants":               {},
	"/v1/nodes":                 {},
	"/v1/sources":               {},
	"/v1/upstreams":             {},
	"/v1/accounts/{id}/entries": {},
}

// together are filters that find little or nothing only together.
var together = []string{
	"/v1/operations?state=succeeded&upstream=" + Closed, "/v1/operations?state=expired&upstream=" + Studio, "/v1/operations?tenant=acme&state=canceled&upstream=" + Lab,
	"/v1/operations?tenant=acme&metadata.plan=nosuch", "/v1/operations?state=succeeded&upstream=" + Closed + "&metadata.plan=nosuch", "/v1/operations?unfinished=true&upstream=" + Lab + "&tenant=initech",
	"/v1/events?tenant=acme&source=" + Shop, "/v1/events?direction=inbound&type=nosuch&source=" + Studio, "/v1/events?tenant=acme&verdict=orphan",
	"/v1/events?tenant=globex&from={old}&type=nosuch",
	"/v1/deliveries?tenant=acme&state=dead", "/v1/deliveries?tenant=globex&state=pending", "/v1/deliveries?endpoint={endpoints}&state=skipped",
	"/v1/reviews?tenant=acme&reason=orphan&open=false", "/v1/audit?actor={keys}&action=nosuch", "/v1/audit?tenant=acme&action=operation.input&from={old}",
}

// alone are pages of the console that show no list of the API, and what else a
// node answers by looking at the ledger.
var alone = []string{
	"/console", "/console/search", "/console/search?q=nosuch", "/console/search?q=order-30-1", "/console/search?q=task-30-1", "/console/search?q=end-40-1",
	"/console/upstreams", "/console/operations/{operations}/input", "/console/events/{inbound}/raw", "/console/accounts/{accounts}?check=1",
	"/console/operations/{oldest}", "/v1/operations/{oldest}/timeline", "/metrics", "/readyz",
}

// unlisted are paths that need something which a filled ledger does not have.
var unlisted = []string{"/v1/artifacts/{id}", "/v1/erasures/{name}", "/v1/replays/{id}", "/v1/problems/{name}", "/v1/sources/{name}/missing"}

// shown are the lists that have pages of the same name in the console.
var shown = []string{"operations", "events", "deliveries", "reviews", "endpoints", "accounts", "keys", "audit", "replays", "nodes"}

// document is what is used of the API's description.
type document struct {
	Paths map[string]map[string]struct {
		Parameters []struct{ Name, In string }
	}
}

// Paths are all pages of the console and all that the API answers to GET: every
// list without a filter, with each of them, with some together, and its last
// page. No two are the same.
func (s *Site) Paths(ctx context.Context) ([]string, error) {
	w := walk{Site: s, ctx: ctx, known: make(map[string]string)}
	if err := w.examples(); err != nil {
		return nil, err
	}
	var d document
	if err := s.get(ctx, "/v1/openapi.json", &d); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		get, ok := d.Paths[path]["get"]
		if !ok || slices.Contains(unlisted, path) {
			continue
		}
		var names []string
		for _, p := range get.Parameters {
			if p.In == "query" {
				names = append(names, p.Name)
			}
		}
		if err := w.path(path, names); err != nil {
			return nil, err
		}
	}
	for _, path := range slices.Concat(together, alone) {
		w.add(path)
	}
	return w.paths, w.err
}

type walk struct {
	*Site
	ctx   context.Context
	known map[string]string
	paths []string
	err   error
}

// examples finds an id of each kind, and a moment near the beginning.
func (w *walk) examples() error {
	type item struct {
		ID string
		At string
	}
	var found struct{ Items []item }
	for _, list := range []string{"operations", "events", "deliveries", "reviews", "endpoints", "accounts", "keys"} {
		if err := w.get(w.ctx, "/v1/"+list+"?page_size=1&tenant=acme", &found); err != nil {
			return err
		}
		if len(found.Items) == 0 {
			return fmt.Errorf("there are no %s", list)
		}
		w.known[list] = found.Items[0].ID
	}
	if err := w.get(w.ctx, "/v1/events?page_size=1&source="+Studio, &found); err != nil {
		return err
	}
	w.known["inbound"], w.known["sources"], w.known["upstreams"] = found.Items[0].ID, Studio, Studio
	old := w.Filled.Add(-Period * 3 / 4).UTC().Format("2006-01-02T15:04:05Z")
	w.known["old"] = old
	if err := w.get(w.ctx, "/v1/operations?page_size=1&created_before="+old, &found); err != nil {
		return err
	}
	if len(found.Items) == 0 {
		return fmt.Errorf("there are no operations before %s", old)
	}
	w.known["oldest"] = found.Items[0].ID
	return nil
}

// path adds everything of one path of the API, whose parameters are these.
func (w *walk) path(path string, names []string) error {
	list := filters[path]
	_, whole, _ := strings.Cut(path, "/v1/")
	whole, _, _ = strings.Cut(whole, "/")
	base := strings.NewReplacer("{id}", "{"+whole+"}", "{name}", "{"+whole+"}").Replace(path)
	if w.fill(base) != base && strings.ContainsAny(w.fill(base), "{}") {
		return fmt.Errorf("internal/scale does not know what %s is about", path)
	}
	w.add(base)
	paged := slices.Contains(names, "page_token")
	if paged && list == nil {
		return fmt.Errorf("internal/scale does not know how to filter %s", path)
	}
	if paged {
		w.add(base + "?page_size=200")
		w.last(w.fill(base))
	}
	for _, name := range names {
		values, known := list[name]
		if paged && !known && !strings.HasPrefix(name, "page_") && name != "tenant" {
			return fmt.Errorf("internal/scale does not know what to ask %s for by %s", path, name)
		}
		for _, value := range values {
			query := url.QueryEscape(name) + "=" + value
			if name == "metadata" {
				query = "metadata." + value
			}
			if path == "/v1/events" && name == "endpoint" {
				query += "&after=0"
			}
			w.add(base + "?" + query)
		}
	}
	return nil
}

// pagesBack is how many pages are turned to get to a late one.
const pagesBack = 25

// last adds a page that is found by its token: the last one where the list is not
// long.
func (w *walk) last(path string) {
	token := ""
	for range pagesBack {
		var page struct {
			Next string `json:"next_page_token"`
		}
		asked := path + "?page_size=200"
		if token != "" {
			asked += "&page_token=" + token
		}
		if err := w.get(w.ctx, asked, &page); err != nil {
			w.err = err
			return
		}
		if page.Next == "" {
			break
		}
		token = page.Next
	}
	if token != "" {
		w.add(path + "?page_size=200&page_token=" + token)
	}
}

// fill puts examples in the place of their names.
func (w *walk) fill(path string) string {
	for name, value := range w.known {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	return path
}

// add adds a path, and the page of the console that shows the same.
func (w *walk) add(path string) {
	path = w.fill(path)
	if strings.ContainsAny(path, "{}") {
		w.err = errors.Join(w.err, fmt.Errorf("internal/scale has no example for %s", path))
	}
	if slices.Contains(w.paths, path) {
		return
	}
	w.paths = append(w.paths, path)
	rest, api := strings.CutPrefix(path, "/v1/")
	route, query, _ := strings.Cut(rest, "?")
	parts := strings.Split(route, "/")
	if api && len(parts) <= 2 && slices.Contains(shown, parts[0]) && !strings.Contains(query, "page_size") && !strings.Contains(query, "after=") && !strings.Contains(query, "request_id") {
		w.paths = append(w.paths, "/console/"+rest)
	}
}
