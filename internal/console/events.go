package console

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/pawlhq/pawl"
)

// verdictWords are the verdicts in their order, inboxWords the states of events
// of generic sources.
var (
	verdictWords = []string{"applied", "duplicate", "stale", "conflict", "orphan", "hint", "unknown_type", "unknown_state", "rejected"}
	inboxWords   = []string{"received", "waiting", "done", "review"}
)

// eventsView is the list of events under the filters of its address.
type eventsView struct {
	Query url.Values
	Items []storedItem
	Next  string
	// Directions, Verdicts and States are what may be asked for.
	Directions, Verdicts, States []string
}

// storedItem is one event as the API shows it.
type storedItem struct {
	eventItem
	Tenant      string            `json:"tenant"`
	OperationID string            `json:"operation_id"`
	State       string            `json:"state"`
	Owner       string            `json:"owner"`
	NextTryAt   *pawl.Time        `json:"next_try_at"`
	Reprocessed *rejudgment       `json:"reprocessed"`
	Test        bool              `json:"test"`
	Parked      bool              `json:"parked"`
	ReviewID    string            `json:"review_id"`
	Repeats     int64             `json:"repeats"`
	BodyDiffers bool              `json:"body_differs"`
	Data        json.RawMessage   `json:"data"`
	Body        []byte            `json:"body"`
	Headers     map[string]string `json:"headers"`
}

// rejudgment is what an event came to when it was judged anew.
type rejudgment struct {
	At      pawl.Time `json:"at"`
	Verdict string    `json:"verdict"`
	Reason  string    `json:"reason"`
	Actor   string    `json:"actor"`
}

// events lists events of both directions, newest first.
func (v *visit) events() error {
	query := v.filters("direction", "source", "verdict", "state", "task_id", "type", "operation", "from", "until")
	var found list[storedItem]
	if err := v.get("/v1/events", query, &found); err != nil {
		return err
	}
	return v.showLive(http.StatusOK, "events", "Events", newest(query), eventsView{v.r.URL.Query(), found.Items, found.link(v.r), []string{"inbound", "outbound"}, verdictWords, inboxWords})
}

// newest is where a list listens for changes: its first page alone does.
func newest(query url.Values) string {
	if query.Has("page_token") {
		return ""
	}
	return livePath
}

// eventView is one event and what was sent of it.
type eventView struct {
	Event      storedItem
	Deliveries []deliveryItem
	More       string
}

func (v *visit) event() error {
	id := v.r.PathValue("id")
	var out eventView
	if err := v.get("/v1/events/"+url.PathEscape(id), nil, &out.Event); err != nil {
		return err
	}
	var sent list[deliveryItem]
	if err := v.get("/v1/deliveries", url.Values{"event": {id}}, &sent); err != nil {
		return err
	}
	out.Deliveries = sent.Items
	if sent.Next != "" {
		out.More = "/console/deliveries?event=" + url.QueryEscape(id)
	}
	return v.showLive(http.StatusOK, "event", "Event "+short(id), livePath, out)
}

// header is one line of a request.
type header struct{ Name, Value string }

// rawView is an inbound event as it was received.
type rawView struct {
	ID      string
	Headers []header
	// Text is the body, or a dump of it where it is no text.
	Text   string
	Binary bool
	Size   int
	// Cut is set where there is more than is shown.
	Cut bool
}

// maxShown bounds what a page shows of a body, in bytes.
const maxShown = 256 << 10

// raw shows the bytes of an inbound event, which is audited.
func (v *visit) raw() error {
	id := v.r.PathValue("id")
	var got storedItem
	if err := v.do(call{method: http.MethodGet, path: "/v1/events/" + url.PathEscape(id), payloads: true}, &got); err != nil {
		return err
	}
	out := rawView{ID: id, Size: len(got.Body), Cut: len(got.Body) > maxShown}
	for _, name := range slices.Sorted(maps.Keys(got.Headers)) {
		out.Headers = append(out.Headers, header{name, got.Headers[name]})
	}
	body := got.Body[:min(len(got.Body), maxShown)]
	if out.Binary = !utf8.Valid(got.Body); out.Binary {
		out.Text = hex.Dump(body[:min(len(body), maxShown/8)])
		out.Cut = out.Cut || len(body) > maxShown/8
	} else {
		out.Text = string(body)
	}
	return v.show(http.StatusOK, "raw", "Received bytes", out)
}
