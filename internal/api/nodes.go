package api

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// nodeJSON is a process that serves the ledger.
type nodeJSON struct {
	ID         string    `json:"id"`
	Host       string    `json:"host"`
	Address    string    `json:"address" doc:"Where its API listens."`
	Version    string    `json:"version"`
	State      string    `json:"state" enum:"alive,draining,silent" doc:"Silent: not heard of for 30 s. It is dead, frozen or cut off; what it holds goes to the others when its leases end."`
	StartedAt  pawl.Time `json:"started_at" format:"date-time"`
	LastSeenAt pawl.Time `json:"last_seen_at" format:"date-time" doc:"By the ledger's clock; each node tells every 10 s."`
	Lanes      int64     `json:"lanes" doc:"How many batches it commits at once."`
	Waiting    int64     `json:"waiting" doc:"Commands that wait to be committed."`
	Holds      holdsJSON `json:"holds"`
}

// holdsJSON is what a node has leased or on the wire.
type holdsJSON struct {
	Creates    int64 `json:"creates"`
	Reads      int64 `json:"reads"`
	Deliveries int64 `json:"deliveries"`
	Captures   int64 `json:"captures"`
}

func nodeShape(n store.Node) nodeJSON {
	return nodeJSON{
		n.ID.Text(pawl.PrefixNode), n.Host, n.Address, n.Version, n.State(), n.StartedAt, n.SeenAt, n.Lanes, n.Waiting,
		holdsJSON{n.Creates, n.Reads, n.Deliveries, n.Captures},
	}
}

func (a *api) nodeRoutes() {
	handle(a, route{
		method: http.MethodGet, path: "/v1/nodes", name: "listNodes", tag: "nodes", scope: ledger.ScopeAdmin, status: http.StatusOK, paged: true,
		summary: "The nodes that serve the ledger, in the order of their start, and what each held when it was last heard of",
	}, listNodes)
}

func listNodes(c *call, _ none) (page[nodeJSON], error) {
	var items []nodeJSON
	if c.opts.Nodes != nil {
		nodes, err := c.opts.Nodes(c.ctx)
		if err != nil {
			return page[nodeJSON]{}, err
		}
		for _, n := range nodes {
			items = append(items, nodeShape(n))
		}
	}
	return paged(c, items, func(n nodeJSON) string { return n.ID })
}
