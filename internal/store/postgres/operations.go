package postgres

import (
	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

var operations = newTable("operations", 1,
	func(k pawl.ID) ledger.Operation { return ledger.Operation{ID: k} },
	func(r ledger.Operation) pawl.ID { return r.ID },
	func(c *columns, r *ledger.Operation) {
		operationIdentity(c, r)
		operationProgress(c, r)
		operationMoney(c, r)
		operationSchedule(c, r)
		operationArtifacts(c, r)
	})

func operationIdentity(c *columns, r *ledger.Operation) {
	key(c, "id", r.ID[:])
	text(c, "tenant", &r.Tenant)
	id(c, "api_key", &r.APIKey)
	text(c, "upstream", &r.Upstream)
	text(c, "model", &r.Model)
	text(c, "asked_model", &r.AskedModel)
	text(c, "request_id", &r.RequestID)
	text(c, "traceparent", &r.Traceparent)
	text(c, "adapter", &r.Adapter)
	text(c, "owner", &r.Owner)
	text(c, "correlation_id", &r.CorrelationID)
	text(c, "callback_url", &r.CallbackURL)
	id(c, "callback", &r.Callback)
	id(c, "retry_of", &r.RetryOf)
	moment(c, "created_at", &r.CreatedAt)
	moment(c, "deadline", &r.Deadline)
}

func operationProgress(c *columns, r *ledger.Operation) {
	number(c, "state", &r.State)
	number(c, "version", &r.Version)
	moment(c, "event_at", &r.EventAt)
	moment(c, "submitted_at", &r.SubmittedAt)
	moment(c, "updated_at", &r.UpdatedAt)
	moment(c, "finished_at", &r.FinishedAt)
	text(c, "task", &r.Task)
	text(c, "upstream_state", &r.UpstreamState)
	number(c, "upstream_version", &r.UpstreamVersion)
	text(c, "upstream_request_id", &r.UpstreamRequestID)
	number(c, "progress", &r.Progress)
	id(c, "result", &r.Result)
	text(c, "error_code", &r.ErrorCode)
	text(c, "error_word", &r.ErrorWord)
	text(c, "error_message", &r.ErrorMessage)
	moment(c, "cancel_requested_at", &r.CancelRequestedAt)
	flag(c, "cancel_confirmed", &r.CancelConfirmed)
	moment(c, "cancel_due_at", &r.CancelDueAt)
	number(c, "cancels", &r.Cancels)
	flag(c, "expiring", &r.Expiring)
	id(c, "correction", &r.Correction)
	flag(c, "by_hand", &r.ByHand)
	number(c, "reviews", &r.Reviews)
	id(c, "review", &r.Review)
}

func operationMoney(c *columns, r *ledger.Operation) {
	id(c, "account", &r.Account)
	text(c, "currency", &r.Currency)
	number(c, "reserved", &r.Reserved)
	number(c, "cost", &r.Cost)
	number(c, "charged", &r.Charged)
	text(c, "cost_text", &r.CostText)
	text(c, "foreign_cost", &r.Foreign)
	number(c, "money", &r.Money)
	flag(c, "settled", &r.Settled)
	flag(c, "key_budget", &r.KeyBudget)
	number(c, "spend_day", &r.SpendDay)
}

func operationSchedule(c *columns, r *ledger.Operation) {
	moment(c, "due_at", &r.DueAt)
	number(c, "queue", &r.Queue)
	number(c, "lease", &r.Lease)
	number(c, "leased", &r.Leased)
	number(c, "creates", &r.Creates)
	number(c, "former_creates", &r.FormerCreates)
	moment(c, "first_create_at", &r.FirstCreateAt)
	blob(c, "create_credential", r.CreateCredential[:])
	flag(c, "in_flight", &r.InFlight)
	flag(c, "may_exist", &r.MayExist)
	number(c, "reads", &r.Reads)
	number(c, "read_every_ns", &r.ReadEvery)
	number(c, "not_found", &r.NotFound)
	moment(c, "not_found_at", &r.NotFoundAt)
	number(c, "unreached", &r.Unreached)
	number(c, "deadline_reads", &r.DeadlineReads)
	moment(c, "last_read_at", &r.LastReadAt)
	moment(c, "waiting_at", &r.WaitingAt)
	number(c, "work_failed", &r.WorkFailed)
	flag(c, "work_done", &r.WorkDone)
	blob(c, "work_report", r.WorkReport[:])
	id(c, "read_line", &r.ReadLine.ID)
	moment(c, "read_line_at", &r.ReadLine.At)
	blob(c, "read_line_same", r.ReadLine.Same[:])
	number(c, "read_line_repeats", &r.ReadLine.Repeats)
	number(c, "kept", &r.Kept)
	moment(c, "erased_at", &r.ErasedAt)
}
