package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// condition is one of a selection: each ? in its text stands for the next of the
// values, and is followed by its type.
type condition struct {
	text string
	args []value
}

// selection gathers the conditions of a list: fixed text, values apart.
type selection struct {
	// conditions are served by an index, or hold for nearly all rows; loose ones
	// may leave out all that are looked at.
	conditions, loose []condition
	// driven is set once a condition has an index to drive the list.
	driven bool
	// lead is the column that drives the list by an index of it and the id, nil
	// where something else does.
	lead *lead
	// low and high bound the ids, themselves excluded; zero does not.
	low, high pawl.ID
}

// lead is a column and the one value of it that is wanted. It is not compared by
// itself but together with the id, in bounds and order alike: else the planner
// takes all rows of the value to be spread evenly over the table, and may walk the
// primary key past all that came after the last of them.
type lead struct {
	column, kind string
	value        value
}

// and adds a condition.
func (s *selection) and(text string, args ...value) {
	s.conditions = append(s.conditions, condition{text, args})
}

// only adds a condition that drives the list.
func (s *selection) only(text string, args ...value) {
	s.driven = true
	s.and(text, args...)
}

// sift adds a condition that no index helps with.
func (s *selection) sift(text string, args ...value) {
	s.loose = append(s.loose, condition{text, args})
}

// equal drives the list unless something else does: by an index of the column and
// the id, which is one of those rows alone for which held is true.
func (s *selection) equal(column, kind, held string, v value) {
	if s.driven {
		s.sift(column+" = ?::"+kind, v)
		return
	}
	s.only(held)
	s.lead = &lead{column, kind, v}
}

// named restricts a text column that has an index of what is not empty.
func (s *selection) named(column, want string) {
	if want != "" {
		s.equal(column, "text", column+" <> ''", textValue(want))
	}
}

// text, id and number restrict a column unless the wanted value is zero.
func (s *selection) text(column, want string) {
	if want != "" {
		s.equal(column, "text", column+" IS NOT NULL", textValue(want))
	}
}

func (s *selection) id(column string, want pawl.ID) {
	if !want.IsZero() {
		s.equal(column, "uuid", column+" IS NOT NULL", idValue(want))
	}
}

// number columns have no index of their own.
func (s *selection) number(column string, want uint8) {
	if want != 0 {
		s.sift(column+" = ?::bigint", intValue(want))
	}
}

// bounds adds those of the page, and gives its order.
func (s *selection) bounds(p store.Page) (order string) {
	down := " DESC"
	switch after := !p.After.IsZero(); {
	case p.Oldest:
		down = ""
		if p.After.Compare(s.low) > 0 {
			s.low = p.After
		}
	case after && (s.high.IsZero() || p.After.Compare(s.high) < 0):
		s.high = p.After
	}
	if s.high.IsZero() {
		s.high = pawl.ID(bytes.Repeat([]byte{0xff}, len(s.high)))
	}
	s.and("id < ?::uuid", idValue(s.high))
	if !s.low.IsZero() {
		s.and("id > ?::uuid", idValue(s.low))
	}
	l := s.lead
	if l == nil {
		return " ORDER BY id" + down + " LIMIT "
	}
	// With equal values allowed the planner knows how many rows there are.
	s.and("("+l.column+", id) <= (?::"+l.kind+", ?::uuid)", l.value, idValue(s.high))
	s.and("("+l.column+", id) >= (?::"+l.kind+", ?::uuid)", l.value, idValue(s.low))
	return " ORDER BY " + l.column + down + ", id" + down + " LIMIT "
}

// statement is text with the values that were put in.
type statement struct {
	text strings.Builder
	args []value
}

// where adds the conditions of a query, if there are any.
func (s *statement) where(all []condition) {
	if len(all) > 0 {
		s.text.WriteString("WHERE ")
		s.all(all)
	}
}

// all adds conditions that must all hold.
func (s *statement) all(all []condition) {
	for i, c := range all {
		if i > 0 {
			s.text.WriteString(" AND ")
		}
		for _, a := range c.args {
			c.text = strings.Replace(c.text, "?", s.put(a), 1)
		}
		s.text.WriteString(c.text)
	}
}

// put adds a value and gives its place.
func (s *statement) put(v value) string {
	s.args = append(s.args, v)
	return fmt.Sprintf("$%d", len(s.args))
}

// count adds a number of rows.
func (s *statement) count(n int) { s.text.WriteString(s.put(limit(n)) + "::bigint") }

// newest completes the selection to one page, newest first unless the page
// says otherwise.
func (s selection) newest(p store.Page) (rest string, args []value) {
	order := s.bounds(p)
	var out statement
	out.where(slices.Concat(s.conditions, s.loose))
	out.text.WriteString(order)
	out.count(p.Limit)
	return out.text.String(), out.args
}

// looking is the page among the first rows that an index drives to: the limit
// within keeps the planner from looking elsewhere.
func (s selection) looking(table string, p store.Page) (from string, args []value) {
	order := s.bounds(p)
	var out statement
	out.text.WriteString("(SELECT * FROM " + table + " ")
	out.where(s.conditions)
	out.text.WriteString(order)
	out.count(p.Look.Most)
	out.text.WriteString(") AS " + table + " ")
	out.where(s.loose)
	out.text.WriteString(order)
	out.count(p.Limit)
	return out.text.String(), out.args
}

// step is the ids of the first rows that an index drives to, each with whether
// the loose conditions hold for it too.
func (s selection) step(table string, p store.Page) (sql string, args []value) {
	order := s.bounds(p)
	var out statement
	out.text.WriteString("SELECT id, true")
	if len(s.loose) > 0 {
		out.text.WriteString(" AND ")
		out.all(s.loose)
	}
	out.text.WriteString(" FROM " + table + " ")
	out.where(s.conditions)
	out.text.WriteString(order)
	out.count(p.Limit)
	return out.text.String(), out.args
}

// floor finds the last row that a page may be looked for among, if there are so
// many.
func (s selection) floor(table string, p store.Page) (sql string, args []value) {
	order := s.bounds(p)
	var out statement
	out.text.WriteString("SELECT id FROM " + table + " ")
	out.where(s.conditions)
	out.text.WriteString(order)
	out.count(1)
	out.text.WriteString(" OFFSET ")
	out.count(p.Look.Most - 1)
	return out.text.String(), out.args
}

// idLag is how much later than its id says a row may have happened.
const idLag = time.Second

// between restricts when a row happened. Ids carry the moment of the decision,
// which is no later, so that a range is found without walking up to it.
func (s *selection) between(column string, from, until pawl.Time) {
	if from != 0 {
		s.and(column+" >= ?::timestamptz", timeValue(from))
		if since := from.Add(-idLag); since > 0 {
			s.low = pawl.NewID(since, 0)
		}
	}
	if until != 0 {
		s.and(column+" < ?::timestamptz", timeValue(until))
		s.high = pawl.NewID(until, 0)
	}
}

// page reads one page of a list, looking no further than the page allows.
func page[R any](ctx context.Context, r *Reader, t *relation[R], s selection, p store.Page) (rows []R, err error) {
	look := p.Look
	if look != nil {
		look.End = pawl.ID{}
	}
	if look == nil || look.Most <= 0 || len(s.loose) == 0 {
		rest, args := s.newest(p)
		return list(ctx, r, t, rest, args...)
	}
	err = r.read(ctx, "list "+t.name, func(c *conn) error {
		from, args := s.looking(t.name, p)
		if err := c.each(ctx, "SELECT "+t.list+" FROM "+from, args, into(t, &rows)); err != nil || len(rows) >= p.Limit {
			return err
		}
		sql, args := s.floor(t.name, p)
		return c.each(ctx, sql, args, func(row [][]byte) error {
			copy(look.End[:], row[0])
			return nil
		})
	})
	return rows, err
}
