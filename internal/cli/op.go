package cli

import "net/http"

// opCmd are the commands about operations.
type opCmd struct {
	Submit    opSubmitCmd    `cmd:"" help:"Hand a job in, once."`
	Get       opGetCmd       `cmd:"" help:"Show an operation."`
	List      opListCmd      `cmd:"" help:"Find operations."`
	Wait      opWaitCmd      `cmd:"" help:"Wait until an operation is finished."`
	Watch     opWatchCmd     `cmd:"" help:"Watch what happens to an operation until it is finished."`
	Timeline  opTimelineCmd  `cmd:"" help:"Show everything that happened to an operation."`
	Reconcile opReconcileCmd `cmd:"" help:"Ask the upstream now what became of an operation."`
	Retry     opRetryCmd     `cmd:"" help:"Try an operation again that failed, expired or was canceled."`
	Cancel    opCancelCmd    `cmd:"" help:"Ask to cancel an operation."`
	Release   opReleaseCmd   `cmd:"" help:"Let a held result out."`
	Resolve   opResolveCmd   `cmd:"" help:"Decide an operation that may or may not exist at the provider, or correct how one ended."`
}

const operations = "/v1/operations"

type opGetCmd struct {
	ID string `arg:"" help:"The operation, op_…."`
}

func (c *opGetCmd) Run(s *session) error { return s.show(operations + "/" + id(c.ID)) }

type opListCmd struct {
	listing
	State          string            `help:"In this state: pending, unconfirmed, running, succeeded, failed, canceled, expired." placeholder:"STATE"`
	Upstream       string            `help:"Of this upstream." placeholder:"NAME"`
	Task           string            `help:"With this task id of the provider." placeholder:"ID"`
	Correlation    string            `help:"With this correlation id." placeholder:"ID"`
	Request        string            `help:"Submitted by the request with this Pawl-Request-Id." placeholder:"ID"`
	ProviderID     string            `name:"upstream-request" help:"With this latest id of a request of the provider's." placeholder:"ID"`
	IdempotencyKey string            `help:"Made by this key's own submit under this Idempotency-Key." placeholder:"KEY"`
	Metadata       map[string]string `help:"With this member of the metadata." placeholder:"NAME=VALUE" mapsep:"none"`
}

// Help teaches by example.
func (opListCmd) Help() string {
	return examples(`pawl op list --state unconfirmed`, `pawl op list --upstream studio --page-size 10 --json`)
}

func (c *opListCmd) Run(s *session) error {
	q := c.query("state", c.State, "upstream", c.Upstream, "task_id", c.Task,
		"correlation_id", c.Correlation, "request_id", c.Request, "upstream_request_id", c.ProviderID, "idempotency_key", c.IdempotencyKey)
	for name, value := range c.Metadata {
		q.Set("metadata."+name, value)
	}
	return s.list(operations, q, "id", "state", "upstream", "model", "task_id", "cost", "updated_at")
}

type opTimelineCmd struct {
	exporting
	ID string `arg:"" help:"The operation, op_…; pawl op list finds it by other ids."`
}

func (c *opTimelineCmd) Run(s *session) error {
	return s.list(operations+"/"+id(c.ID)+"/timeline", nil, "at", "kind", "verdict", "state", "version", "reason", "actor", "event_id", "repeats", "last_at")
}

type opReconcileCmd struct {
	ID string `arg:"" help:"The operation, op_…."`
}

func (c *opReconcileCmd) Run(s *session) error {
	return s.send(http.MethodPost, operations+"/"+id(c.ID)+"/reconcile", nil)
}
