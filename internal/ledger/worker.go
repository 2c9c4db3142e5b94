package ledger

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl"
)

// WorkerAdapter is the adapter of operations that own workers do: it is kept
// with the operation, whatever becomes of its upstream's configuration.
const WorkerAdapter = "worker/1"

// leasePrefix begins the text of a [WorkLeaseID].
const leasePrefix = "lease"

// MaxWorkAttempts is how many leases one operation may have at most.
const MaxWorkAttempts = 50

// WorkLeaseID names one lease of an operation by an own worker: the first, the
// second and so on. It is the fence (7-rules §4): once there is a later lease,
// nothing that is said under this one counts. It is no capability: whoever
// names it needs a key of the operation's tenant.
type WorkLeaseID struct {
	Operation pawl.ID
	// Attempt counts from 1.
	Attempt int32
}

// String is the id on the wire: lease_, the suffix of the operation's id, and
// the attempt.
func (id WorkLeaseID) String() string {
	return id.Operation.Text(leasePrefix) + "_" + strconv.Itoa(int(id.Attempt))
}

// ParseWorkLeaseID reads what [WorkLeaseID.String] writes, and nothing else.
func ParseWorkLeaseID(text string) (WorkLeaseID, error) {
	cut := strings.LastIndexByte(text, '_')
	if cut < 0 {
		return WorkLeaseID{}, errNoLease
	}
	op, err := pawl.ParseID(leasePrefix, text[:cut])
	if err != nil {
		return WorkLeaseID{}, errNoLease
	}
	n, err := strconv.ParseInt(text[cut+1:], 10, 32)
	id := WorkLeaseID{op, int32(n)}
	if err != nil || n < 1 || id.String() != text {
		return WorkLeaseID{}, errNoLease
	}
	return id, nil
}

var errNoLease = errors.New("not the id of a worker's lease")

// leaseID is the operation's latest lease by an own worker.
func (op Operation) leaseID() WorkLeaseID { return WorkLeaseID{op.ID, op.Creates} }

// bit is the lease's place in [Operation.WorkFailed].
func (id WorkLeaseID) bit() int64 { return 1 << (min(id.Attempt, MaxWorkAttempts) - 1) }

// ownWork reports whether own workers, and nobody else, decide what becomes of
// an unfinished operation. Where an upstream had another preset before, what it
// may have been given there is not theirs.
func (op Operation) ownWork(up Upstream) bool {
	elsewhere := op.Task != "" || op.InFlight || op.MayExist || op.State == pawl.Unconfirmed
	return (up.Worker || op.Adapter == WorkerAdapter) && !elsewhere && !op.State.Terminal()
}

// offer lets own workers lease the operation from a moment on. Until then, and
// for as long as nobody takes it, only its deadline is to be looked after.
func (op *Operation) offer(at pawl.Time) {
	op.Leased, op.WaitingAt, op.DueAt = NoAction, at, op.Deadline
}

// advanceWork decides what time alone decides for an operation of own workers: a
// lease that ran out without a word, or the deadline of one that nobody has. A
// worker's silence confirms a cancel that it was told of (1-product D3).
func (d *Draft) advanceWork(up Upstream, op *Operation) string {
	held := op.WaitingAt == 0 && op.Creates > 0
	if held {
		d.note(*op, History{Kind: WorkLine, Reason: "lease_expired", Detail: op.leaseID().String(), Version: op.Version})
	}
	switch {
	case op.CancelRequestedAt.IsSet() && !op.Expiring:
		d.end(up, op, pawl.Canceled)
		return "canceled"
	case d.Now >= op.Deadline:
		d.end(up, op, pawl.Expired)
		return "expired"
	case op.WaitingAt.IsSet():
		op.DueAt = op.Deadline
		return "waiting"
	case held && op.Creates >= up.SubmitAttempts:
		d.fail(up, op, pawl.FailTimeout, "", "no worker finished it: the leases of all its attempts ran out")
		return "failed"
	}
	if up.Worker {
		op.Adapter = up.Adapter
	}
	// It waits where it has waited before: the oldest goes first.
	op.offer(op.CreatedAt)
	return "waiting"
}

// workUntil is when a lease that begins or goes on now ends. Past the deadline a
// worker has the length of one lease to hand in what it has.
func (d *Draft) workUntil(up Upstream, op Operation) pawl.Time {
	return min(d.Now, op.Deadline).Add(up.WorkLease)
}
