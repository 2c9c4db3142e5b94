package ledger

import "fmt"

// Add adds a row of whatever table, as one that no ledger has yet: what a whole
// ledger is copied with. Nothing is decided about it.
func (r *Rows) Add(row any) {
	switch row := row.(type) {
	case IdempotencyKey:
		r.IdempotencyKeys.put(row.ID, row)
	case Correlation:
		r.Correlations.put(row.ID, row)
	case EventKey:
		r.EventKeys.put(row.ID, row)
	case Task:
		r.Tasks.put(row.ID, row)
	case Source:
		r.Sources.put(row.Name, row)
	case UnknownTypes:
		r.UnknownTypes.put(row.ID, row)
	case Tenant:
		r.Tenants.put(row.Name, row)
	case APIKey:
		r.APIKeys.put(row.ID, row)
	case WrappingKey:
		r.WrappingKeys.put(row.Name, row)
	case AuditSeal:
		r.AuditSeals.put(row.Number, row)
	case Operation:
		r.Operations.put(row.ID, row)
	case Event:
		r.Events.put(row.ID, row)
	case Review:
		r.Reviews.put(row.ID, row)
	case Account:
		r.Accounts.put(row.ID, row)
	case Budget:
		r.Budgets.put(row.ID, row)
	case Endpoint:
		r.Endpoints.put(row.ID, row)
	case Queue:
		r.Queues.put(row.ID, row)
	case Delivery:
		r.Deliveries.put(row.ID, row)
	case Replay:
		r.Replays.put(row.ID, row)
	case Artifact:
		r.Artifacts.put(row.ID, row)
	case Payload:
		r.Payloads = append(r.Payloads, row)
	case History:
		r.History = append(r.History, row)
	case Entry:
		r.Entries = append(r.Entries, row)
	case Attempt:
		r.Attempts = append(r.Attempts, row)
	case Audit:
		r.Audits = append(r.Audits, row)
	default:
		panic(fmt.Sprintf("ledger: no table holds a %T", row))
	}
}
