package console

import "github.com/pawlhq/pawl"

// reviewItem is a review as the API shows it.
type reviewItem struct {
	ID          string     `json:"id"`
	Tenant      string     `json:"tenant"`
	Reason      string     `json:"reason"`
	Meaning     string     `json:"meaning"`
	Decisions   []string   `json:"decisions"`
	OperationID string     `json:"operation_id"`
	EventID     string     `json:"event_id"`
	EndpointID  string     `json:"endpoint_id"`
	DeliveryID  string     `json:"delivery_id"`
	Source      string     `json:"source"`
	Owner       string     `json:"owner"`
	Detail      string     `json:"detail"`
	Reported    *reported  `json:"reported"`
	OpenedAt    pawl.Time  `json:"opened_at"`
	ClosedAt    *pawl.Time `json:"closed_at"`
	Decision    string     `json:"decision"`
	Note        string     `json:"note"`
	DecidedBy   string     `json:"decided_by"`
}

// reported is an end that a provider named after another one was recorded.
type reported struct {
	State string     `json:"state"`
	Word  string     `json:"upstream_state"`
	Cost  *moneyItem `json:"cost"`
}
