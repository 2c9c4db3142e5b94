package console

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// overviewView is the health of what the key may see.
type overviewView struct {
	// Findings are what is wrong, each with where to look; none is the good news.
	Findings []finding
	Tiles    []tile
	Charts   []chart
	Reviews  []counted
	// Upstreams are told with what was called there in the last hour, Endpoints
	// are those that are not delivered to.
	Upstreams []upstreamHealth
	Endpoints []endpointHealth
	// Calm is what is not concerned by what is wrong.
	Calm []string
	// Installation says that the figures are those of this node, since then.
	Installation bool
	Since        time.Time
	// Recent are the newest operations of a key that sees its tenant alone.
	Recent []ledger.OperationJSON
}

type finding struct {
	Text, Link string
	// Bad is what cannot wait.
	Bad bool
}

// tile is one figure; Kind is "good", "warn", "bad" or nothing.
type tile struct{ ID, Name, Value, Note, Link, Kind string }

// counted is a word, how many there are, and where they are.
type counted struct {
	Word  string
	Count string
	Link  string
}

// chart is a few series over the last hour, as text for the script that draws
// them, and what they came to last, for those who read without it.
type chart struct {
	ID, Name, Unit string
	Data           string
	Last           []counted
}

// overview shows whether it is healthy. Its figures are those of the metrics, so
// that no table is counted for them; a key that sees one tenant alone gets that
// tenant's, from the beginnings of its lists.
func (v *visit) overview() error {
	out := overviewView{}
	var ups list[upstreamItem]
	if err := v.get("/v1/upstreams", url.Values{"page_size": {"200"}}, &ups); err != nil {
		return err
	}
	for _, u := range ups.Items {
		out.Upstreams = append(out.Upstreams, upstreamHealth{upstreamItem: u})
		for _, p := range u.Paused {
			out.find(false, "Upstream "+u.Name+": "+p.Work+" is paused, "+p.Reason, "/console/upstreams")
		}
		if u.Removed {
			out.find(true, "Upstream "+u.Name+" is not configured any more, and operations wait for it", "/console/upstreams")
		}
	}
	if v.may(ledger.ScopeAdmin) && v.o.Metrics != nil {
		out.Installation = true
		out.Since = v.trend.begun
		if err := v.installationFigures(&out); err != nil {
			return err
		}
	} else if err := v.tenantFigures(&out); err != nil {
		return err
	}
	slices.SortStableFunc(out.Findings, func(a, b finding) int {
		switch {
		case a.Bad == b.Bad:
			return 0
		case a.Bad:
			return -1
		}
		return 1
	})
	return v.showLive(http.StatusOK, "overview", "Overview", livePath, out)
}

func (o *overviewView) find(bad bool, text, link string) {
	o.Findings = append(o.Findings, finding{text, link, bad})
}

// atMost is a count that was not made beyond a page.
func atMost(n int, more bool) string {
	if more {
		return itoa(int64(n)) + "+"
	}
	return itoa(int64(n))
}

// tenantFigures are those of one tenant, from one page of each list.
func (v *visit) tenantFigures(out *overviewView) error {
	page := func(more url.Values) url.Values {
		more.Set("page_size", "200")
		return more
	}
	var reviews list[reviewItem]
	if err := v.get("/v1/reviews", page(url.Values{}), &reviews); err != nil {
		return err
	}
	var dead list[deliveryItem]
	if err := v.get("/v1/deliveries", page(url.Values{"state": {"dead"}}), &dead); err != nil {
		return err
	}
	if err := v.endpointsHealth(out, dead.Items); err != nil {
		return err
	}
	var open list[ledger.OperationJSON]
	if err := v.get("/v1/operations", page(url.Values{"unfinished": {"true"}}), &open); err != nil {
		return err
	}
	var recent list[ledger.OperationJSON]
	if err := v.get("/v1/operations", url.Values{"page_size": {"10"}}, &recent); err != nil {
		return err
	}
	out.Recent = recent.Items
	by := make(map[string]int)
	for _, r := range reviews.Items {
		by[r.Reason]++
	}
	for _, word := range reasonWords() {
		if by[word] > 0 {
			out.Reviews = append(out.Reviews, counted{word, itoa(int64(by[word])), "/console/reviews?reason=" + word})
		}
	}
	unfinished := tile{ID: "unfinished", Name: "Unfinished operations", Value: atMost(len(open.Items), open.Next != ""), Link: "/console/operations?unfinished=true"}
	if n := len(open.Items); n > 0 && open.Next == "" {
		unfinished.Note = "oldest " + ago(open.Items[n-1].CreatedAt)
	}
	out.Tiles = append(out.Tiles, unfinished,
		out.countTile("reviews", "Open reviews", atMost(len(reviews.Items), reviews.Next != ""), len(reviews.Items), "/console/reviews"),
		out.countTile("dead", "Dead letters", atMost(len(dead.Items), dead.Next != ""), len(dead.Items), "/console/deliveries?state=dead"))
	return nil
}

// countTile is a count that should be 0, and a finding where it is not.
func (o *overviewView) countTile(id, name, value string, n int, link string) tile {
	t := tile{ID: id, Name: name, Value: value, Link: link, Kind: "good"}
	if n > 0 {
		t.Kind = "warn"
		word := strings.ToLower(name)
		if value == "1" {
			word = strings.TrimSuffix(word, "s")
		}
		o.find(false, value+" "+word, link)
	}
	return t
}

func reasonWords() (words []string) {
	for r := pawl.ReviewUnconfirmed; r <= pawl.ReviewBodyDiffers; r++ {
		words = append(words, r.String())
	}
	return words
}

// installationFigures are those of the whole installation. Lists are asked only
// for what the metrics say is there.
func (v *visit) installationFigures(out *overviewView) error {
	kept := v.trend.since(measure(v.o.Metrics, time.Now()))
	now := kept[len(kept)-1]
	if err := v.upstreamsHealth(out, kept); err != nil {
		return err
	}
	var dead list[deliveryItem]
	if now.values["pawl_deliveries_dead"] > 0 {
		if err := v.get("/v1/deliveries", url.Values{"state": {"dead"}, "page_size": {"200"}}, &dead); err != nil {
			return err
		}
	}
	if len(dead.Items) > 0 || now.values[key("pawl_queue_depth", "delivery")] > 0 {
		if err := v.endpointsHealth(out, dead.Items); err != nil {
			return err
		}
	}
	out.installation(kept)
	return nil
}

// installation are the figures of this node's metrics.
func (o *overviewView) installation(kept []measured) {
	first, now := kept[0], kept[len(kept)-1]
	o.unfinished(now)
	o.confirmed(first, now)
	o.arrivals(first, now)
	o.sent(first, now)
	var reviews float64
	for _, word := range reasonWords() {
		if n := now.values[key("pawl_reviews_open", word)]; n > 0 {
			reviews += n
			o.Reviews = append(o.Reviews, counted{word, number(n), "/console/reviews?reason=" + word})
		}
	}
	dead := now.values["pawl_deliveries_dead"]
	o.Tiles = append(o.Tiles,
		o.countTile("reviews", "Open reviews", number(reviews), int(reviews), "/console/reviews"),
		o.countTile("dead", "Dead letters", number(dead), int(dead), "/console/deliveries?state=dead"))
	if now.values["pawl_intake_closed"] > 0 {
		o.find(true, "Nothing new is taken in: the disk is nearly full", "")
	}
	if n := rise(first, now, "pawl_http_panics_total"); n > 0 {
		o.find(true, many(int(n), "request", "requests")+" failed by a fault of ours in the last hour; the log says where", "")
	}
	o.charts(kept)
}

func (o *overviewView) unfinished(now measured) {
	var all float64
	for _, word := range stateWords[:3] {
		all += now.values[key("pawl_operations", word)]
	}
	t := tile{ID: "oldest", Name: "Oldest unfinished", Value: "none", Note: number(all) + " unfinished", Link: "/console/operations?unfinished=true", Kind: "good"}
	if at := now.values["pawl_oldest_unfinished_operation_timestamp_seconds"]; at > 0 {
		t.Value, t.Kind = span(now.at.Sub(time.Unix(int64(at), 0))), ""
	}
	o.Tiles = append(o.Tiles, t)
	if n := now.values[key("pawl_operations", "unconfirmed")]; n > 0 {
		o.find(false, many(int(n), "operation is", "operations are")+" unconfirmed: a create may or may not have reached the provider", "/console/operations?state=unconfirmed")
	}
}

func (o *overviewView) confirmed(first, now measured) {
	t := tile{ID: "confirmed", Name: "Create to confirmed", Value: "–", Note: "none in the last hour"}
	if half := quantile(first, now, 0.5); !math.IsNaN(half) {
		t.Value = seconds(half)
		t.Note = "median; 95 % within " + seconds(quantile(first, now, 0.95))
	}
	o.Tiles = append(o.Tiles, t)
}

// arrivals are the shares of orphans and duplicates of what came in the last hour.
func (o *overviewView) arrivals(first, now measured) {
	by := verdicts(first, now)
	var all float64
	for _, n := range by {
		all += n
	}
	share := func(id, name, verdict string, warn float64) {
		t := tile{ID: id, Name: name, Value: "0 %", Note: "of " + number(all) + " events in the last hour", Link: "/console/events?verdict=" + verdict, Kind: "good"}
		if by[verdict] > 0 {
			part := by[verdict] / all
			t.Value, t.Kind = fmt.Sprintf("%.1f %%", 100*part), ""
			if part >= warn {
				t.Kind = "warn"
				o.find(false, t.Value+" of the last hour's events have the verdict "+verdict, t.Link)
			}
		}
		o.Tiles = append(o.Tiles, t)
	}
	share("orphans", "Orphans", "orphan", 0.02)
	share("duplicates", "Duplicates", "duplicate", 0.5)
	if n := by["refused"]; n > 0 && n >= all/10 {
		o.find(false, many(int(n), "callback was", "callbacks were")+" refused in the last hour: a wrong secret, or somebody tries", "/console/upstreams")
	}
}

// verdicts are how many events came with each between two measurements.
func verdicts(from, to measured) map[string]float64 {
	by := make(map[string]float64)
	for name := range to.values {
		if rest, ok := strings.CutPrefix(name, "pawl_inbound_events_total\x00"); ok {
			_, verdict, _ := strings.Cut(rest, "\x00")
			by[verdict] += rise(from, to, name)
		}
	}
	return by
}

var outcomeWords = []string{"delivered", "retried", "dead", "skipped"}

// sent are the deliveries by outcome of the last hour.
func (o *overviewView) sent(first, now measured) {
	t := tile{ID: "deliveries", Name: "Deliveries in the last hour", Link: "/console/deliveries", Kind: "good"}
	var notes []string
	for _, word := range outcomeWords {
		n := rise(first, now, key("pawl_deliveries_total", word))
		if word == "delivered" {
			t.Value = number(n)
			continue
		}
		notes = append(notes, number(n)+" "+word)
		if n > 0 {
			t.Kind = ""
		}
	}
	t.Note = strings.Join(notes, ", ")
	o.Tiles = append(o.Tiles, t)
}

// charts are the last hour minute by minute.
func (o *overviewView) charts(kept []measured) {
	minutes := perMinute(kept)
	if len(minutes) < 3 {
		return
	}
	draw := func(id, name, unit string, names []string, value func(from, to measured, name string) float64) {
		c := chart{ID: id, Name: name, Unit: unit}
		series := make([][]*float64, len(names)+1)
		for i := 1; i < len(minutes); i++ {
			at := float64(minutes[i].at.Unix())
			series[0] = append(series[0], &at)
			for j, word := range names {
				y := value(minutes[i-1], minutes[i], word)
				if math.IsNaN(y) {
					series[j+1] = append(series[j+1], nil)
					continue
				}
				series[j+1] = append(series[j+1], &y)
			}
		}
		for j, word := range names {
			last := "–"
			if y := series[j+1][len(series[j+1])-1]; y != nil {
				last = number(*y)
			}
			c.Last = append(c.Last, counted{Word: word, Count: last})
		}
		text, err := json.Marshal(map[string]any{"names": names, "series": series})
		if err != nil {
			panic(err) // Only numbers and words are in it.
		}
		c.Data = string(text)
		o.Charts = append(o.Charts, c)
	}
	draw("events", "Events", "a minute", []string{"applied", "duplicate", "stale", "orphan", "refused"}, func(from, to measured, word string) float64 { return verdicts(from, to)[word] })
	draw("deliveries", "Deliveries", "a minute", outcomeWords[:3], func(from, to measured, word string) float64 {
		return rise(from, to, key("pawl_deliveries_total", word))
	})
	draw("confirmed", "Create to confirmed", "seconds", []string{"median", "95 %"}, func(from, to measured, word string) float64 {
		return quantile(from, to, map[string]float64{"median": 0.5, "95 %": 0.95}[word])
	})
	draw("unfinished", "Unfinished operations", "now", stateWords[:3], func(_, to measured, word string) float64 { return to.values[key("pawl_operations", word)] })
}

// perMinute is one measurement a minute, and the last one.
func perMinute(kept []measured) (out []measured) {
	const step = int(time.Minute / measureEvery)
	for i := (len(kept) - 1) % step; i < len(kept); i += step {
		out = append(out, kept[i])
	}
	return out
}

// number writes a count, or a value with one decimal where it is small.
func number(n float64) string {
	if n == math.Trunc(n) {
		return itoa(int64(n))
	}
	return fmt.Sprintf("%.1f", n)
}

// seconds writes seconds with the unit that suits them.
func seconds(s float64) string {
	if s < 10 {
		return fmt.Sprintf("%.1f s", s)
	}
	return span(time.Duration(s * float64(time.Second)))
}
