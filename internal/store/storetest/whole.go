package storetest

import (
	"reflect"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Whole is n rows of every table, each with all its fields set; every third text
// of a provider's holds bytes that PostgreSQL's text cannot.
func Whole(n int) *ledger.Rows {
	rows := &ledger.Rows{}
	for i := 1; i <= n; i++ {
		for _, row := range oneOfEach(i) {
			rows.Add(row)
		}
	}
	return rows
}

// Tables is how many tables a ledger has.
func Tables() int {
	n := 0
	for i := range reflect.TypeFor[ledger.Rows]().NumField() {
		if f := reflect.TypeFor[ledger.Rows]().Field(i); f.IsExported() && f.Type != reflect.TypeFor[ledger.Removals]() {
			n++
		}
	}
	return n
}

func oneOfEach(i int) []any {
	task, payload := sample[ledger.Task](i), sample[ledger.Payload](i)
	event := sample[ledger.Event](i)
	if i%3 == 0 {
		task.ID.Task += "\x00\xff\x1b"
		event.Headers += "\x1b00 \xc3\x28"
		payload.Body += "\x00\xff\xfe"
	}
	operation := sample[ledger.Operation](i)
	if i%2 == 0 {
		operation.DueAt, operation.Deadline, operation.Review = pawl.Never, 0, pawl.ID{}
	}
	return []any{
		sample[ledger.IdempotencyKey](i), sample[ledger.Correlation](i), sample[ledger.EventKey](i), task,
		sample[ledger.Source](i), sample[ledger.UnknownTypes](i), sample[ledger.Tenant](i), sample[ledger.APIKey](i),
		sample[ledger.WrappingKey](i), operation, event, sample[ledger.Review](i), sample[ledger.Account](i),
		sample[ledger.Budget](i), sample[ledger.Endpoint](i), sampleQueue(i), sample[ledger.Delivery](i), sample[ledger.Replay](i),
		sample[ledger.Artifact](i), payload, sample[ledger.History](i), sample[ledger.Entry](i), sample[ledger.Attempt](i),
		sample[ledger.Audit](i), sample[ledger.AuditSeal](i),
	}
}
