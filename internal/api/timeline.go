package api

import (
	"cmp"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// timelineItem is one thing that happened to an operation (2-contracts §1).
// Its kind is the history's own word, "money" for a journal entry or "attempt"
// for one try of a delivery.
type timelineItem struct {
	At         pawl.Time `json:"at" format:"date-time"`
	Kind       string    `json:"kind"`
	Verdict    string    `json:"verdict,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	EventID    string    `json:"event_id,omitempty"`
	Version    int64     `json:"version,omitempty"`
	State      string    `json:"state,omitempty"`
	Actor      string    `json:"actor,omitempty"`
	Detail     string    `json:"detail,omitempty"`
	DeliveryID string    `json:"delivery_id,omitempty"`
	EndpointID string    `json:"endpoint_id,omitempty"`
	Attempt    int32     `json:"attempt,omitempty"`
	Status     int32     `json:"status,omitempty" doc:"The HTTP status of an attempt."`
	Amount     *money    `json:"amount,omitempty"`
	From       string    `json:"from,omitempty"`
	To         string    `json:"to,omitempty"`
	// Repeats are told of reads alone.
	Repeats int64      `json:"repeats,omitempty" doc:"How many reads after this one came to the same, with none between them that came to something else."`
	LastAt  *pawl.Time `json:"last_at,omitempty" format:"date-time" doc:"When the last of them was."`
}

// timeline is what happened, oldest first.
type timeline struct {
	Items []timelineItem `json:"items"`
	// Earlier is set where more happened before.
	Earlier *pawl.Time `json:"earlier,omitempty" format:"date-time" doc:"Give it as until for what happened before. Absent where the timeline has its beginning."`
}

// timelineMost is how many lines one answer has at most: an operation that a
// provider calls back about without end must not take the page with it.
const timelineMost = 1000

func getTimeline(c *call, _ none) (timeline, error) {
	op, err := c.operation()
	if err != nil {
		return timeline{}, err
	}
	until, err := c.moment("until")
	if err != nil {
		return timeline{}, err
	}
	if !until.IsSet() {
		until = pawl.Never
	}
	facts, err := c.opts.Reader.Story(c.ctx, op.ID, until, timelineMost+1)
	if err != nil {
		return timeline{}, err
	}
	slices.Reverse(facts.History)
	slices.Reverse(facts.Entries)
	slices.Reverse(facts.Deliveries)
	slices.Reverse(facts.Attempts)
	items := make([]timelineItem, 0, len(facts.History)+len(facts.Entries)+len(facts.Deliveries))
	for _, h := range facts.History {
		if op.Held() && h.Kind == ledger.CaptureLine && h.Reason == ledger.CapturedReason {
			continue // Nobody is told that a held result is ready (1-product G4).
		}
		items = append(items, historyItem(h))
	}
	for _, e := range facts.Entries {
		amount := moneyOf(e.Amount, op.Currency)
		items = append(items, timelineItem{
			At: e.At, Kind: "money", Reason: e.Kind, Actor: e.Actor, Detail: e.Note, Amount: &amount, From: string(e.From), To: string(e.To),
		})
	}
	attempts := make(map[pawl.ID][]ledger.Attempt)
	for _, a := range facts.Attempts {
		attempts[a.Delivery] = append(attempts[a.Delivery], a)
	}
	for _, d := range facts.Deliveries {
		items = append(items, deliveryItems(d, attempts[d.ID])...)
	}
	items = slices.DeleteFunc(items, func(i timelineItem) bool { return i.At >= until })
	slices.SortStableFunc(items, func(a, b timelineItem) int { return cmp.Compare(a.At, b.At) })
	if len(items) <= timelineMost {
		return timeline{Items: items}, nil
	}
	// What happened at the same moment as the first line may be told twice.
	items = items[len(items)-timelineMost:]
	earlier := items[0].At + 1
	return timeline{items, &earlier}, nil
}

func historyItem(h ledger.History) timelineItem {
	return timelineItem{
		At: h.At, Kind: h.Kind, Verdict: h.Verdict.String(), Reason: h.Reason, EventID: h.Event.Text(pawl.PrefixEvent),
		Version: h.Version, State: h.State.String(), Actor: h.Actor, Detail: h.Detail,
		Repeats: h.Repeats, LastAt: isSet(h.LastAt),
	}
}

// deliveryItems are the attempts of a delivery, and its end where that is not
// an attempt's: a dead or skipped one says why.
func deliveryItems(d ledger.Delivery, attempts []ledger.Attempt) []timelineItem {
	base := timelineItem{
		EventID: d.Event.Text(pawl.PrefixEvent), DeliveryID: d.ID.Text(pawl.PrefixDelivery), EndpointID: d.Endpoint.Text(pawl.PrefixEndpoint),
	}
	var items []timelineItem
	for _, a := range attempts {
		item := base
		item.At, item.Kind, item.Actor, item.Attempt, item.Status, item.Detail = a.At, "attempt", a.Actor, a.Number, a.Status, a.Error
		items = append(items, item)
	}
	if d.State == pawl.DeliveryDead || d.State == pawl.DeliverySkipped {
		item := base
		item.At, item.Kind, item.Reason = d.FinishedAt, "delivery_"+d.State.String(), d.Reason
		items = append(items, item)
	}
	return items
}
