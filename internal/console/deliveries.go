package console

import (
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl"
)

// deliveryWords are the states of deliveries in their order.
var deliveryWords = []string{"pending", "delivering", "delivered", "dead", "skipped"}

// deliveriesView is the list of deliveries under the filters of its address.
type deliveriesView struct {
	Query  url.Values
	Items  []deliveryItem
	Next   string
	States []string
}

// deliveries lists deliveries, newest first; those that are dead have an entry
// of their own in the menu.
func (v *visit) deliveries() error {
	query := v.filters("state", "endpoint", "event", "operation")
	var found list[deliveryItem]
	if err := v.get("/v1/deliveries", query, &found); err != nil {
		return err
	}
	title := "Deliveries"
	if query.Get("state") == "dead" {
		title = "Dead letters"
	}
	return v.showLive(http.StatusOK, "deliveries", title, newest(query), deliveriesView{v.r.URL.Query(), found.Items, found.link(v.r), deliveryWords})
}

// attemptItem is one try of a delivery.
type attemptItem struct {
	Number     int32     `json:"number"`
	At         pawl.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
	Status     int32     `json:"status"`
	Error      string    `json:"error"`
	Excerpt    string    `json:"excerpt"`
	Replay     bool      `json:"replay"`
	Actor      string    `json:"actor"`
	Target     string    `json:"target"`
}

// deliveryView is one delivery with its attempts.
type deliveryView struct {
	Delivery struct {
		deliveryItem
		CompleteBy  *pawl.Time `json:"complete_by"`
		CompletedAt *pawl.Time `json:"completed_at"`
		CompletedBy string     `json:"completed_by"`
		Overdue     int32      `json:"overdue"`
		Discarded   bool       `json:"discarded"`
		ReviewID    string     `json:"review_id"`
	}
	Attempts []attemptItem
}

func (v *visit) delivery() error {
	id := v.r.PathValue("id")
	var out deliveryView
	if err := v.get("/v1/deliveries/"+url.PathEscape(id), nil, &out.Delivery); err != nil {
		return err
	}
	var tries list[attemptItem]
	if err := v.get("/v1/deliveries/"+url.PathEscape(id)+"/attempts", nil, &tries); err != nil {
		return err
	}
	out.Attempts = tries.Items
	return v.showLive(http.StatusOK, "delivery", "Delivery "+short(id), livePath, out)
}
