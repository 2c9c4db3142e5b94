package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// pauseItem says what stands still at an upstream, and why.
type pauseItem struct {
	Work   string     `json:"work"`
	Until  *pawl.Time `json:"until"`
	Reason string     `json:"reason"`
}

// upstreamItem is an upstream as the API shows it.
type upstreamItem struct {
	Name       string      `json:"name"`
	Removed    bool        `json:"removed"`
	Adapter    string      `json:"adapter"`
	Owner      string      `json:"owner"`
	Currency   string      `json:"currency"`
	Deadline   string      `json:"deadline"`
	Callbacks  bool        `json:"callbacks"`
	Reads      bool        `json:"reads"`
	Cancels    bool        `json:"cancels"`
	Idempotent bool        `json:"idempotent"`
	Models     []modelItem `json:"models"`
	Limits     limitsItem  `json:"limits"`
	Paused     []pauseItem `json:"paused"`
}

type modelItem struct {
	Name  string `json:"name"`
	Price string `json:"price"`
}

type limitsItem struct {
	Concurrency      int     `json:"concurrency"`
	CreatesPerSecond float64 `json:"creates_per_second"`
	ReadsPerSecond   float64 `json:"reads_per_second"`
	SubmitAttempts   int32   `json:"submit_attempts"`
}

// sourceItem is a source of inbound events as the API shows it.
type sourceItem struct {
	Name        string     `json:"name"`
	Kind        string     `json:"kind"`
	Scheme      string     `json:"scheme"`
	Trust       string     `json:"trust"`
	Orphans     string     `json:"orphans"`
	Owner       string     `json:"owner"`
	Tenant      string     `json:"tenant"`
	LastEventAt *pawl.Time `json:"last_event_at"`
	Parked      int64      `json:"parked"`
	Unknown     int64      `json:"unknown_types"`
	Counts      struct {
		Since    pawl.Time        `json:"since"`
		Verdicts map[string]int64 `json:"verdicts"`
		Unstored map[string]int64 `json:"unstored"`
	} `json:"counts"`
	Samples []sampleItem `json:"samples"`
}

// sampleItem is a request of which nothing is stored.
type sampleItem struct {
	At      pawl.Time `json:"at"`
	Reason  string    `json:"reason"`
	Status  int       `json:"status"`
	Headers []string  `json:"headers"`
	Absent  []string  `json:"absent"`
}

// Seen are the verdicts of what came, in the order of their words, none that is 0.
func (s sourceItem) Seen() (out []counted) { return inOrder(s.Counts.Verdicts) }

// Missed are the reasons of what was not stored, likewise.
func (s sourceItem) Missed() []counted { return inOrder(s.Counts.Unstored) }

func inOrder(by map[string]int64) (out []counted) {
	for word, n := range by {
		if n > 0 {
			out = append(out, counted{Word: word, Count: itoa(n)})
		}
	}
	slices.SortFunc(out, func(a, b counted) int { return strings.Compare(a.Word, b.Word) })
	return out
}

// upstreamsView are the upstreams with their pauses, and the sources with what
// came from them.
type upstreamsView struct {
	Upstreams []upstreamHealth
	Sources   []sourceItem
}

func (v *visit) upstreams() error {
	all := url.Values{"page_size": {"200"}}
	var ups list[upstreamItem]
	if err := v.get("/v1/upstreams", all, &ups); err != nil {
		return err
	}
	var sources list[sourceItem]
	if err := v.get("/v1/sources", all, &sources); err != nil {
		return err
	}
	out := upstreamsView{Sources: sources.Items}
	for _, u := range ups.Items {
		one := upstreamHealth{upstreamItem: u}
		if v.may(ledger.ScopeAdmin) && v.o.Metrics != nil {
			one.judge(v.trend.since(measure(v.o.Metrics, time.Now())))
		}
		out.Upstreams = append(out.Upstreams, one)
	}
	return v.showLive(http.StatusOK, "upstreams", "Upstreams and sources", livePath, out)
}
