package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl"
)

// divided are the tables that are divided by month, with the column whose ids
// begin with the time.
var divided = []string{"payloads", "history", "attempts"}

// monthsAhead is how many months have their partitions before they begin.
const monthsAhead = 2

const (
	lacksTables = "SELECT name FROM unnest($1::text[]) AS wanted (name) WHERE to_regclass(name) IS NULL"
	// Rows of the month in the default partition would have to be moved under a
	// lock on everything: they stay, and their month has no partition.
	keepShort = "SELECT set_config('lock_timeout', '1s', true)"
)

// makePartitions makes the partitions of this month and the next ones. What
// another node makes at the same time, or what is held by somebody for long, is
// left for the next time: until then the default partition takes the rows.
func (d *Driver) makePartitions(ctx context.Context) error {
	now := time.Now().UTC()
	var names []string
	wanted := make(map[string]partition)
	for i := range monthsAhead + 1 {
		month := time.Date(now.Year(), now.Month()+time.Month(i), 1, 0, 0, 0, 0, time.UTC)
		for _, table := range divided {
			name := fmt.Sprintf("%s_%s", table, month.Format("200601"))
			names = append(names, name)
			wanted[name] = partition{name, table, month}
		}
	}
	return d.writers.use(ctx, func(c *conn) error {
		var lacking []partition
		err := c.each(ctx, lacksTables, []value{textArray(names)}, func(row [][]byte) error {
			lacking = append(lacking, wanted[fromText(row[0])])
			return nil
		})
		for _, p := range lacking {
			err = errors.Join(err, c.makePartition(ctx, p))
		}
		return err
	})
}

// partition is that of a table and a month.
type partition struct {
	name, table string
	month       time.Time
}

// elsewhere are the SQLSTATEs that leave a partition for another time: it is
// there by now, somebody holds the table, or rows of its month are in the default
// partition.
var elsewhere = []string{"42P07", "23505", "42P17", "55P03", "23514"}

func (c *conn) makePartition(ctx context.Context, part partition) error {
	p := c.unnamed(ctx)
	p.exec(beginBatch, nil, nil)
	p.exec(keepShort, nil, nil)
	p.exec(fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS)", part.name, part.table), nil, nil)
	p.exec(fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')",
		part.table, part.name, firstID(part.month), firstID(part.month.AddDate(0, 1, 0))), nil, nil)
	p.exec(commitBatch, nil, nil)
	err := p.run()
	_ = c.rollBack()
	told := (*pgconn.PgError)(nil)
	if errors.As(err, &told) && slices.Contains(elsewhere, told.Code) {
		return nil
	}
	return err
}

// firstID is the lowest id of a moment in PostgreSQL's words.
func firstID(at time.Time) string {
	id := pawl.NewID(pawl.TimeOf(at), 0)
	// Only the time of it: the version and the rest are higher in every id.
	for i := 6; i < len(id); i++ {
		id[i] = 0
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

const (
	// oldParts are the partitions by month of a table that ended before the last
	// month began, the oldest first. Their names end with the month.
	oldParts = `SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = $1::text::regclass AND c.relname ~ '_[0-9]{6}$' AND right(c.relname, 6) < $2::text ORDER BY c.relname`
	anyRow = "SELECT 1 FROM %s LIMIT 1"
)

// dropPartitions drops the partitions of past months that nothing is left in: the
// space goes back to the system at once. What is held by somebody for long is left
// for the next time; rows that still come for such a month go to the default
// partition.
func (d *Driver) dropPartitions(ctx context.Context) error {
	before := time.Now().UTC().AddDate(0, 0, 1-time.Now().UTC().Day()).AddDate(0, -1, 0).Format("200601")
	return d.writers.use(ctx, func(c *conn) (err error) {
		for _, table := range divided {
			var parts []string
			err = errors.Join(err, c.each(ctx, oldParts, []value{textValue(table), textValue(before)}, func(row [][]byte) error {
				parts = append(parts, fromText(row[0]))
				return nil
			}))
			for _, part := range parts {
				err = errors.Join(err, c.dropPartition(ctx, table, part))
			}
		}
		return err
	})
}

// dropPartition drops a partition if it is empty, which is looked at once more
// when nobody can add to it.
func (c *conn) dropPartition(ctx context.Context, table, part string) error {
	empty := func(p *pipe) *bool {
		none := true
		p.query(fmt.Sprintf(anyRow, part), nil, func([][]byte) error {
			none = false
			return nil
		})
		return &none
	}
	p := c.unnamed(ctx)
	look := empty(p)
	if err := p.run(); err != nil || !*look {
		return err
	}
	defer func() { _ = c.rollBack() }()
	p = c.unnamed(ctx)
	p.exec(beginBatch, nil, nil)
	p.exec(keepShort, nil, nil)
	p.exec("LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE", nil, nil)
	look = empty(p)
	err := p.run()
	if err == nil && *look {
		p = c.unnamed(ctx)
		p.exec("DROP TABLE "+part, nil, nil)
		p.exec(commitBatch, nil, nil)
		err = p.run()
	}
	told := (*pgconn.PgError)(nil)
	if errors.As(err, &told) && (told.Code == "55P03" || told.Code == "42P01") {
		return nil // Somebody holds it, or has dropped it.
	}
	return err
}
