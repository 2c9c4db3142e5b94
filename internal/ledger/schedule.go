package ledger

import (
	"encoding/binary"
	"time"

	"github.com/pawlhq/pawl"
)

// LeaseMargin is what a lease lasts longer than the action's own timeout, so
// that an action that was slow but in time still records under its lease. An
// action that has not begun by then is not begun: it could outlast its lease.
const LeaseMargin = 15 * time.Second

// queueOf is the kind of queue that an operation waits in.
func queueOf(op Operation) QueueKind {
	if op.State == pawl.Pending {
		return SubmitQueue
	}
	return ReadQueue
}

// saveDue puts an operation and makes sure that its queue is ready by the time
// the operation is due. One that stays in its queue and is due no sooner than
// before the command needs nothing of it: the queue was ready in time for that,
// and who makes it ready later counts the row as it was or waits for it.
func (d *Draft) saveDue(op Operation) {
	op.Queue = queueOf(op)
	d.Operations.Put(op.ID, op)
	was, ok := d.Operations.table.Get(op.ID)
	if !ok || op.Queue != was.Queue || op.DueAt < was.DueAt {
		d.touch(WorkQueueID(op.Queue, op.Upstream, op.Tenant), op.DueAt)
	}
}

// touch keeps a queue's next due time at or before at.
func (d *Draft) touch(id QueueID, at pawl.Time) {
	if at == pawl.Never {
		return
	}
	q := d.queue(id)
	if at < q.NextDue {
		q.NextDue = at
		d.Queues.Put(id, q)
	}
}

// queue is a queue's row; one that does not exist yet is due never.
func (d *Draft) queue(id QueueID) Queue {
	q, ok := d.Queues.Get(id)
	if !ok {
		q = Queue{ID: id, NextDue: pawl.Never}
	}
	return q
}

// jitter moves a duration by up to ±10 %, drawn from the command's seed.
func (d *Draft) jitter(of time.Duration) time.Duration { return d.vary(of, 10) }

// vary moves a duration by up to that many percent either way.
func (d *Draft) vary(of time.Duration, percent int64) time.Duration {
	id := d.NewID()
	x := int64(binary.BigEndian.Uint32(id[10:14]))%2001 - 1000
	return of + time.Duration(int64(of)/100_000*percent*x)
}

// backoff is the wait before try n (1, 2, …): doubling from first to most.
func backoff(first, most time.Duration, n int32) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}

// scheduleRead sets when the operation is read next, growing the interval.
func (d *Draft) scheduleRead(up Upstream, op *Operation) {
	op.DueAt = d.Now.Add(d.jitter(op.ReadEvery))
	op.ReadEvery = min(up.ReadMax, time.Duration(int64(op.ReadEvery)*up.ReadFactor/1000))
	if !up.Reads {
		op.DueAt = pawl.Never
	}
	d.boundByDeadline(up, op)
}

// boundByDeadline makes an unfinished operation due no later than its
// deadline, at once where that has passed, nor than its cancel, and one with
// money still open no later than the time by which its final cost was due.
func (d *Draft) boundByDeadline(up Upstream, op *Operation) {
	switch {
	case !op.State.Terminal():
		op.DueAt = min(op.DueAt, max(op.Deadline, d.Now))
		if op.CancelDueAt.IsSet() && up.Cancels {
			op.DueAt = min(op.DueAt, max(op.CancelDueAt, d.Now))
		}
	case op.State.Terminal() && !op.Settled:
		if last := op.FinishedAt.Add(up.SettleWithin); last > d.Now {
			op.DueAt = min(op.DueAt, last)
		}
	}
}

// dueWork are the operations of a queue that are due, oldest first, and when
// the next one after them will be due.
func (d *Draft) dueWork(w Window) (rows []Operation, next pawl.Time) {
	h, ok := d.rows.dueWork[w.Queue]
	if !ok {
		panic(Miss{Keys: Keys{DueWork: []Window{w}}})
	}
	var all []Due
	for id, op := range d.Operations.all() {
		if h.holds(w.Queue, op) {
			all = append(all, Due{op.DueAt, id})
		}
	}
	ids, next := cut(all, h, w, d.Now, Keys{DueWork: []Window{w}})
	for _, id := range ids {
		op, _ := d.Operations.Get(id)
		rows = append(rows, op)
	}
	return rows, next
}

// dueDeliveries is [Draft.dueWork] for an endpoint's deliveries, those due by
// a moment.
func (d *Draft) dueDeliveries(w Window, by pawl.Time) (rows []Delivery, next pawl.Time) {
	h, ok := d.rows.dueDeliveries[w.Queue]
	if !ok {
		panic(Miss{Keys: Keys{DueDeliveries: []Window{w}}})
	}
	var all []Due
	for id, row := range d.Deliveries.all() {
		if row.DueAt != pawl.Never && row.Endpoint == w.Queue.Endpoint && h.covers(row.DueAt, id) {
			all = append(all, Due{row.DueAt, id})
		}
	}
	ids, next := cut(all, h, w, by, Keys{DueDeliveries: []Window{w}})
	for _, id := range ids {
		row, _ := d.Deliveries.Get(id)
		rows = append(rows, row)
	}
	return rows, next
}

// cut takes the rows of a window that are due by a moment. Earlier commands of the batch may have
// used up what was loaded; if rows beyond the horizon might matter, that is a
// miss and the window is loaded anew. Where rows had left before they were
// locked there are fewer, and the horizon is when the queue is due next.
func cut(all []Due, h horizon, w Window, by pawl.Time, again Keys) (ids []pawl.ID, next pawl.Time) {
	sortDue(all)
	if !h.open && len(all)+h.left <= w.Limit {
		panic(Miss{Keys: again})
	}
	next = pawl.Never
	if !h.open {
		next = h.at
	}
	for _, row := range all {
		if len(ids) == w.Limit || row.At > by {
			return ids, row.At
		}
		ids = append(ids, row.ID)
	}
	return ids, next
}
