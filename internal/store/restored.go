package store

import (
	"context"
	"maps"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Doubts is what was made of a restored ledger.
type Doubts struct {
	// Operations counts those that may have been created after the backup.
	Operations int
	// Upstreams are those whose creates wait for a person.
	Upstreams []string
}

// Doubt makes a restored ledger safe to serve: it is older than the world. What
// it holds as yet to be created may have been created meanwhile, and operations
// that it knows nothing of may be submitted again; so the former are marked, and
// creates are paused at every upstream until a person has looked. Since is the
// latest commit that the ledger knows of. It may be run again.
func Doubt(ctx context.Context, commands Commands, reader Lists, since pawl.Time) (Doubts, error) {
	type pending struct {
		id       pawl.ID
		upstream string
	}
	var waiting []pending
	latest := make(map[string]ledger.Operation)
	for p := (Page{Limit: checkStep}); ; {
		some, err := reader.Operations(ctx, OperationFilter{}, p)
		if err != nil {
			return Doubts{}, err
		}
		for _, op := range some {
			if op.Adapter == ledger.WorkerAdapter {
				continue
			}
			if last, ok := latest[op.Upstream]; !ok || op.FirstCreateAt > last.FirstCreateAt {
				latest[op.Upstream] = op
			}
			if op.State == pawl.Pending {
				waiting = append(waiting, pending{op.ID, op.Upstream})
			}
		}
		if len(some) < p.Limit {
			break
		}
		p.After = some[len(some)-1].ID
	}
	d := Doubts{Upstreams: slices.Sorted(maps.Keys(latest))}
	for some := range slices.Chunk(waiting, checkStep) {
		all := make([]ledger.Command, len(some))
		for i, op := range some {
			all[i] = ledger.DoubtCreate{Header: NewHeader(""), Operation: op.id, Since: since, Credential: latest[op.upstream].CreateCredential}
		}
		n, err := told(commands.DoAll(ctx, all...), "doubted")
		if err != nil {
			return d, err
		}
		d.Operations += n
	}
	var pauses []ledger.Command
	for _, name := range d.Upstreams {
		pauses = append(pauses, ledger.PauseUpstream{Header: NewHeader(""), Upstream: name, Reason: ledger.PausedRestored})
	}
	_, err := told(commands.DoAll(ctx, pauses...), "")
	return d, err
}

// told counts the results of a reason, and returns the first error.
func told(results []Result, reason string) (n int, err error) {
	for _, r := range results {
		if r.Err != nil {
			return n, r.Err
		}
		if r.Outcome.Err != nil {
			return n, r.Outcome.Err
		}
		if r.Outcome.Reason == reason {
			n++
		}
	}
	return n, nil
}
