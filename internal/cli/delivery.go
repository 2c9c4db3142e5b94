package cli

import "net/http"

// deliveryCmd are the commands about deliveries.
type deliveryCmd struct {
	List     deliveryListCmd     `cmd:"" help:"Find deliveries, dead letters among them."`
	Get      deliveryGetCmd      `cmd:"" help:"Show a delivery."`
	Attempts deliveryAttemptsCmd `cmd:"" help:"Show every try of a delivery."`
	Retry    deliveryRetryCmd    `cmd:"" help:"Send an event once more, under its own id."`
	Complete deliveryCompleteCmd `cmd:"" help:"Report that what a delivery asked for is done."`
}

const deliveries = "/v1/deliveries"

// deliveryArg names a delivery.
type deliveryArg struct {
	ID string `arg:"" help:"The delivery, dlv_…."`
}

func (a deliveryArg) path() string { return deliveries + "/" + id(a.ID) }

type deliveryListCmd struct {
	listing
	State     string `help:"In this state: pending, delivering, delivered, dead, skipped." placeholder:"STATE"`
	Endpoint  string `help:"To this endpoint." placeholder:"ID"`
	Event     string `help:"Of this event." placeholder:"ID"`
	Operation string `help:"Of this operation's events." placeholder:"ID"`
}

// Help teaches by example.
func (deliveryListCmd) Help() string { return examples(`pawl delivery list --state dead`) }

func (c *deliveryListCmd) Run(s *session) error {
	q := c.query("state", c.State, "endpoint", c.Endpoint, "event", c.Event, "operation", c.Operation)
	return s.list(deliveries, q, "id", "state", "event_id", "endpoint_id", "attempts", "next_attempt_at", "last_status", "last_error", "reason", "complete_by", "completed_at")
}

type deliveryGetCmd struct{ deliveryArg }

func (c *deliveryGetCmd) Run(s *session) error { return s.show(c.path()) }

type deliveryAttemptsCmd struct {
	exporting
	deliveryArg
}

func (c *deliveryAttemptsCmd) Run(s *session) error {
	return s.list(c.path()+"/attempts", nil, "number", "at", "status", "duration_ms", "error", "excerpt", "target", "actor")
}

type deliveryRetryCmd struct {
	deliveryArg
	Force bool `help:"Send it even while its endpoint is disabled: one attempt."`
}

// Help teaches by example.
func (deliveryRetryCmd) Help() string {
	return examples(`pawl delivery retry dlv_01…`) + "\n\nMany at once: pawl replay deliveries."
}

func (c *deliveryRetryCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/retry", struct {
		Force bool `json:"force,omitempty"`
	}{c.Force})
}

type deliveryCompleteCmd struct{ deliveryArg }

// Help says when it is needed.
func (deliveryCompleteCmd) Help() string {
	return "For endpoints with complete_within: their receivers report by themselves, with the id in the header pawl-delivery. May be repeated.\n\n" +
		examples(`pawl delivery complete dlv_01…`)
}

func (c *deliveryCompleteCmd) Run(s *session) error {
	return s.send(http.MethodPost, c.path()+"/complete", nil)
}
