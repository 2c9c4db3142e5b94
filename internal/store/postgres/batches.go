package postgres

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/pawlhq/pawl"
)

const (
	// A batch that is asked for is lost unless it is there: the insert waits for
	// one that is just being committed, and keeps one that is still on its way
	// to the server from being committed later.
	loseBatch = "INSERT INTO batches (id, lost) VALUES ($1::uuid, true) ON CONFLICT (id) DO NOTHING"
	findBatch = "SELECT lost FROM batches WHERE id = $1::uuid"
	// Ids of batches begin with the time.
	latestBatch = "SELECT id FROM batches WHERE NOT lost ORDER BY id DESC LIMIT 1"
	oldBatches  = `DELETE FROM batches WHERE id IN (
	SELECT id FROM batches WHERE id < $1::uuid ORDER BY id LIMIT 5000 FOR NO KEY UPDATE SKIP LOCKED)`
)

// batchesKept is how long batches are remembered. Who is in doubt asks within
// seconds.
const batchesKept = 6 * time.Hour

// Committed reports whether a batch took effect; see [store.Driver]. One that
// did not never will.
func (d *Driver) Committed(ctx context.Context, batch pawl.ID) (found bool, err error) {
	err = d.writers.use(ctx, func(c *conn) error {
		p := c.pipe(ctx)
		p.exec(beginBatch, nil, nil)
		p.exec(guardBatch, nil, nil)
		p.exec(loseBatch, []value{idValue(batch)}, nil)
		p.query(findBatch, []value{idValue(batch)}, func(row [][]byte) error {
			found = row[0][0] == 0
			return nil
		})
		p.exec(commitBatch, nil, nil)
		if err := p.run(); err != nil {
			found = false
			_ = c.rollBack()
			return c.dead(err)
		}
		return nil
	})
	return found, explain(ctx, "look up a batch", err)
}

// LastCommit is when the latest transaction of the ledger began, to the
// millisecond below; 0 where there was none lately.
func (r *Reader) LastCommit(ctx context.Context) (at pawl.Time, err error) {
	err = r.each(ctx, "find the last commit", latestBatch, nil, func(row [][]byte) error {
		// An id begins with its milliseconds (RFC 9562 §5.7).
		var text [8]byte
		copy(text[2:], row[0])
		at = pawl.Time(binary.BigEndian.Uint64(text[:]) * 1000)
		return nil
	})
	return at, err
}

// Clock is the time of the database.
func (r *Reader) Clock(ctx context.Context) (at pawl.Time, err error) {
	err = r.each(ctx, "read the clock", readClock, nil, func(row [][]byte) error {
		at = fromInstant(row[0])
		return nil
	})
	return at, err
}

// forgetBatches removes batches that nobody asks for any more, in bounded
// steps.
func (d *Driver) forgetBatches(ctx context.Context) error {
	before := pawl.NewID(pawl.TimeOf(time.Now().Add(-batchesKept)), 0)
	return d.writers.use(ctx, func(c *conn) error {
		return c.exec(ctx, oldBatches, idValue(before))
	})
}
