package ledger

import (
	"time"

	"github.com/pawlhq/pawl"
)

// lookupMax is the longest wait between two lookups of one operation.
const lookupMax = time.Minute

// RecordLookup takes what a lookup by our own reference showed: the task of an
// unconfirmed create, or nothing yet (1-product B2).
type RecordLookup struct {
	Header
	Up        Upstream
	Operation pawl.ID
	Fence     int64
	// Task is empty where none was found.
	Task    string
	Message string
}

// Head is the command's header.
func (c RecordLookup) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RecordLookup) Keys(k *Keys) {
	k.Operations = add(k.Operations, c.Operation)
	if c.Task != "" {
		k.Tasks = add(k.Tasks, TaskID{c.Up.Name, c.Task})
	}
}

// Decide attaches the task, or sets the next lookup, and answers with the
// operation. Not found proves nothing: the create may still be under way.
func (c RecordLookup) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	mine := op.Lease == c.Fence && op.Leased == ActLookup
	if mine {
		op.Leased = NoAction
	}
	if c.Task != "" {
		d.attach(c.Up, &op, c.Task, "")
		d.saveDue(op)
		return done("found", op)
	}
	if !mine {
		return done("old_lease", op)
	}
	d.note(op, History{Kind: "lookup", Reason: "not_found", Detail: c.Message, Version: op.Version})
	if op.State == pawl.Unconfirmed {
		d.scheduleLookup(c.Up, &op)
	}
	d.saveDue(op)
	return done("not_found", op)
}

// scheduleLookup sets when an unconfirmed operation is looked up next; without
// a lookup it waits for its deadline.
func (d *Draft) scheduleLookup(up Upstream, op *Operation) {
	op.DueAt = max(op.Deadline, d.Now)
	if !up.Lookups || d.Now >= op.Deadline {
		return
	}
	op.DueAt = min(op.DueAt, d.Now.Add(d.jitter(op.ReadEvery)))
	op.ReadEvery = min(2*op.ReadEvery, lookupMax)
}
