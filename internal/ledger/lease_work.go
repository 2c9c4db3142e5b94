package ledger

import "github.com/pawlhq/pawl"

// LeaseWork leases the oldest due operations of a queue. For a submit the
// lease is the durable claim that precedes the first byte on the wire
// (1-product B1).
type LeaseWork struct {
	Header
	Queue QueueID
	Limit int
	Up    Upstream
}

// Lease is one leased action.
type Lease struct {
	Operation Operation
	Action    Action
	Fence     int64
}

// Head is the command's header.
func (c LeaseWork) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c LeaseWork) Keys(k *Keys) {
	k.Queues = add(k.Queues, c.Queue)
	if c.Queue.Kind == SubmitQueue {
		k.Queues = add(k.Queues, GateID(c.Queue.Upstream))
	}
	k.DueWork = add(k.DueWork, Window{c.Queue, c.Limit})
}

// Decide leases what is due and answers with []Lease.
func (c LeaseWork) Decide(d *Draft) Outcome {
	q, limit := d.queue(c.Queue), c.Limit
	var gate Queue
	if c.Queue.Kind == SubmitQueue {
		gate = d.queue(GateID(c.Queue.Upstream))
	}
	if max(q.PausedUntil, gate.PausedUntil) > d.Now {
		return done("paused", []Lease(nil))
	}
	probing := gate.Failures > 0
	if probing {
		limit = min(limit, 1)
	}
	rows, next := d.dueWork(Window{c.Queue, limit})
	leases := make([]Lease, 0, len(rows))
	for _, op := range rows {
		op = d.lease(op, c.Up)
		next = min(next, op.DueAt)
		leases = append(leases, Lease{op, op.Leased, op.Lease})
		if probing && op.Leased == ActSubmit {
			d.probe(c.Up)
		}
	}
	if q.NextDue != next {
		q.NextDue = next
		d.Queues.Put(q.ID, q)
	}
	return done("leased", leases)
}

func (d *Draft) lease(op Operation, up Upstream) Operation {
	op.Leased = nextAction(op, up, d.Now)
	op.Lease++
	op.DueAt = d.Now.Add(up.Timeout + LeaseMargin)
	if op.Leased == ActSubmit {
		op.Creates++
		// A claim that nothing was recorded of since may have reached the
		// provider, whatever becomes of this one.
		op.MayExist = op.MayExist || op.InFlight
		op.InFlight = true
		if !op.MayExist {
			op.FirstCreateAt, op.CreateCredential = d.Now, up.Credential
		}
		d.note(op, History{Kind: CreateLine, Version: op.Version})
	}
	if op.Leased == ActCancel {
		op.Cancels++
	}
	d.Operations.Put(op.ID, op)
	return op
}

// nextAction is what is to be done for an operation that is due.
func nextAction(op Operation, up Upstream, now pawl.Time) Action {
	switch {
	case op.ownWork(up):
		return ActAdvance
	case op.State == pawl.Pending:
		late := now >= op.Deadline || op.Creates >= up.SubmitAttempts
		stop := op.CancelRequestedAt.IsSet() && op.uncreated()
		if late || stop || (op.InFlight || op.MayExist) && !repeatable(op, up, now) {
			return ActAdvance
		}
		return ActSubmit
	case op.CancelDueAt.IsSet() && now >= op.CancelDueAt && up.Cancels && !op.State.Terminal():
		return ActCancel
	case op.State == pawl.Unconfirmed && up.Lookups && now < op.Deadline:
		return ActLookup
	case op.State == pawl.Unconfirmed || op.Task == "" || !up.Reads || op.State.Terminal() && op.Settled && !op.wantsRead():
		return ActAdvance
	default:
		return ActRead
	}
}

// repeatable reports whether a create that may have reached the provider can
// be sent again: the upstream is idempotent, its window is open and the
// credential is the one that made the first (1-product B2).
func repeatable(op Operation, up Upstream, now pawl.Time) bool {
	return up.Idempotent && op.CreateCredential == up.Credential && now < op.FirstCreateAt.Add(up.IdempotencyWindow)
}

// ReleaseLease hands back a lease whose action was not started, as a node does
// when it drains.
type ReleaseLease struct {
	Header
	Operation pawl.ID
	Fence     int64
}

// Head is the command's header.
func (c ReleaseLease) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ReleaseLease) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide makes the operation due now, as if it had not been leased.
func (c ReleaseLease) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok || op.Lease != c.Fence || op.Leased == NoAction || op.Leased == ActWork {
		return done("not_leased", nil)
	}
	if op.Leased == ActSubmit {
		op.Creates--
		op.InFlight = false
	}
	if op.Leased == ActCancel {
		op.Cancels--
	}
	op.Leased, op.DueAt = NoAction, d.Now
	d.saveDue(op)
	return done("released", nil)
}

// LoseLease ends a lease whose holder, a node, is known to be dead. What was
// under way stays marked, so that a create in flight is remembered. An own worker
// does not die with a node: its lease stays.
type LoseLease struct {
	Header
	Operation pawl.ID
	Fence     int64
}

// Head is the command's header.
func (c LoseLease) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c LoseLease) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide makes the lease run out now.
func (c LoseLease) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok || op.Lease != c.Fence || op.Leased == NoAction || op.Leased == ActWork || op.DueAt <= d.Now {
		return done("not_leased", nil)
	}
	op.DueAt = d.Now
	d.saveDue(op)
	return done("lost", nil)
}
