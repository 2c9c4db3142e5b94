package console

import (
	"net/http"

	"github.com/pawlhq/pawl"
)

// nodeItem is a process that serves the ledger.
type nodeItem struct {
	ID         string    `json:"id"`
	Host       string    `json:"host"`
	Address    string    `json:"address"`
	Version    string    `json:"version"`
	State      string    `json:"state"`
	StartedAt  pawl.Time `json:"started_at"`
	LastSeenAt pawl.Time `json:"last_seen_at"`
	Waiting    int64     `json:"waiting"`
	Holds      struct {
		Creates    int64 `json:"creates"`
		Reads      int64 `json:"reads"`
		Deliveries int64 `json:"deliveries"`
		Captures   int64 `json:"captures"`
	} `json:"holds"`
}

// nodes shows who is alive and what each holds.
func (v *visit) nodes() error {
	var found list[nodeItem]
	if err := v.get("/v1/nodes", v.filters(), &found); err != nil {
		return err
	}
	return v.showLive(http.StatusOK, "nodes", "Nodes", livePath, found)
}
