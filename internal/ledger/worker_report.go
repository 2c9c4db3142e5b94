package ledger

import "github.com/pawlhq/pawl"

// WorkStatus is what a worker is told about its lease.
type WorkStatus struct {
	Lease     WorkLeaseID
	Operation Operation
	ExpiresAt pawl.Time
	// CancelRequested says that the worker shall stop: it was asked to be canceled,
	// or its deadline has passed.
	CancelRequested bool
}

// atWork is the operation of a lease that may still say something, or why it may
// not: own workers' outcomes are refused by fence, and the worker is told why
// (7-rules §4).
func (d *Draft) atWork(tenant string, lease WorkLeaseID) (Operation, *Outcome) {
	op, refusal := d.leasedOnce(tenant, lease)
	if refusal != nil {
		return op, refusal
	}
	refuse := func(kind pawl.Kind, reason, message string) (Operation, *Outcome) {
		out := dropped(kind, reason, message)
		out.Err.Operation = op.ID
		return op, &out
	}
	switch {
	case lease.Attempt < op.Creates:
		return refuse(pawl.Conflicting, "lease_lost", "this lease ran out and another worker has the operation since; drop the work")
	case op.WorkFailed&lease.bit() != 0, op.WorkDone:
		return refuse(pawl.Conflicting, "lease_ended", "this lease has ended by its worker's own report, which stays")
	case op.State.Terminal():
		return refuse(pawl.Conflicting, "finished", "the operation has ended as "+op.State.String()+"; drop the work")
	}
	return op, nil
}

// leasedOnce is the operation of a lease that was given, now or before.
func (d *Draft) leasedOnce(tenant string, lease WorkLeaseID) (Operation, *Outcome) {
	op, ok := d.Operations.Get(lease.Operation)
	given := lease.Attempt >= 1 && lease.Attempt <= op.Creates && op.Adapter == WorkerAdapter
	if !ok || tenant != "" && op.Tenant != tenant || !given {
		out := dropped(pawl.NotFound, "not_found", "no such lease")
		return op, &out
	}
	return op, nil
}

func statusOf(op Operation) WorkStatus {
	return WorkStatus{op.leaseID(), op, op.DueAt, op.CancelRequestedAt.IsSet()}
}

// Heartbeat says that a worker is at work still, and extends its lease. A lease
// that has run out is the worker's again, unless another worker has the operation.
type Heartbeat struct {
	Header
	Tenant string
	Lease  WorkLeaseID
	Up     Upstream
}

// Head is the command's header.
func (c Heartbeat) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c Heartbeat) Keys(k *Keys) { k.Operations = add(k.Operations, c.Lease.Operation) }

// Decide extends the lease and answers with its [WorkStatus]. From the deadline
// on the worker is told to stop (1-product D4).
func (c Heartbeat) Decide(d *Draft) Outcome {
	op, refusal := d.atWork(c.Tenant, c.Lease)
	if refusal != nil {
		return *refusal
	}
	if d.Now >= op.Deadline && !op.CancelRequestedAt.IsSet() {
		op.Expiring, op.CancelRequestedAt = true, d.Now
		d.note(op, History{Kind: "cancel_requested", Reason: "deadline", Version: op.Version})
	}
	if op.Leased != ActWork {
		d.note(op, History{Kind: WorkLine, Reason: "lease_kept", Detail: c.Lease.String(), Version: op.Version})
	}
	until := d.workUntil(c.Up, op)
	if op.Leased == ActWork {
		until = max(until, op.DueAt)
	}
	op.WaitingAt, op.Leased, op.DueAt = 0, ActWork, until
	d.saveDue(op)
	return done("extended", statusOf(op))
}

// ReportProgress shows how far a worker has come. It is for display only: it
// moves no state and extends no lease (as 7-rules R12 has it of providers).
type ReportProgress struct {
	Header
	Tenant string
	Lease  WorkLeaseID
	// Progress is in hundredths of a percent, -1 for none.
	Progress int32
	// Message is shown as the operation's upstream_state; empty for none.
	Message string
}

// Head is the command's header.
func (c ReportProgress) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ReportProgress) Keys(k *Keys) { k.Operations = add(k.Operations, c.Lease.Operation) }

// Decide writes the progress down and answers with the lease's [WorkStatus].
func (c ReportProgress) Decide(d *Draft) Outcome {
	op, refusal := d.atWork(c.Tenant, c.Lease)
	if refusal != nil {
		return *refusal
	}
	held := op
	if c.Progress >= 0 {
		op.Progress = c.Progress
	}
	if c.Message != "" {
		op.UpstreamState = c.Message
	}
	if op == held {
		return done("nothing_new", statusOf(op))
	}
	op.UpdatedAt = d.Now
	d.emitProgress(&op)
	d.Operations.Put(op.ID, op)
	return done("progress", statusOf(op))
}
