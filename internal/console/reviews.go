package console

import (
	"net/http"
	"net/url"
)

// reviewsView is the list of reviews under the filters of its address.
type reviewsView struct {
	Query   url.Values
	Items   []reviewItem
	Next    string
	Reasons []string
}

// reviews lists what a person must decide, newest first; with open=false what was
// decided as well.
func (v *visit) reviews() error {
	query := v.filters("reason", "open", "operation", "overdue")
	var found list[reviewItem]
	if err := v.get("/v1/reviews", query, &found); err != nil {
		return err
	}
	live := ""
	if query.Get("page_token") == "" {
		live = livePath
	}
	return v.showLive(http.StatusOK, "reviews", "Reviews", live, reviewsView{v.r.URL.Query(), found.Items, found.link(v.r), reasonWords()})
}
