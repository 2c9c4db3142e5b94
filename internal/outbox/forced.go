package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// forcedAtOnce is how many forced deliveries one claim looks at.
const forcedAtOnce = 32

// forced leases what is to be sent once past the pause of a disabled endpoint,
// which no queue shows (7-rules R37).
func (o *Outbox) forced(ctx context.Context, now time.Time) ([]Job, error) {
	rows, err := o.o.Reader.ForcedDeliveries(ctx, pawl.TimeOf(now), forcedAtOnce)
	if err != nil {
		return nil, fmt.Errorf("outbox: claim: forced deliveries: %w", err)
	}
	var grants []grant
	var commands []ledger.Command
	for _, row := range rows {
		if o.slots.one(row.Endpoint) {
			grants = append(grants, grant{row.Endpoint, 1})
			commands = append(commands, ledger.LeaseForced{Header: o.header(), Delivery: row.ID, Endpoint: row.Endpoint})
		}
	}
	if len(grants) == 0 {
		return nil, nil
	}
	endpoints, err := o.endpoints(ctx, grants)
	if err != nil {
		for _, g := range grants {
			o.slots.give(g.endpoint, g.n)
		}
		return nil, fmt.Errorf("outbox: claim: endpoints: %w", err)
	}
	for i, g := range grants {
		c := commands[i].(ledger.LeaseForced)
		c.Timeout = policyOf(endpoints[g.endpoint]).Timeout
		commands[i] = c
	}
	leased, leaseErr := o.leased(ctx, grants, commands)
	jobs, err := o.load(ctx, leased, endpoints, now)
	return jobs, errors.Join(leaseErr, err)
}
