package api

import (
	"net/http"

	"github.com/pawlhq/pawl/internal/ledger"
)

func completeRoute() route {
	return route{
		method: http.MethodPost, path: "/v1/deliveries/{id}/complete", name: "completeDelivery", tag: "deliveries", scope: ledger.ScopeOperate, status: http.StatusOK,
		summary: "Report that what a delivery asked for is done; may be repeated, and may come before or after the time for it",
		refuses: reasons{http.StatusConflict: {"not_sent", "skipped"}},
	}
}

// completeDelivery takes the report of a receiver (1-product C9).
func completeDelivery(c *call, _ none) (deliveryJSON, error) {
	d, err := c.delivery()
	if err != nil {
		return deliveryJSON{}, err
	}
	report := ledger.CompleteDelivery{Header: c.head(), Tenant: c.tenant, Delivery: d.ID, Review: d.Review}
	if d.Inbound {
		report.Event = d.Event
	}
	out, err := c.do(c.ctx, report)
	if err != nil {
		return deliveryJSON{}, err
	}
	return deliveryShape(out.Value.(ledger.Delivery)), nil
}
