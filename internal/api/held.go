package api

import (
	"maps"
	"slices"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// heldBody reports whether the body of an inbound event may hold a result that is
// withheld: of the operation that it was judged with, or of the one whose task it
// names, which is another one where it came to a wrong address. Where the body's
// operation is not known, since it names no task or one of nobody's, it is what the
// upstream is configured to do.
func (c *call) heldBody(e ledger.Event) (bool, error) {
	rows, err := c.load(c.ctx, ledger.Keys{Tasks: []ledger.TaskID{{Upstream: e.Source, Task: e.Task}}})
	if err != nil {
		return false, err
	}
	claim, _ := rows.Tasks.Get(ledger.TaskID{Upstream: e.Source, Task: e.Task})
	if rows, err = c.load(c.ctx, ledger.Keys{Operations: []pawl.ID{e.Operation, claim.Operation}}); err != nil {
		return false, err
	}
	judged, known := rows.Operations.Get(e.Operation)
	about, claimed := rows.Operations.Get(claim.Operation)
	if judged.Held() || about.Held() {
		return true, nil
	}
	known = known && e.Task != "" && judged.Task == e.Task
	return !known && !claimed && c.live.ups[e.Source].mayHold, nil
}

// mayHold reports whether an upstream withholds results, of some models at
// least, unless the request says so.
func mayHold(s config.Upstream) bool {
	return s.Release == config.ReleaseHold || slices.ContainsFunc(slices.Collect(maps.Values(s.Models)), func(m config.Model) bool { return m.Release == config.ReleaseHold })
}
