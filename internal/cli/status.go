package cli

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// statusCmd tells in five seconds how a running server is.
type statusCmd struct{}

// Help says what the exit status means.
func (statusCmd) Help() string {
	return `Shows what the console's overview shows. Its first lines say what needs a person: a removed or paused upstream, one whose calls mostly fail, unconfirmed operations, open reviews, dead letters and the endpoints that have them, a silent node, a full disk, requests that failed by a fault of the program, too many orphans, duplicates or refused callbacks. If there is any of these the exit status is 1, else 0; 3 if the server does not answer. What is open is of the whole ledger; what is counted over time is of the node that answers, over its last hour. Needs a key with scope admin.

"pawl doctor", on the machine of a node, looks at what is around it.

` + examples(`pawl status`, `pawl status --json`, `pawl status --server https://pawl.example.com || page-somebody`)
}

// statusAnswer is what the text shows of the API's answer.
type statusAnswer struct {
	Needs []struct {
		Text   string
		Urgent bool
	}
	Since      time.Time
	Unfinished map[string]int64
	Oldest     *time.Time `json:"oldest_unfinished_at"`
	Confirmed  *struct {
		Median float64 `json:"median_seconds"`
		P95    float64 `json:"p95_seconds"`
	} `json:"create_to_confirmed"`
	Events     map[string]int64
	Orphans    float64 `json:"orphan_share"`
	Duplicates float64 `json:"duplicate_share"`
	Deliveries map[string]int64
	Waiting    int64 `json:"deliveries_waiting"`
	Dead       int64 `json:"dead_letters"`
	Disabled   int64 `json:"endpoints_disabled"`
	Reviews    map[string]int64
	Upstreams  []struct {
		Name          string
		Removed       bool
		Paused        []struct{ Work, Reason string }
		Creates       int64
		CreatesFailed int64 `json:"creates_failed"`
		Reads         int64
		ReadsFailed   int64 `json:"reads_failed"`
	}
	Nodes []struct{ Host, State, Version string }
}

func (statusCmd) Run(s *session) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	a, err := c.call(s.ctx, http.MethodGet, "/v1/status", nil, nil)
	if err != nil {
		return err
	}
	var got statusAnswer
	if err := decode(a.body, &got); err != nil {
		return err
	}
	if s.flags.JSON {
		err = s.printJSON(a.body)
	} else {
		err = s.print(got.text(s.Now()))
	}
	if err == nil && len(got.Needs) > 0 {
		err = errShown
	}
	return err
}

func (a statusAnswer) text(now time.Time) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-20s "+format+"\n", append([]any{name}, args...)...)
	}
	for _, n := range a.Needs {
		mark := "!"
		if n.Urgent {
			mark = "!!"
		}
		fmt.Fprintf(&b, "%-2s %s\n", mark, plain(n.Text))
	}
	if len(a.Needs) == 0 {
		b.WriteString("Nothing needs you.\n")
	}
	b.WriteString("\n")
	if a.Oldest == nil {
		line("oldest unfinished", "none")
	} else {
		line("oldest unfinished", "%s old; %s", now.Sub(*a.Oldest).Round(time.Second), counts(a.Unfinished))
	}
	if a.Confirmed != nil {
		line("create to confirmed", "median %.1f s, 95 %% within %.1f s", a.Confirmed.Median, a.Confirmed.P95)
	}
	line("events", "%s; orphans %.1f %%, duplicates %.1f %%", counts(a.Events), 100*a.Orphans, 100*a.Duplicates)
	line("deliveries", "%s; %d waiting, %d dead letters, %d endpoints disabled", counts(a.Deliveries), a.Waiting, a.Dead, a.Disabled)
	line("open reviews", "%s", counts(a.Reviews))
	for _, u := range a.Upstreams {
		state := ""
		if u.Removed {
			state = "; not configured any more"
		}
		for _, p := range u.Paused {
			state += "; " + p.Work + " paused: " + p.Reason
		}
		line("upstream "+plain(u.Name), "%d creates, %d failed; %d reads, %d failed%s", u.Creates, u.CreatesFailed, u.Reads, u.ReadsFailed, plain(state))
	}
	for _, n := range a.Nodes {
		line("node "+plain(n.Host), "%s, version %s", plain(n.State), plain(firstOf(n.Version, "unknown")))
	}
	line("counted since", "%s", a.Since.UTC().Format(time.RFC3339))
	return b.String()
}

// counts are those that are not 0, by their words.
func counts(by map[string]int64) string {
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(by)) {
		if by[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[word], plain(word)))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
