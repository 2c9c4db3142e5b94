package store

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Preview decides a command over committed rows, by the same code as ever, and
// records nothing. It gives the outcome and the rows as the command would have
// left them.
func Preview(ctx context.Context, reader Reader, c ledger.Command) (ledger.Outcome, *ledger.Rows, error) {
	var keys ledger.Keys
	c.Keys(&keys)
	for {
		rows := new(ledger.Rows)
		if err := reader.Load(ctx, &keys, rows); err != nil {
			return ledger.Outcome{}, nil, err
		}
		out, miss := ledger.NewDraft(rows).Run(c, pawl.TimeOf(time.Now()))
		if miss == nil {
			return out, rows, nil
		}
		keys.Merge(miss.Keys)
	}
}
