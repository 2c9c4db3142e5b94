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
