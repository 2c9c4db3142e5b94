package store

import (
	"context"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Sequences are the last numbers given in the streams of those of the endpoints
// that have one.
func Sequences(ctx context.Context, from Reader, endpoints ...pawl.ID) (map[pawl.ID]int64, error) {
	var keys ledger.Keys
	for _, id := range endpoints {
		keys.Queues = append(keys.Queues, ledger.DeliveryQueueID(id))
	}
	rows := new(ledger.Rows)
	if err := from.Load(ctx, &keys, rows); err != nil {
		return nil, err
	}
	last := make(map[pawl.ID]int64, len(endpoints))
	for _, id := range endpoints {
		if q, ok := rows.Queues.Get(ledger.DeliveryQueueID(id)); ok {
			last[id] = q.Sequence
		}
	}
	return last, nil
}
