package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/strict"
)

// maxWait is the longest that an answer waits for an operation's end; whoever
// asks for more gets that (7-rules R7).
const maxWait = time.Minute

// wish is how long a request wants its answer to wait for the operation's end.
type wish struct {
	wait time.Duration
	// preferred says that it came as a preference, which is confirmed where it
	// is honoured, and otherwise ignored.
	preferred bool
	// wrong says that the parameter wait cannot be read.
	wrong bool
}

// wishOf reads the parameter wait, in seconds, else the header Prefer.
func wishOf(rt route, r *http.Request) wish {
	if !rt.waits {
		return wish{}
	}
	if text := r.URL.Query().Get("wait"); text != "" && rt.takes("wait") {
		seconds, err := strconv.ParseInt(text, 10, 32)
		return wish{wait: min(time.Duration(max(seconds, 0))*time.Second, maxWait), wrong: err != nil || seconds < 0}
	}
	wait, ok := strict.PreferWait(r.Header.Values("Prefer"))
	return wish{wait: min(wait, maxWait), preferred: ok}
}

// patienter is a request whose body says how long its answer may wait.
type patienter interface{ patience() time.Duration }

// patient gives an answer that waits its time, however long the request took to
// arrive. What comes back ends it.
func (c *call) patient(w http.ResponseWriter) (done func()) {
	if c.wish.wait == 0 {
		return func() {}
	}
	c.ctx, done = context.WithTimeout(c.r.Context(), c.wish.wait+requestTimeout)
	until := time.Now().Add(c.wish.wait + 2*requestTimeout)
	_ = http.NewResponseController(w).SetWriteDeadline(until) // A writer without deadlines has no limit either.
	return done
}

// await waits for the operation's end for as long as the request wants and gives
// the operation as it is then. It answers at once where too many wait already,
// and early where the node stops.
func (c *call) await(op ledger.Operation) (ledger.Operation, error) {
	if c.wish.wait == 0 || c.opts.Watch == nil {
		return op, nil
	}
	waiter, ok := c.opts.Watch.Join(op.ID)
	if !ok {
		return op, nil
	}
	defer waiter.Leave()
	if c.wish.preferred {
		c.header.Set("Preference-Applied", "wait="+strconv.Itoa(int(c.wish.wait/time.Second)))
	}
	waiting, cancel := context.WithTimeout(c.ctx, c.wish.wait)
	defer cancel()
	for {
		rows, err := c.load(c.ctx, ledger.Keys{Operations: []pawl.ID{op.ID}})
		if err != nil {
			return op, err
		}
		if now, ok := rows.Operations.Get(op.ID); ok {
			op = now
		}
		if op.State.Terminal() || waiter.Wait(waiting, op.Version) != nil {
			return op, c.ctx.Err()
		}
	}
}
