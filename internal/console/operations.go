package console

import (
	"net/http"
	"net/url"

	"github.com/pawlhq/pawl/internal/ledger"
)

// operationsView is the list of operations under the filters of its address.
type operationsView struct {
	Query  url.Values
	Items  []ledger.OperationJSON
	Next   string
	States []string
	// Metadata is the one member of the metadata that is asked for.
	Metadata string
}

// stateWords are the states in their order.
var stateWords = []string{"pending", "unconfirmed", "running", "succeeded", "failed", "canceled", "expired"}

// operations lists operations, newest first. Its address says all of its filters,
// so that it can be passed on.
func (v *visit) operations() error {
	query := v.filters("state", "unfinished", "upstream", "task_id", "correlation_id", "created_before")
	out := operationsView{Query: query, States: stateWords}
	if name, value := v.r.URL.Query().Get("metadata_name"), v.r.URL.Query().Get("metadata_value"); name != "" {
		query.Set("metadata."+name, value)
	}
	var found list[ledger.OperationJSON]
	if err := v.get("/v1/operations", query, &found); err != nil {
		return err
	}
	out.Items, out.Next = found.Items, found.link(v.r)
	live := ""
	if query.Get("page_token") == "" {
		live = livePath
	}
	out.Query = v.r.URL.Query()
	return v.showLive(http.StatusOK, "operations", "Operations", live, out)
}
