package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
)

type reconcileCmd struct {
	Tenant    string        `help:"Of this tenant (keys with scope admin see all)." placeholder:"NAME"`
	Upstream  string        `help:"Of this upstream." placeholder:"NAME"`
	OlderThan time.Duration `help:"Only operations that were submitted so long ago or earlier." default:"10m"`
	Limit     int           `help:"How many operations to ask for at most, the oldest first." default:"1000"`
	Rate      float64       `help:"How many to ask for in a second at most; the server also keeps to each upstream's own limit." default:"5"`
	Wait      time.Duration `help:"How long to wait for the answer of one operation." default:"1m"`
	DryRun    bool          `help:"Only list them."`
	Source    string        `help:"Instead, hold what this source lists (its tasks, or the events that it sent) against the ledger." placeholder:"NAME"`
	Since     string        `help:"With --source: nothing older: a time (RFC 3339), or so long ago, such as 24h." placeholder:"TIME"`
	Fetch     bool          `help:"With --source: have every operation read of which something never arrived."`
	Pages     int           `help:"With --source: how many pages of the list to ask for at most." default:"1000"`
}

// Help teaches by example.
func (reconcileCmd) Help() string {
	return `Old operations that have not ended are looked up and their upstreams asked what became of them; what they answer counts like a callback. Nothing is ever created or sent again. Operations without a task at the provider are skipped. The report says how many were read, which changed and how, and which could not be read. Ctrl-C ends the asking and prints the report so far; what was asked for is still read by the server.

The exit status is 1 if an operation could not be read, or if it was interrupted.

With --source both sides are compared instead: the report names what never arrived (missing), tasks that nobody here created (foreign_task, which are never adopted), and operations whose task the provider's list of tasks lacks (task_missing). Nothing is changed unless --fetch asks for reads of what is missing. The exit status is 1 if something is missing on either side, or if the list was not read to its end; foreign tasks alone are no failure.

` + examples(`pawl reconcile`, `pawl reconcile --upstream studio --older-than 2h --limit 100`, `pawl reconcile --dry-run --json`, `pawl reconcile --source studio --since 24h`, `pawl reconcile --source studio --since 24h --fetch`)
}

// candidate is an operation that may be read.
type candidate struct {
	ID       string     `json:"id"`
	State    pawl.State `json:"state"`
	Version  int64      `json:"version"`
	Upstream string     `json:"upstream"`
	Task     string     `json:"task_id"`
	Next     string     `json:"next_check_at"`
	Created  string     `json:"created_at"`
}

// reconciled is what became of one.
type reconciled struct {
	ID       string     `json:"id"`
	Upstream string     `json:"upstream"`
	From     pawl.State `json:"from,omitzero"`
	To       pawl.State `json:"to,omitzero"`
	Reason   string     `json:"reason,omitempty"`
}

// reconcileReport is what pawl reconcile ends with.
type reconcileReport struct {
	Found       int          `json:"found"`
	Read        int          `json:"read"`
	Unchanged   int          `json:"unchanged"`
	Changed     []reconciled `json:"changed"`
	Failed      []reconciled `json:"failed"`
	Skipped     []reconciled `json:"skipped"`
	NotAsked    int          `json:"not_asked"`
	Interrupted bool         `json:"interrupted"`

	mu   sync.Mutex
	done int
}

// reconcileAtOnce is how many operations are waited for at a time.
const reconcileAtOnce = 8

func (c *reconcileCmd) Run(s *session) error {
	if c.Source != "" || c.Since != "" || c.Fetch {
		return c.twoSided(s)
	}
	if c.Limit < 1 || !(c.Rate > 0 && c.Rate <= 1000) || c.OlderThan < 0 || c.Wait <= 0 {
		return usage("--limit must be at least 1, --rate above 0 and at most 1000, --older-than not negative, --wait longer than 0")
	}
	client, err := s.connect()
	if err != nil {
		return err
	}
	found, err := c.find(s, client)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.list(s, found)
	}
	report := &reconcileReport{Found: len(found), Changed: []reconciled{}, Failed: []reconciled{}, Skipped: []reconciled{}}
	c.ask(s, client, found, report)
	return report.print(s)
}

// find lists the old unfinished operations and keeps the oldest.
func (c *reconcileCmd) find(s *session, client *client) ([]candidate, error) {
	query := url.Values{"unfinished": {"true"}, "page_size": {"200"}}
	query.Set("created_before", s.Now().Add(-c.OlderThan).UTC().Format(time.RFC3339Nano))
	for name, value := range map[string]string{"tenant": c.Tenant, "upstream": c.Upstream} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var found []candidate
	for {
		a, err := s.patiently(client, http.MethodGet, operations, query)
		if err != nil {
			return nil, err
		}
		var p struct {
			Items []candidate `json:"items"`
			Next  string      `json:"next_page_token"`
		}
		if err := decode(a.body, &p); err != nil {
			return nil, err
		}
		found = append(found, p.Items...)
		if len(found) > c.Limit {
			found = slices.Clone(found[len(found)-c.Limit:])
		}
		if p.Next == "" {
			slices.Reverse(found)
			return found, nil
		}
		query.Set("page_token", p.Next)
	}
}

func (c *reconcileCmd) list(s *session, found []candidate) error {
	rows := make([]map[string]any, len(found))
	for i, op := range found {
		rows[i] = map[string]any{"id": op.ID, "state": op.State.String(), "upstream": op.Upstream, "task_id": op.Task, "created_at": op.Created}
	}
	if s.flags.JSON {
		text, err := encode(map[string]any{"items": rows})
		if err != nil {
			return err
		}
		return s.printJSON(text)
	}
	if len(rows) == 0 {
		s.say("nothing found")
		return nil
	}
	return s.print(table(rows, "id", "state", "upstream", "task_id", "created_at"))
}

// ask asks for one operation after the other, at the rate, and waits for a few
// at a time.
func (c *reconcileCmd) ask(s *session, client *client, found []candidate, report *reconcileReport) {
	line := &progressLine{s: s, total: len(found)}
	defer line.clear()
	slots := make(chan struct{}, reconcileAtOnce)
	var all sync.WaitGroup
	pace := time.NewTicker(max(time.Duration(float64(time.Second)/c.Rate), time.Millisecond))
	defer pace.Stop()
	for i, op := range found {
		select {
		case slots <- struct{}{}:
		case <-s.ctx.Done():
		}
		if s.ctx.Err() != nil {
			report.NotAsked = len(found) - i
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			out, verdict := c.one(s, client, op)
			report.add(out, verdict, line)
		})
		select {
		case <-pace.C:
		case <-s.ctx.Done():
		}
	}
	all.Wait()
	report.Interrupted = s.ctx.Err() != nil
}

// The ways that one operation may go.
type reconcileVerdict uint8

const (
	readUnchanged reconcileVerdict = iota
	readChanged
	readFailed
	readSkipped
)

func (r *reconcileReport) add(out reconciled, verdict reconcileVerdict, line *progressLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	switch verdict {
	case readChanged:
		r.Read++
		r.Changed = append(r.Changed, out)
	case readUnchanged:
		r.Read++
		r.Unchanged++
	case readFailed:
		r.Failed = append(r.Failed, out)
	case readSkipped:
		r.Skipped = append(r.Skipped, out)
	}
	line.show(r.done, len(r.Changed), len(r.Failed))
}

// one has one operation read and says what became of it.
func (c *reconcileCmd) one(s *session, client *client, op candidate) (reconciled, reconcileVerdict) {
	out := reconciled{ID: op.ID, Upstream: op.Upstream}
	a, err := s.patiently(client, http.MethodPost, operations+"/"+id(op.ID)+"/reconcile", nil)
	if err != nil {
		return out.refused(err)
	}
	var asked candidate
	if err := json.Unmarshal(a.body, &asked); err != nil {
		out.Reason = "the answer is not the JSON that was expected"
		return out, readFailed
	}
	if asked.State.Terminal() {
		return out.compare(op, asked)
	}
	wait := newBackoff(200*time.Millisecond, 2*time.Second)
	for end := time.Now().Add(c.Wait); ; {
		if pause(s.ctx, wait.next(0)) != nil {
			out.Reason = "interrupted before the answer"
			return out, readFailed
		}
		now, err := c.see(s, client, op)
		switch {
		case err != nil:
			return out.refused(err)
		case now.State.Terminal() || now.Version != op.Version:
			return out.compare(op, now)
		// Due when it was asked for, or no time while it was being read already: a
		// later time is that of the read after.
		case now.Next > asked.Next:
			return c.read(s, client, out)
		case time.Now().After(end):
			out.Reason = fmt.Sprintf("not read within %s: the upstream's reads may be paused or at their limit", c.Wait)
			return out, readFailed
		}
	}
}

// see reads an operation by its task, which is not audited as reading the
// operation itself would be.
func (c *reconcileCmd) see(s *session, client *client, op candidate) (candidate, error) {
	query := url.Values{"upstream": {op.Upstream}, "task_id": {op.Task}}
	if c.Tenant != "" {
		query.Set("tenant", c.Tenant)
	}
	a, err := s.patiently(client, http.MethodGet, operations, query)
	if err != nil {
		return candidate{}, err
	}
	var p struct {
		Items []candidate `json:"items"`
	}
	if err := decode(a.body, &p); err != nil {
		return candidate{}, err
	}
	for _, item := range p.Items {
		if item.ID == op.ID {
			return item, nil
		}
	}
	return candidate{}, errors.New("the operation is gone")
}

// read tells a read that brought nothing new from one that failed, which the
// timeline keeps.
func (c *reconcileCmd) read(s *session, client *client, out reconciled) (reconciled, reconcileVerdict) {
	a, err := s.patiently(client, http.MethodGet, operations+"/"+id(out.ID)+"/timeline", nil)
	if err != nil {
		return out.refused(err)
	}
	var p struct {
		Items []struct {
			Kind    string `json:"kind"`
			Verdict string `json:"verdict"`
			Reason  string `json:"reason"`
		} `json:"items"`
	}
	if err := decode(a.body, &p); err != nil {
		out.Reason = err.Error()
		return out, readFailed
	}
	asked := -1
	for i, item := range p.Items {
		if item.Kind == "read_requested" {
			asked = i
		}
	}
	for _, item := range p.Items[asked+1:] {
		applied := item.Verdict == "applied" || item.Verdict == "stale"
		if asked >= 0 && item.Kind == "read" && !applied {
			out.Reason = item.Reason
			return out, readFailed
		}
	}
	return out, readUnchanged
}

// compare says what a read has changed.
func (r reconciled) compare(before, now candidate) (reconciled, reconcileVerdict) {
	if before.State == now.State && before.Version == now.Version {
		return r, readUnchanged
	}
	r.From, r.To = before.State, now.State
	return r, readChanged
}

// refused is an operation that the server would not have read.
func (r reconciled) refused(err error) (reconciled, reconcileVerdict) {
	refusal, ok := errors.AsType[*refusal](err)
	if !ok {
		r.Reason = err.Error()
		return r, readFailed
	}
	r.Reason = refusal.Reason
	switch refusal.status {
	case http.StatusConflict, http.StatusNotFound:
		return r, readSkipped
	}
	return r, readFailed
}

// print prints the report; only a whole one without failures is good news.
func (r *reconcileReport) print(s *session) error {
	byID := func(a, b reconciled) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(r.Changed, byID)
	slices.SortFunc(r.Failed, byID)
	slices.SortFunc(r.Skipped, byID)
	text, err := encode(r)
	if err != nil {
		return err
	}
	if s.flags.JSON {
		err = s.printJSON(text)
	} else {
		err = s.print(r.text())
	}
	switch {
	case err != nil:
		return err
	case r.Interrupted:
		s.say("interrupted: %d were not asked for", r.NotAsked)
		return errShown
	case len(r.Failed) > 0:
		return errShown
	}
	return nil
}

func (r *reconcileReport) text() string {
	var out strings.Builder
	for _, c := range r.Changed {
		fmt.Fprintf(&out, "changed  %s  %s -> %s\n", plain(c.ID), c.From, c.To)
	}
	for _, c := range r.Failed {
		fmt.Fprintf(&out, "failed   %s  %s\n", plain(c.ID), plain(c.Reason))
	}
	for _, c := range r.Skipped {
		fmt.Fprintf(&out, "skipped  %s  %s\n", plain(c.ID), plain(c.Reason))
	}
	fmt.Fprintf(&out, "%d found, %d read: %d changed, %d unchanged; %d failed, %d skipped\n",
		r.Found, r.Read, len(r.Changed), r.Unchanged, len(r.Failed), len(r.Skipped))
	return out.String()
}

// progressLine is a bar on a terminal that is written over.
type progressLine struct {
	s     *session
	total int
	shown bool
}

const barWidth = 30

func (l *progressLine) show(done, changed, failed int) {
	if !l.s.watched() || l.total == 0 {
		return
	}
	full := barWidth * done / l.total
	fmt.Fprintf(l.s.Stderr, "\r\x1b[K[%s%s] %s/%d asked, %d changed, %d failed", strings.Repeat("#", full), strings.Repeat("-", barWidth-full),
		strconv.Itoa(done), l.total, changed, failed)
	l.shown = true
}

func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(l.s.Stderr, "\r\x1b[K")
		l.shown = false
	}
}
