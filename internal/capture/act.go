package capture

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// Do fetches and stores what a job is for, records how that went and gives its
// slot back.
func (c *Capturer) Do(ctx context.Context, j Job) {
	defer c.give(j.slot)
	busy := c.o.Metrics.InFlight.WithLabelValues("capture")
	busy.Inc()
	defer busy.Dec()
	fetching, stop := context.WithCancel(ctx)
	defer stop()
	c.slots.begin(j.slot, stop)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		c.renew(fetching, stop, j)
	}()
	done := c.attempt(fetching, j)
	stop()
	<-renewed
	if done == nil {
		c.hand(ctx, j)
		return
	}
	c.record(ctx, j, *done)
}

// renew keeps the lease until the context ends; where somebody else has it, the
// fetch stops: two must not write into one spool file.
func (c *Capturer) renew(ctx context.Context, lost func(), j Job) {
	ticker := time.NewTicker(leaseFor / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		out, err := c.o.Store.Do(ctx, ledger.RenewArtifact{Header: store.NewHeader(""), Artifact: j.artifact.ID, Fence: j.artifact.Lease, For: leaseFor})
		if err == nil && out.Reason == "not_leased" {
			lost()
			return
		}
	}
}

// attempt is [Capturer.capture], where a panic is a fetch that failed: it counts,
// and harms nothing else (O-107).
func (c *Capturer) attempt(ctx context.Context, j Job) (done *ledger.RecordArtifact) {
	defer telemetry.Contain(c.o.Log, "capture of "+j.artifact.ID.Text(pawl.PrefixArtifact), func() {
		done = &ledger.RecordArtifact{
			Header: store.NewHeader(""), Operation: j.artifact.Operation, Artifact: j.artifact.ID, Fence: j.artifact.Lease,
			Outcome: ledger.ArtifactAgain, Message: "the fetch failed by a fault of ours",
		}
		if up, ok := c.o.Upstreams.Now()[j.artifact.Upstream]; ok {
			done.Up = up.Policy()
		}
	})
	return c.capture(ctx, j)
}

// capture fetches the file and stores it. It gives nil where nothing is to be
// recorded: the node stops, or the lease was lost.
func (c *Capturer) capture(ctx context.Context, j Job) *ledger.RecordArtifact {
	a := j.artifact
	done := &ledger.RecordArtifact{Header: store.NewHeader(""), Operation: a.Operation, Artifact: a.ID, Fence: a.Lease}
	if up, ok := c.o.Upstreams.Now()[a.Upstream]; ok {
		done.Up = up.Policy()
	}
	id := ledger.PayloadID{Owner: a.Link, Kind: ledger.LinkPayload}
	payloads, err := c.o.Reader.Payloads(ctx, id)
	if err != nil {
		return nil
	}
	link, ok := payloads[id]
	if !ok {
		done.Outcome, done.Message = ledger.ArtifactGone, "the link is no longer kept"
		return done
	}
	file, err := c.spool.open(a.ID)
	if err != nil {
		c.o.Log.Error("a capture has no spool file", "artifact", a.ID.Text(pawl.PrefixArtifact), "error", err)
		done.Outcome, done.Message = ledger.ArtifactAgain, "no spool file could be opened"
		return done
	}
	defer file.Close()
	before := file.size
	f := fetcher{client: c.o.Client, agent: c.o.Agent, max: c.o.MaxSize, stall: c.stall, window: c.window, came: new(atomic.Int64)}
	if c.o.Traces != nil {
		ctx = c.o.Traces.On(ctx, telemetry.Errand{Act: "capture", Upstream: a.Upstream, Operation: a.Operation.Text(pawl.PrefixOperation)})
	}
	failed := f.fetch(ctx, link, file)
	if ctx.Err() != nil {
		return nil
	}
	// Without a validator the next try begins anew; a slow server is to be waited
	// for longer each time.
	done.Moved = file.size > before && file.about.Validator != "" && (failed == nil || !failed.slow)
	if failed == nil {
		failed = c.keep(ctx, a, file, done)
	}
	if ctx.Err() != nil && failed != nil {
		return nil
	}
	if failed != nil {
		done.Outcome, done.Message, done.RetryAfter = failed.outcome, failed.message, failed.after
	}
	return done
}

// keep moves the complete spool file into the blob store, checks it against what
// the server declared and fills in what is known of the copy.
func (c *Capturer) keep(ctx context.Context, a ledger.Artifact, file *spoolFile, done *ledger.RecordArtifact) *failure {
	copied, err := c.o.Files.put(ctx, ledger.ArtifactKey(a.ID, a.Lease), file, c.o.MaxSize)
	var failed *failure
	switch {
	case errors.As(err, &failed):
		// What was fetched is not what was declared: the next try begins anew.
		file.discard()
		done.Moved = false
		return failed
	case err != nil:
		c.o.Log.Error("a captured file could not be stored; trying again", "artifact", a.ID.Text(pawl.PrefixArtifact), "error", err)
		return &failure{outcome: ledger.ArtifactAgain, message: "the blob store did not take the file"}
	}
	done.Outcome, done.Size, done.SHA256 = ledger.ArtifactStored, copied.size, copied.sum
	done.ContentType, done.Filename = copied.contentType, file.about.Filename
	return nil
}

// record keeps trying for as long as the node acts, for a minute at most.
func (c *Capturer) record(ctx context.Context, j Job, done ledger.RecordArtifact) {
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		out, err := c.o.Store.Do(storing, done)
		if err == nil {
			c.after(storing, j, done, out)
			return
		}
		if ctx.Err() != nil || storing.Err() != nil {
			c.o.Log.Error("a capture could not be recorded; its lease will run out", "artifact", j.artifact.ID.Text(pawl.PrefixArtifact), "error", err)
			return
		}
		select {
		case <-storing.Done():
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// after counts what was recorded and clears up: a copy that was not needed, and
// what was spooled of a file that is stored.
func (c *Capturer) after(ctx context.Context, j Job, done ledger.RecordArtifact, out ledger.Outcome) {
	c.o.Metrics.Captures.WithLabelValues(done.Outcome.String()).Inc()
	a := j.artifact
	id := a.ID.Text(pawl.PrefixArtifact)
	if done.Outcome == ledger.ArtifactStored && out.Reason != "captured" {
		c.o.Files.remove(ctx, ledger.ArtifactKey(a.ID, a.Lease))
	}
	switch out.Reason {
	case "captured":
		c.o.Metrics.CapturedBytes.Add(float64(done.Size))
		c.spool.remove(a.ID)
		c.o.Log.Debug("captured", "artifact", id, "bytes", done.Size)
	case "not_needed":
		c.spool.remove(a.ID)
	case "failed":
		c.o.Log.Warn("a result file could not be captured", "artifact", id, "operation", a.Operation.Text(pawl.PrefixOperation), "why", done.Message)
	}
}

// hand gives a lease back whose fetch was stopped.
func (c *Capturer) hand(ctx context.Context, j Job) {
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := c.o.Store.Do(storing, ledger.RenewArtifact{Header: store.NewHeader(""), Artifact: j.artifact.ID, Fence: j.artifact.Lease, Lost: true})
	if err != nil {
		c.o.Log.Warn("a capture's lease could not be handed back; it will run out", "artifact", j.artifact.ID.Text(pawl.PrefixArtifact), "error", err)
	}
}
