package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/upstream"
)

// listSize is how many entries a page of the provider's own list has.
const listSize = 10

// list is a page of what the provider lists: all of its tasks in the order of
// their names, unless a script says otherwise.
func (p *provider) list(q url.Values) answer {
	p.mu.Lock()
	p.lists = append(p.lists, time.Now())
	n, script := len(p.lists), p.listing
	var tasks []string
	for task := range p.says {
		tasks = append(tasks, task)
	}
	slices.Sort(tasks)
	from, _ := strconv.Atoi(q.Get("after"))
	body := map[string]any{"next": nil}
	if from+listSize < len(tasks) {
		body["next"] = strconv.Itoa(from + listSize)
	}
	items := []map[string]string{}
	for _, task := range tasks[from:min(from+listSize, len(tasks))] {
		items = append(items, map[string]string{"task": task, "state": p.says[task].state, "updated_at": time.Now().UTC().Format(time.RFC3339)})
	}
	p.mu.Unlock()
	if script != nil {
		if a := script(n, q); a != nil {
			return *a
		}
	}
	body["items"] = items
	return answer{status: http.StatusOK, body: body}
}

// listed is how often the provider was asked for its list, and when.
func (p *provider) listed() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lists)
}

// withList has the upstream described as the preset sim, but with another list.
func withList(list string) settings {
	return func(_ *config.Config, up *config.Upstream) {
		text := string(upstream.PresetText("sim"))
		before, rest, _ := strings.Cut(text, "list:\n")
		_, after, _ := strings.Cut(rest, "\n\n")
		up.Preset, up.Description = "", before+"list: "+list+"\n\n"+after
	}
}

// walked is a whole walk through a source's list.
type walked struct {
	pages, listed, matched, repeated int
	// findings are "finding reason task event read" of each.
	findings   []string
	operations []string
}

// walk holds the whole list of a source against the ledger, page by page; between
// is called between two pages.
func (w *world) walk(source, since string, fetch bool, between ...func()) (all walked) {
	w.Helper()
	after := ""
	for {
		body := map[string]any{"fetch": fetch}
		if after != "" {
			body["after"] = after
		}
		if since != "" {
			body["since"] = since
		}
		r := w.want(http.StatusOK, w.call(http.MethodPost, "/v1/sources/"+source+"/reconcile", body))
		all.pages++
		for name, sum := range map[string]*int{"listed": &all.listed, "matched": &all.matched, "repeated": &all.repeated} {
			n, err := strconv.Atoi(r.at(name))
			if err != nil {
				w.Fatal(err)
			}
			*sum += n
		}
		for _, f := range r.items() {
			all.findings = append(all.findings, strings.Join(strings.Fields(fmt.Sprint(f.at("finding"), " ", f.at("reason"), " ", f.at("task_id"), " ", f.at("event_id"), " ", f.at("read"))), " "))
		}
		ops, _ := r.fields["operations"].([]any)
		for _, op := range ops {
			all.operations = append(all.operations, fmt.Sprint(op))
		}
		if after = r.at("next"); after == "" {
			return all
		}
		if all.pages > 200 {
			w.Fatal("the walk does not end")
		}
		for _, f := range between {
			f()
		}
	}
}
