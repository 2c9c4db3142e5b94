package ledger

// RepairQueue sets a queue's next due time by its earliest row. The sweep
// sends it for queues that would otherwise be due too late; none should be.
type RepairQueue struct {
	Header
	Queue QueueID
}

// Head is the command's header.
func (c RepairQueue) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c RepairQueue) Keys(k *Keys) {
	k.Queues = add(k.Queues, c.Queue)
	if c.Queue.Kind == DeliveryQueue {
		k.DueDeliveries = add(k.DueDeliveries, Window{c.Queue, 1})
	} else {
		k.DueWork = add(k.DueWork, Window{c.Queue, 1})
	}
}

// Decide makes the queue due no later than its earliest row.
func (c RepairQueue) Decide(d *Draft) Outcome {
	if c.Queue.Kind == DeliveryQueue {
		rows, next := d.dueDeliveries(Window{c.Queue, 1}, d.Now)
		for _, row := range rows {
			next = min(next, row.DueAt)
		}
		d.touch(c.Queue, next)
		return done("repaired", nil)
	}
	rows, next := d.dueWork(Window{c.Queue, 1})
	for _, row := range rows {
		next = min(next, row.DueAt)
	}
	d.touch(c.Queue, next)
	return done("repaired", nil)
}
