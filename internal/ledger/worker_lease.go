package ledger

import "github.com/pawlhq/pawl"

// WorkOffer is an operation that a worker may get, with its upstream.
type WorkOffer struct {
	Operation pawl.ID
	Up        Upstream
}

// WorkLease is an operation that a worker has got.
type WorkLease struct {
	ID        WorkLeaseID
	Operation Operation
	ExpiresAt pawl.Time
}

// LeaseForWorker gives an own worker the first of the offered operations that
// are still free. A lease makes a pending operation running, and no later one
// makes it anything else. That it was given, and with it the input, is audited
// (7-rules R53).
type LeaseForWorker struct {
	Header
	// Tenant restricts whose operations are given; empty for an admin key.
	Tenant string
	Offers []WorkOffer
	Limit  int
}

// Head is the command's header.
func (c LeaseForWorker) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c LeaseForWorker) Keys(k *Keys) {
	for _, o := range c.Offers {
		k.Operations = add(k.Operations, o.Operation)
		k.Queues = add(k.Queues, GateID(o.Up.Name))
	}
}

// Decide leases what is free and answers with []WorkLease.
func (c LeaseForWorker) Decide(d *Draft) Outcome {
	var leases []WorkLease
	for _, o := range c.Offers {
		if len(leases) == c.Limit {
			break
		}
		op, ok := d.Operations.Get(o.Operation)
		if ok && (c.Tenant == "" || op.Tenant == c.Tenant) && d.free(o.Up, op) {
			leases = append(leases, d.leaseWork(o.Up, op))
		}
	}
	if len(leases) == 0 {
		return done("nothing_free", leases)
	}
	return done("leased", leases)
}

// free reports whether a worker may have the operation now.
func (d *Draft) free(up Upstream, op Operation) bool {
	waits := op.WaitingAt.IsSet() && op.WaitingAt <= d.Now && d.Now < op.Deadline
	return waits && up.Worker && op.Upstream == up.Name && d.queue(GateID(up.Name)).PausedUntil <= d.Now
}

func (d *Draft) leaseWork(up Upstream, op Operation) WorkLease {
	op.Creates++
	op.WaitingAt, op.Leased = 0, ActWork
	op.DueAt = d.workUntil(up, op)
	lease := op.leaseID()
	d.note(op, History{Kind: CreateLine, Reason: "leased", Detail: lease.String(), Version: op.Version})
	d.audit(op.Tenant, "work.lease", op.ID.Text(pawl.PrefixOperation), lease.String())
	if op.State == pawl.Pending {
		op.State, op.SubmittedAt = pawl.Running, d.Now
		d.emit(&op, pawl.TypeRunning)
	}
	d.saveDue(op)
	return WorkLease{lease, op, op.DueAt}
}

// ReturnWork takes a lease back that its worker never heard of, since it was
// gone when the answer was there: the operation waits as if nothing had been.
type ReturnWork struct {
	Header
	Lease WorkLeaseID
}

// Head is the command's header.
func (c ReturnWork) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ReturnWork) Keys(k *Keys) { k.Operations = add(k.Operations, c.Lease.Operation) }

// Decide offers the operation anew, unless the lease has ended already.
func (c ReturnWork) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Lease.Operation)
	if !ok || op.leaseID() != c.Lease || op.Leased != ActWork {
		return done("not_leased", nil)
	}
	op.Creates--
	op.offer(op.CreatedAt)
	d.note(op, History{Kind: WorkLine, Reason: "returned", Detail: c.Lease.String(), Version: op.Version})
	d.stopUncreated(Upstream{Name: op.Upstream, Adapter: op.Adapter}, &op)
	d.saveDue(op)
	return done("returned", nil)
}

// SpareWork gives the worker of a node that was away time to be heard again: a
// lease that would run out before it could says nothing about its worker.
type SpareWork struct {
	Header
	Operation pawl.ID
	Up        Upstream
}

// Head is the command's header.
func (c SpareWork) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c SpareWork) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide lets a lease last as long from now as a new one would at least.
func (c SpareWork) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	until := d.Now.Add(c.Up.WorkLease)
	if !ok || op.Leased != ActWork || op.DueAt >= until {
		return done("not_leased", nil)
	}
	op.DueAt = until
	d.saveDue(op)
	return done("spared", nil)
}
