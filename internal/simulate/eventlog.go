package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/pawlhq/pawl/internal/ledger"
)

// eventLog hashes every row in the order of its writing.
type eventLog struct{ sum hash.Hash }

func newEventLog(wanted bool) *eventLog {
	if !wanted {
		return &eventLog{}
	}
	return &eventLog{sha256.New()}
}

// add writes what a commit has changed and added.
func (l *eventLog) add(r *ledger.Rows) {
	if l.sum == nil {
		return
	}
	write(l.sum, "idempotency key", &r.IdempotencyKeys)
	write(l.sum, "event key", &r.EventKeys)
	write(l.sum, "task", &r.Tasks)
	write(l.sum, "source", &r.Sources)
	write(l.sum, "unknown types", &r.UnknownTypes)
	write(l.sum, "tenant", &r.Tenants)
	write(l.sum, "replay", &r.Replays)
	write(l.sum, "operation", &r.Operations)
	write(l.sum, "event", &r.Events)
	write(l.sum, "review", &r.Reviews)
	write(l.sum, "account", &r.Accounts)
	write(l.sum, "queue", &r.Queues)
	write(l.sum, "delivery", &r.Deliveries)
	write(l.sum, "audit seal", &r.AuditSeals)
	// Secrets are sealed with chance of their own.
	for _, c := range r.APIKeys.Changes() {
		c.Now.WebhookSecret, c.Now.FormerSecret = "", ""
		fmt.Fprintf(l.sum, "api key %v\n", c.Now)
	}
	for _, c := range r.Endpoints.Changes() {
		c.Now.Secret, c.Now.FormerSecret = "", ""
		fmt.Fprintf(l.sum, "endpoint %v\n", c.Now)
	}
	for _, row := range r.Payloads {
		fmt.Fprintf(l.sum, "payload %v\n", row)
	}
	for _, row := range r.History {
		fmt.Fprintf(l.sum, "history %v\n", row)
	}
	for _, row := range r.Entries {
		fmt.Fprintf(l.sum, "entry %v\n", row)
	}
	for _, row := range r.Attempts {
		fmt.Fprintf(l.sum, "attempt %v\n", row)
	}
	for _, row := range r.Audits {
		fmt.Fprintf(l.sum, "audit %v\n", row)
	}
	_, _ = io.WriteString(l.sum, "commit\n") // A hash never fails.
}

func write[K, R comparable](to io.Writer, table string, rows *ledger.Table[K, R]) {
	for _, c := range rows.Changes() {
		fmt.Fprintf(to, "%s %v\n", table, c.Now)
	}
}

// hash is the hexadecimal sum so far, "" if none is wanted.
func (l *eventLog) hash() string {
	if l.sum == nil {
		return ""
	}
	return hex.EncodeToString(l.sum.Sum(nil))
}
