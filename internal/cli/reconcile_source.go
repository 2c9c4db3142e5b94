package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

// twoSidedPage is what the server says of one page of a source's list.
type twoSidedPage struct {
	Lists      string            `json:"lists"`
	Listed     int               `json:"listed"`
	Matched    int               `json:"matched"`
	Repeated   int               `json:"repeated"`
	Unreadable int               `json:"unreadable"`
	Items      []twoSidedFinding `json:"items"`
	Operations []string          `json:"operations"`
	Next       string            `json:"next"`
}

// twoSidedFinding is one difference between the two sides.
type twoSidedFinding struct {
	Finding   string `json:"finding"`
	Reason    string `json:"reason,omitempty"`
	Task      string `json:"task_id,omitempty"`
	Event     string `json:"event_id,omitempty"`
	Word      string `json:"upstream_state,omitempty"`
	At        string `json:"at,omitempty"`
	Operation string `json:"operation_id,omitempty"`
	State     string `json:"state,omitempty"`
	Read      string `json:"read,omitempty"`
}

// twoSidedReport is what a comparison ends with.
type twoSidedReport struct {
	Source string `json:"source"`
	Since  string `json:"since,omitempty"`
	// Complete says that the list was read to its end, Failure why it was not.
	Complete   bool   `json:"complete"`
	Failure    string `json:"failure,omitempty"`
	Pages      int    `json:"pages"`
	Listed     int    `json:"listed"`
	Matched    int    `json:"matched"`
	Repeated   int    `json:"repeated"`
	Unreadable int    `json:"unreadable"`
	// Checked are the operations of the ledger that were looked for in the list.
	Checked     int               `json:"checked"`
	Missing     []twoSidedFinding `json:"missing"`
	ForeignTask []twoSidedFinding `json:"foreign_task"`
	TaskMissing []twoSidedFinding `json:"task_missing"`

	tasks bool
	// began is when the walk began by the server's clock, to the second before.
	began time.Time
	seen  map[string]bool // operations that are in the list
	told  map[string]bool // findings, of which a list may hold several tries
}

// twoSided compares a source's list with the ledger.
func (c *reconcileCmd) twoSided(s *session) error {
	switch {
	case c.Source == "":
		return usage("--since and --fetch go with --source")
	case c.Upstream != "" || c.DryRun:
		return usage("--source goes with neither --upstream nor --dry-run: without --fetch it changes nothing")
	case c.Pages < 1:
		return usage("--pages must be at least 1")
	}
	since, err := moment("--since", c.Since, s.Now())
	if err != nil {
		return err
	}
	client, err := s.connect()
	if err != nil {
		return err
	}
	report := &twoSidedReport{
		Source: c.Source, Since: since, Missing: []twoSidedFinding{}, ForeignTask: []twoSidedFinding{}, TaskMissing: []twoSidedFinding{},
		seen: map[string]bool{}, told: map[string]bool{},
	}
	err = c.walk(s, client, report)
	if err == nil && report.Complete && report.tasks {
		err = c.ours(s, client, report)
	}
	if err != nil {
		if report.Pages == 0 {
			return err // Nothing is known yet: no report.
		}
		report.Complete, report.Failure = false, err.Error()
	}
	return report.print(s)
}

// walk reads the source's list, page by page.
func (c *reconcileCmd) walk(s *session, client *client, report *twoSidedReport) error {
	line := &twoSidedLine{s: s}
	defer line.clear()
	query := url.Values{}
	if c.Tenant != "" {
		query.Set("tenant", c.Tenant)
	}
	for after := ""; report.Pages < c.Pages; {
		body := map[string]any{"fetch": c.Fetch}
		for name, value := range map[string]string{"after": after, "since": report.Since} {
			if value != "" {
				body[name] = value
			}
		}
		text, err := encode(body)
		if err != nil {
			return err
		}
		page, header, err := s.page(client, "/v1/sources/"+id(c.Source)+"/reconcile", query, text)
		if err != nil {
			return err
		}
		if at, err := http.ParseTime(header.Get("Date")); err == nil && report.Pages == 0 {
			report.began = at
		}
		report.add(page)
		line.show(report)
		if after = page.Next; after == "" {
			report.Complete = true
			return nil
		}
	}
	report.Failure = fmt.Sprintf("the list has more than %d pages", c.Pages)
	return nil
}

// page asks for one page, again where the server wants it later.
func (s *session) page(client *client, path string, query url.Values, body []byte) (page twoSidedPage, header http.Header, err error) {
	wait := newBackoff(500*time.Millisecond, 10*time.Second)
	for try := 0; ; try++ {
		a, err := client.call(s.ctx, http.MethodPost, path, query, body)
		if err == nil {
			return page, a.header, decode(a.body, &page)
		}
		refused, _ := errors.AsType[*refusal](err)
		if refused == nil || refused.status != http.StatusServiceUnavailable && refused.status != http.StatusTooManyRequests || try >= 5 {
			return page, nil, err
		}
		if err := pause(s.ctx, wait.next(retryAfter(err))); err != nil {
			return page, nil, err
		}
	}
}

// add counts a page in. What several tries of one event come to is told once.
func (r *twoSidedReport) add(p twoSidedPage) {
	r.Pages++
	r.tasks = p.Lists == "tasks"
	r.Listed, r.Matched = r.Listed+p.Listed, r.Matched+p.Matched
	r.Repeated, r.Unreadable = r.Repeated+p.Repeated, r.Unreadable+p.Unreadable
	for _, op := range p.Operations {
		r.seen[op] = true
	}
	for _, f := range p.Items {
		key := strconv.Quote(f.Finding) + strconv.Quote(f.Task) + strconv.Quote(f.Event)
		if r.told[key] {
			continue
		}
		r.told[key] = true
		if f.Finding == "foreign_task" {
			r.ForeignTask = append(r.ForeignTask, f)
		} else {
			r.Missing = append(r.Missing, f)
		}
	}
}

// ours looks for the upstream's operations that the whole list lacks: those that
// had a task when the walk began, and none older than the list was read.
func (c *reconcileCmd) ours(s *session, client *client, report *twoSidedReport) error {
	query := url.Values{"upstream": {c.Source}, "page_size": {"200"}}
	began := pawl.TimeOf(report.began).String()
	if c.Tenant != "" {
		query.Set("tenant", c.Tenant)
	}
	for {
		a, err := s.patiently(client, http.MethodGet, operations, query)
		if err != nil {
			return err
		}
		var p struct {
			Items []struct {
				candidate
				Submitted string `json:"submitted_at"`
			} `json:"items"`
			Next string `json:"next_page_token"`
		}
		if err := decode(a.body, &p); err != nil {
			return err
		}
		for _, op := range p.Items {
			switch {
			case report.Since != "" && op.Created < report.Since:
				return nil
			case op.Task == "" || op.Submitted >= began:
				continue // The provider did not have it yet when the walk began.
			}
			report.Checked++
			if !report.seen[op.ID] {
				report.TaskMissing = append(report.TaskMissing, twoSidedFinding{Finding: "task_missing", Task: op.Task, Operation: op.ID, State: op.State.String(), At: op.Created})
			}
		}
		if p.Next == "" {
			return nil
		}
		query.Set("page_token", p.Next)
	}
}

// print prints the report; something that is missing on either side is bad news, and
// so is what nobody can tell of.
func (r *twoSidedReport) print(s *session) error {
	for _, all := range [...][]twoSidedFinding{r.Missing, r.ForeignTask, r.TaskMissing} {
		slices.SortStableFunc(all, func(a, b twoSidedFinding) int {
			return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Event, b.Event))
		})
	}
	text, err := encode(r)
	if err != nil {
		return err
	}
	if s.flags.JSON {
		err = s.printJSON(text)
	} else {
		err = s.print(r.text())
	}
	if err != nil {
		return err
	}
	if r.Failure != "" {
		s.say("the list was not compared to its end: %s", plain(r.Failure))
	}
	if r.Unreadable > 0 {
		s.say("entries of the list without a usable id, which were not compared: %d; see whether the description names the right fields", r.Unreadable)
	}
	if len(r.Missing)+len(r.TaskMissing)+r.Unreadable > 0 || !r.Complete {
		return errShown
	}
	return nil
}

func (r *twoSidedReport) text() string {
	var out strings.Builder
	for _, all := range [...][]twoSidedFinding{r.Missing, r.ForeignTask, r.TaskMissing} {
		for _, f := range all {
			words := []string{f.Finding, f.Task, f.Event, f.Operation, f.State, f.Reason}
			if f.Word != "" {
				words = append(words, "listed as "+f.Word)
			}
			if f.Read != "" {
				words = append(words, "read "+f.Read)
			}
			words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
			fmt.Fprintln(&out, plain(strings.Join(words, "  ")))
		}
	}
	fmt.Fprintf(&out, "%d listed on %d pages: %d matched, %d missing, %d foreign; %d of ours looked for, %d not there\n",
		r.Listed, r.Pages, r.Matched, len(r.Missing), len(r.ForeignTask), r.Checked, len(r.TaskMissing))
	return out.String()
}

// twoSidedLine shows on a terminal how far the walk has come: nobody knows how
// long a list is.
type twoSidedLine struct {
	s     *session
	shown bool
}

func (l *twoSidedLine) show(r *twoSidedReport) {
	if !l.s.watched() {
		return
	}
	at := r.Pages % barWidth
	fmt.Fprintf(l.s.Stderr, "\r\x1b[K[%s#%s] page %d: %d listed, %d missing, %d foreign",
		strings.Repeat("-", at), strings.Repeat("-", barWidth-1-at), r.Pages, r.Listed, len(r.Missing), len(r.ForeignTask))
	l.shown = true
}

func (l *twoSidedLine) clear() {
	if l.shown {
		fmt.Fprint(l.s.Stderr, "\r\x1b[K")
		l.shown = false
	}
}
