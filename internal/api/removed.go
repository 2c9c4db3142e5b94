package api

import (
	"github.com/pawlhq/pawl/internal/store"
)

// removed are the upstreams that are not configured any more although
// operations that this call may see wait for them: they go on when it is
// configured again, and until then somebody must know.
func (c *call) removed() ([]upstreamJSON, error) {
	names, err := c.opts.Reader.WaitedFor(c.ctx)
	if err != nil {
		return nil, err
	}
	var items []upstreamJSON
	for _, name := range names {
		if _, configured := c.ups[name]; configured {
			continue
		}
		mine, err := c.opts.Reader.Operations(c.ctx, store.OperationFilter{Tenant: c.tenant, Upstream: name}, store.Page{Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(mine) > 0 {
			items = append(items, upstreamJSON{Name: name, Removed: true, Models: []modelJSON{}, Paused: []pauseJSON{}})
		}
	}
	return items, nil
}
