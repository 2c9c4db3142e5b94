package console

import (
	"net/http"
	"net/url"
)

// auditView is the audit under the filters of its address.
type auditView struct {
	Query url.Values
	Items []auditItem
	Next  string
}

func (v *visit) audit() error {
	query := v.filters("actor", "action", "subject", "from", "until")
	var found list[auditItem]
	if err := v.get("/v1/audit", query, &found); err != nil {
		return err
	}
	return v.showLive(http.StatusOK, "audit", "Audit", newest(query), auditView{v.r.URL.Query(), found.Items, found.link(v.r)})
}
