package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// The reasons of pauses that nobody gave by hand.
const (
	// pausedUnauthorized: the upstream refuses our credential.
	pausedUnauthorized = "upstream_unauthorized"
	// pausedProbing: after such a pause one create tries whether it does still.
	pausedProbing = "probing"
	// PausedByHand is the reason of a pause by a person who gave none.
	PausedByHand = "by_hand"
)

// GateID names the row whose pause is that of all creates at an upstream: the
// queue of no tenant, which holds no work. Reads go on while it is closed.
func GateID(upstream string) QueueID { return WorkQueueID(SubmitQueue, upstream, "") }

// closeGate stops an upstream's creates after it has refused our credential, for
// longer each time. Answers to creates that were sent before do not count again,
// and a pause by hand stays.
func (d *Draft) closeGate(upstream string) {
	gate := d.queue(GateID(upstream))
	if gate.PausedUntil > d.Now && gate.PauseReason != pausedProbing {
		return
	}
	first := gate.Failures == 0
	gate.PausedUntil = 0
	d.Queues.Put(gate.ID, gate)
	d.pause(gate.ID, pausedUnauthorized)
	if first {
		// The probes that follow only find it as it was.
		d.notifyPaused(d.queue(gate.ID))
	}
}

// probe lets no further create through the gate of an upstream whose credential
// was refused until the one that was leased just now has been answered.
func (d *Draft) probe(up Upstream) {
	gate := d.queue(GateID(up.Name))
	gate.PausedUntil, gate.PauseReason = d.Now.Add(up.Timeout+LeaseMargin), pausedProbing
	d.Queues.Put(gate.ID, gate)
}

// probed opens the gate for the next probe after one that told nothing.
func (d *Draft) probed(upstream string) {
	gate := d.queue(GateID(upstream))
	if gate.PauseReason == pausedProbing && gate.PausedUntil != pawl.Never {
		gate.PausedUntil = d.Now
		d.Queues.Put(gate.ID, gate)
	}
}

// pause keeps a queue from being ready, longer with each failure in a row.
func (d *Draft) pause(id QueueID, reason string) {
	q := d.queue(id)
	q.Failures++
	until := d.Now.Add(d.jitter(backoff(30*time.Second, 10*time.Minute, q.Failures)))
	q.PausedUntil, q.PauseReason = max(q.PausedUntil, until), reason
	d.Queues.Put(id, q)
}

// recovered ends such a pause: an answer shows that the upstream takes us.
func (d *Draft) recovered(id QueueID) {
	q := d.queue(id)
	if q.Failures == 0 {
		return
	}
	q.Failures = 0
	if q.PausedUntil != pawl.Never {
		q.PausedUntil, q.PauseReason = 0, ""
	}
	d.Queues.Put(id, q)
}

// PauseUpstream stops an upstream's creates, of all tenants, until a person
// resumes them (1-product I7).
type PauseUpstream struct {
	Header
	Upstream string
	// Reason is shown to whoever asks what the upstream does.
	Reason string
}

// Head is the command's header.
func (c PauseUpstream) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c PauseUpstream) Keys(k *Keys) { k.Queues = add(k.Queues, GateID(c.Upstream)) }

// Decide closes the gate and answers with its [Queue].
func (c PauseUpstream) Decide(d *Draft) Outcome {
	gate := d.queue(GateID(c.Upstream))
	if gate.PausedUntil == pawl.Never && gate.PauseReason == c.Reason {
		return done("paused", gate)
	}
	gate.PausedUntil, gate.PauseReason = pawl.Never, c.Reason
	d.Queues.Put(gate.ID, gate)
	d.notifyPaused(gate)
	d.audit("", "upstream.pause", c.Upstream, c.Reason)
	return done("paused", gate)
}

// ResumeUpstream ends every pause of an upstream, whoever made it.
type ResumeUpstream struct {
	Header
	Upstream string
	// Queues are further queues of the upstream that were found paused.
	Queues []QueueID
}

// Head is the command's header.
func (c ResumeUpstream) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ResumeUpstream) Keys(k *Keys) {
	k.Queues = union(add(k.Queues, GateID(c.Upstream)), c.Queues)
}

// Decide opens the gate and the queues and answers with the gate's [Queue].
func (c ResumeUpstream) Decide(d *Draft) Outcome {
	reason := "running"
	for _, id := range append([]QueueID{GateID(c.Upstream)}, c.Queues...) {
		q := d.queue(id)
		if id.Upstream != c.Upstream || q.PausedUntil == 0 && q.Failures == 0 {
			continue
		}
		q.PausedUntil, q.PauseReason, q.Failures = 0, "", 0
		d.Queues.Put(id, q)
		reason = "resumed"
	}
	if reason == "resumed" {
		d.audit("", "upstream.resume", c.Upstream, "")
	}
	return done(reason, d.queue(GateID(c.Upstream)))
}
