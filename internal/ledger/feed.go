package ledger

import "github.com/pawlhq/pawl"

// FeedURL stands in place of an address: nothing is sent to the endpoint, and
// its receiver fetches the events by their sequence. It is no URL that could
// ever be dialled.
const FeedURL = "feed:"

// Feed reports whether an endpoint's events are fetched and not sent.
func (ep Endpoint) Feed() bool { return ep.URL == FeedURL }

// lay puts a delivery into an endpoint's feed, which is all that is done with
// it: whoever reads the feed keeps the place. It gets its number here and now,
// under the queue's lock, in the order of the commits: an operation's versions
// come in theirs.
func (d *Draft) lay(row *Delivery) {
	q := d.queue(DeliveryQueueID(row.Endpoint))
	q.Sequence++
	d.Queues.Put(q.ID, q)
	row.Sequence, row.State, row.FinishedAt, row.DueAt = q.Sequence, pawl.DeliveryDelivered, d.Now, pawl.Never
}
