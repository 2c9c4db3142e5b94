package postgres

import (
	"context"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

var _ store.Roster = (*Driver)(nil)

// Each node writes its own row only, in a statement by itself, and waits for
// nobody.
const (
	beatNode = `INSERT INTO nodes AS n (id, host, address, version, draining, lanes, waiting, creates, reads, deliveries, captures, started_at, seen_at)
VALUES ($1::uuid, $2::text, $3::text, $4::text, $5::boolean, $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::bigint, $11::bigint, statement_timestamp(), statement_timestamp())
ON CONFLICT (id) DO UPDATE SET draining = excluded.draining, lanes = excluded.lanes, waiting = excluded.waiting, creates = excluded.creates,
	reads = excluded.reads, deliveries = excluded.deliveries, captures = excluded.captures, seen_at = clock_timestamp()`
	leaveNode = "DELETE FROM nodes WHERE id = $1::uuid"
	listNodes = `SELECT id, host, address, version, draining, lanes, waiting, creates, reads, deliveries, captures, started_at, seen_at,
	(extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint FROM nodes ORDER BY id`
	oldNodes = `DELETE FROM nodes WHERE id IN (
	SELECT id FROM nodes WHERE seen_at < clock_timestamp() - interval '1 day' ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)`
)

// Beat notes a node's sign of life; see [store.Roster].
func (d *Driver) Beat(ctx context.Context, n store.Node) error {
	return d.write(ctx, "note a node", beatNode, idValue(n.ID), textValue(n.Host), textValue(n.Address), textValue(n.Version), boolValue(n.Draining),
		intValue(n.Lanes), intValue(n.Waiting), intValue(n.Creates), intValue(n.Reads), intValue(n.Deliveries), intValue(n.Captures))
}

// Leave takes a node off that stops.
func (d *Driver) Leave(ctx context.Context, node pawl.ID) error {
	return d.write(ctx, "take a node off", leaveNode, idValue(node))
}

// Nodes are those that have not left; see [store.Roster].
func (d *Driver) Nodes(ctx context.Context) (nodes []store.Node, err error) {
	err = d.each(ctx, "list nodes", listNodes, nil, func(row [][]byte) error {
		nodes = append(nodes, store.Node{
			ID: pawl.ID(row[0]), Host: fromText(row[1]), Address: fromText(row[2]), Version: fromText(row[3]), Draining: row[4][0] != 0,
			Lanes: fromInt(row[5]), Waiting: fromInt(row[6]), Creates: fromInt(row[7]), Reads: fromInt(row[8]),
			Deliveries: fromInt(row[9]), Captures: fromInt(row[10]), StartedAt: fromInstant(row[11]), SeenAt: fromInstant(row[12]),
			Unheard: max(time.Duration(fromInt(row[13]))*time.Millisecond, 0),
		})
		return nil
	})
	return nodes, err
}

// forgetNodes removes those that went silent long ago.
func (d *Driver) forgetNodes(ctx context.Context) error {
	return d.write(ctx, "forget nodes", oldNodes)
}

func (d *Driver) write(ctx context.Context, doing, sql string, args ...value) error {
	err := d.writers.use(ctx, func(c *conn) error { return c.dead(c.exec(ctx, sql, args...)) })
	return explain(ctx, doing, err)
}
