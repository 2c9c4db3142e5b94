package api

import (
	"encoding/json"
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// storedEvent is one stored event of either direction. Data is an outbound
// event's operation as of its version, or what its tenant gave it; body and
// headers are an inbound event as it was received.
type storedEvent struct {
	ID          string            `json:"id"`
	Tenant      string            `json:"tenant,omitempty"`
	Direction   string            `json:"direction" enum:"inbound,outbound"`
	Type        string            `json:"type,omitempty"`
	At          pawl.Time         `json:"at" format:"date-time"`
	OperationID string            `json:"operation_id,omitempty"`
	Version     int64             `json:"version,omitempty"`
	Source      string            `json:"source,omitempty"`
	TaskID      string            `json:"task_id,omitempty"`
	ExternalID  string            `json:"external_id,omitempty" doc:"The id that its sender, or the tenant that published it, gave it."`
	State       string            `json:"state,omitempty" enum:"received,waiting,done,review" doc:"How far an event of a generic source has come; left out for all others."`
	Owner       string            `json:"owner,omitempty" doc:"Who answers for the generic source that it came from."`
	NextTryAt   *pawl.Time        `json:"next_try_at,omitempty" format:"date-time" doc:"When its next delivery is due, or its next report overdue, while it is waiting."`
	Word        string            `json:"upstream_state,omitempty" doc:"The sender's word for the state."`
	Verdict     string            `json:"verdict,omitempty" doc:"What became of it at its receipt, or when its task was known."`
	Reason      string            `json:"reason,omitempty"`
	Reprocessed *rejudgment       `json:"reprocessed,omitempty" doc:"What it came to when it was judged anew."`
	Sequence    int64             `json:"sequence,omitempty" doc:"The position in the endpoint's stream; in a feed."`
	DeliveryID  string            `json:"delivery_id,omitempty" doc:"Of its delivery to the endpoint, to report it complete; in a feed."`
	Test        bool              `json:"test,omitempty" doc:"It only tries an endpoint: nothing has happened."`
	Removed     *pawl.Time        `json:"content_removed_at,omitempty" format:"date-time" doc:"When what it held was removed, by its age or by erasure: data, body and headers."`
	Parked      bool              `json:"parked,omitempty" doc:"It waits for its task to be known."`
	ReviewID    string            `json:"review_id,omitempty"`
	Repeats     *int64            `json:"repeats,omitempty" doc:"How often an inbound event came again under its key; shown of one event, not in lists."`
	BodyDiffers bool              `json:"body_differs,omitempty" doc:"One of these had another body."`
	Data        any               `json:"data,omitempty" doc:"The operation as of the event's version, or the data that was published."`
	Body        []byte            `json:"body,omitempty" doc:"The raw bytes in base64, for a key with the scope payloads; audited."`
	ContentType string            `json:"content_type,omitempty" doc:"In a feed, of a body that is no JSON: data is its Base64."`
	Withheld    bool              `json:"body_withheld,omitempty" doc:"In a feed: it has a content, which is for keys with the scope payloads alone."`
	Rendered    *renderedEvent    `json:"rendered,omitempty" doc:"In a feed, where it is asked for, in place of data and body: the event as it is sent."`
	Unsendable  string            `json:"unsendable,omitempty" doc:"In a feed, in place of rendered: why it cannot be sent."`
	Headers     map[string]string `json:"headers,omitempty" doc:"Without credentials, for a key with the scope payloads."`
}

func eventShape(e ledger.Event) storedEvent {
	shown := storedEvent{
		ID: e.ID.Text(pawl.PrefixEvent), Tenant: e.Tenant, Direction: directionWords[e.Direction], Type: e.Type, At: e.At,
		OperationID: e.Operation.Text(pawl.PrefixOperation), Version: e.Version, Source: e.Source, TaskID: e.Task,
		ExternalID: e.ExternalID, State: e.Inbox.String(), Word: e.Word, Verdict: e.Verdict.String(), Reason: e.Reason, Parked: e.Parked,
		ReviewID: e.Review.Text(pawl.PrefixReview), Reprocessed: rejudgmentShape(e), Removed: isSet(e.RemovedAt),
	}
	if e.Test() {
		shown.Test, shown.Reason = true, ""
	}
	return shown
}

var directionWords = map[ledger.Direction]string{ledger.Inbound: "inbound", ledger.Outbound: "outbound"}

func parseDirection(word string) (ledger.Direction, bool) {
	for d, known := range directionWords {
		if known == word {
			return d, true
		}
	}
	return 0, false
}

func (a *api) eventRoutes() {
	handle(a, eventTypesRoute(), listEventTypes)
	handle(a, route{
		method: http.MethodGet, path: "/v1/events", name: "listEvents", tag: "events", scope: ledger.ScopeRead, status: http.StatusOK, paged: true,
		summary: "Events of both directions, newest first; with endpoint and after, an endpoint's feed in the order of its sequence, oldest first",
		waits:   true, headers: []answerHeader{{name: "Pawl-Endpoint-Sequence", optional: true}, {name: "Preference-Applied", optional: true}},
		refuses: reasons{http.StatusNotFound: {"not_found"}},
		query: []param{
			{"direction", "inbound or outbound"}, {"source", ""}, {"verdict", "What became of an inbound event"},
			{"state", "How far an event of a generic source has come: received, waiting, done or review"},
			{"task_id", "The provider's id"}, {"type", ""}, {"operation", ""}, {"external_id", "The id that its sender gave it"},
			{"from", "Received or made at that time or later"}, {"until", "Received or made before that time"},
			{"endpoint", "Its feed: what came to it after a sequence; goes with after, wait and page_size alone"},
			{"after", "A sequence; 0 begins at the beginning. The feed goes on after the last one of the answer"},
			{"rendered", "true: the feed's events as they are sent to the endpoint, in place of data and body"},
			{"wait", "Seconds, at most 60: an empty feed is answered when something comes, or after that time"},
		},
	}, listEvents)
	handle(a, route{
		method: http.MethodGet, path: "/v1/events/{id}", name: "getEvent", tag: "events", scope: ledger.ScopeRead, status: http.StatusOK,
		summary: "One event with its verdict; with its raw bytes for a key with the scope payloads, which is audited",
	}, getEvent)
	handle(a, publishRoute(), publishEvent)
	a.reprocessRoutes()
}

func listEvents(c *call, _ none) (page[storedEvent], error) {
	if c.query.Has("endpoint") || c.query.Has("after") {
		return listFeed(c)
	}
	if c.query.Has("wait") {
		return page[storedEvent]{}, refuse(http.StatusBadRequest, "invalid_query", "wait goes with a feed alone: give endpoint and after")
	}
	f := store.EventFilter{Tenant: c.tenant, Source: c.query.Get("source"), Task: c.query.Get("task_id"), Type: c.query.Get("type"), ExternalID: c.query.Get("external_id")}
	var err error
	if f.Direction, err = filterWord(c, "direction", parseDirection); err != nil {
		return page[storedEvent]{}, err
	}
	if f.Verdict, err = filterWord(c, "verdict", pawl.ParseVerdict); err != nil {
		return page[storedEvent]{}, err
	}
	if f.Inbox, err = filterWord(c, "state", pawl.ParseInboxState); err != nil {
		return page[storedEvent]{}, err
	}
	if f.Operation, err = c.filterID("operation", pawl.PrefixOperation); err != nil {
		return page[storedEvent]{}, err
	}
	if f.From, f.Until, err = c.between(); err != nil {
		return page[storedEvent]{}, err
	}
	read := func(p store.Page) ([]ledger.Event, error) { return c.opts.Reader.Events(c.ctx, f, p) }
	return listed(c, read, func(e ledger.Event) pawl.ID { return e.ID }, func(events []ledger.Event) ([]storedEvent, error) {
		shown, err := each(eventShape)(events)
		for i := range shown {
			if err == nil {
				err = c.addInbox(&shown[i], events[i])
			}
		}
		return shown, err
	})
}

// addInbox adds to an event of a generic source who answers for it, and when
// something is done about it next.
func (c *call) addInbox(shown *storedEvent, e ledger.Event) error {
	if e.Inbox == 0 {
		return nil
	}
	shown.Owner = c.live.sources[e.Source].Settings().Owner
	if e.Inbox != pawl.InboxWaiting {
		return nil
	}
	rows, err := c.opts.Reader.Deliveries(c.ctx, store.DeliveryFilter{Event: e.ID}, store.Page{Limit: maxPage})
	for _, row := range rows {
		if next := isSet(row.DueAt); next != nil && !row.Leased && (shown.NextTryAt == nil || *next < *shown.NextTryAt) {
			shown.NextTryAt = next
		}
	}
	return err
}

// event is the event in the path, if the call may see it.
func (c *call) event() (ledger.Event, error) {
	id, err := c.id(pawl.PrefixEvent)
	if err != nil {
		return ledger.Event{}, err
	}
	rows, err := c.load(c.ctx, ledger.Keys{Events: []pawl.ID{id}})
	if err != nil {
		return ledger.Event{}, err
	}
	e, ok := rows.Events.Get(id)
	if !ok || !c.sees(e.Tenant) {
		return e, errNotFound
	}
	return e, nil
}

func getEvent(c *call, _ none) (storedEvent, error) {
	e, err := c.event()
	if err != nil {
		return storedEvent{}, err
	}
	shown := eventShape(e)
	if err := c.addRepeats(&shown, e); err != nil {
		return storedEvent{}, err
	}
	switch {
	case e.RemovedAt.IsSet():
	case e.Direction == ledger.Outbound:
		err = c.addData(&shown, e)
	case c.may(ledger.ScopePayloads):
		err = c.addBody(&shown, e)
	}
	if err == nil {
		err = c.addInbox(&shown, e)
	}
	return shown, err
}

// addRepeats adds how often an inbound event came again. Its key may be another
// event's, if it left it free.
func (c *call) addRepeats(shown *storedEvent, e ledger.Event) error {
	if e.Direction != ledger.Inbound || !e.HoldsKey() {
		return nil
	}
	id := ledger.EventKeyID{Source: e.Source, Task: e.Task, Event: e.ExternalID}
	rows, err := c.load(c.ctx, ledger.Keys{EventKeys: []ledger.EventKeyID{id}})
	if err != nil {
		return err
	}
	if k, ok := rows.EventKeys.Get(id); ok && k.Event == e.ID {
		shown.Repeats, shown.BodyDiffers = &k.Repeats, k.Differs
	}
	return nil
}

func (c *call) addData(shown *storedEvent, e ledger.Event) error {
	if e.Operation.IsZero() {
		data := ledger.PayloadID{Owner: e.ID, Kind: ledger.DataPayload}
		payloads, err := c.opts.Reader.Payloads(c.ctx, data)
		shown.Data = ledger.Raw(payloads[data])
		return err
	}
	metadata := ledger.PayloadID{Owner: e.Operation, Kind: ledger.MetadataPayload}
	result := ledger.PayloadID{Owner: e.Result, Kind: ledger.ResultPayload}
	payloads, err := c.opts.Reader.Payloads(c.ctx, metadata, result)
	if err != nil {
		return err
	}
	data, err := e.Data(payloads[metadata], payloads[result])
	shown.Data = data
	return err
}

// addBody shows the bytes of an inbound event, unless they may hold a result
// that is withheld (1-product G4).
func (c *call) addBody(shown *storedEvent, e ledger.Event) error {
	if held, err := c.heldBody(e); err != nil || held {
		return err
	}
	if err := c.accessed(e.Tenant, "event.body", shown.ID); err != nil {
		return err
	}
	body := ledger.PayloadID{Owner: e.ID, Kind: ledger.BodyPayload}
	payloads, err := c.opts.Reader.Payloads(c.ctx, body)
	if err != nil {
		return err
	}
	shown.Body = []byte(payloads[body])
	if e.Headers != "" {
		return json.Unmarshal([]byte(e.Headers), &shown.Headers)
	}
	return nil
}
