package sqlite

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// selection gathers the conditions of a list: fixed text, values apart.
type selection struct {
	// conditions are served by an index, or hold for nearly all rows; loose ones
	// may leave out all that are looked at.
	conditions, loose []string
	args, looseArgs   []value
	// driven is set once a condition has an index to drive the list. Later
	// ones get a unary plus, which keeps the planner from picking the index
	// of a less telling column: it has no figures to choose by.
	driven bool
	// low and high bound the ids, themselves excluded; zero does not.
	low, high pawl.ID
}

// only adds a condition that drives the list.
func (s *selection) only(condition string, args ...value) {
	s.driven = true
	s.and(condition, args...)
}

func (s *selection) and(condition string, args ...value) {
	s.conditions = append(s.conditions, condition)
	s.args = append(s.args, args...)
}

// sift adds a condition that no index helps with.
func (s *selection) sift(condition string, args ...value) {
	s.loose = append(s.loose, condition)
	s.looseArgs = append(s.looseArgs, args...)
}

func (s *selection) equal(column string, v value) {
	if s.driven {
		s.sift("+"+column+" = ?", v)
		return
	}
	s.only(column+" = ?", v)
}

// named restricts a text column that has an index of what is not empty.
func (s *selection) named(column, want string) {
	if want == "" {
		return
	}
	if s.driven {
		s.text(column, want)
		return
	}
	s.only(column + " <> ''")
	s.and(column+" = ?", textValue(want))
}

// text, id and number restrict a column unless the wanted value is zero.
func (s *selection) text(column, want string) {
	if want != "" {
		s.equal(column, textValue(want))
	}
}

func (s *selection) id(column string, want pawl.ID) {
	if !want.IsZero() {
		s.equal(column, idValue(want))
	}
}

// number columns have no index of their own.
func (s *selection) number(column string, want uint8) {
	if want != 0 {
		s.sift("+"+column+" = ?", intValue(want))
	}
}

// floor finds the last row that a page may be looked for among, if there are so
// many.
func (s selection) floor(table string, p store.Page) (sql string, args []value) {
	s.conditions, s.args = slices.Clip(s.conditions), slices.Clip(s.args)
	s.loose, s.looseArgs, p.Limit = nil, nil, 1
	rest, args := s.newest(p)
	return "SELECT id FROM " + table + " " + rest + " OFFSET ?", append(args, limit(p.Look.Most-1))
}

// until leaves out what lies beyond a row.
func (s *selection) until(end pawl.ID, p store.Page) {
	if p.Oldest {
		s.and("id <= ?", idValue(end))
	} else {
		s.and("id >= ?", idValue(end))
	}
}

// newest completes the selection to one page, newest first unless the page
// says otherwise.
func (s *selection) newest(p store.Page) (rest string, args []value) {
	order := " ORDER BY id DESC LIMIT ?"
	switch after := !p.After.IsZero(); {
	case p.Oldest:
		order = " ORDER BY id LIMIT ?"
		if p.After.Compare(s.low) > 0 {
			s.low = p.After
		}
	case after && (s.high.IsZero() || p.After.Compare(s.high) < 0):
		s.high = p.After
	}
	if s.high.IsZero() {
		s.high = pawl.ID(bytes.Repeat([]byte{0xff}, len(s.high)))
	}
	s.and("id < ?", idValue(s.high))
	if !s.low.IsZero() {
		s.and("id > ?", idValue(s.low))
	}
	all := strings.Join(append(s.conditions, s.loose...), " AND ")
	return "WHERE " + all + order, append(append(s.args, s.looseArgs...), limit(p.Limit))
}

// idLag is how much later than its id says a row may have happened.
const idLag = time.Second

// between restricts when a row happened. Ids carry the moment of the decision,
// which is no later, so that a range is found without walking up to it.
func (s *selection) between(column string, from, until pawl.Time) {
	if from != 0 {
		s.and("+"+column+" >= ?", intValue(from))
		if since := from.Add(-idLag); since > 0 {
			s.low = pawl.NewID(since, 0)
		}
	}
	if until != 0 {
		s.and("+"+column+" < ?", intValue(until))
		s.high = pawl.NewID(until, 0)
	}
}

// page reads one page of a list, looking no further than the page allows.
func page[R any](ctx context.Context, r *Reader, t *relation[R], s selection, p store.Page) (rows []R, err error) {
	err = r.read(ctx, "list "+t.name, func(c *conn) (err error) {
		if look := p.Look; look != nil {
			if look.End = (pawl.ID{}); look.Most > 0 && len(s.loose) > 0 {
				sql, args := s.floor(t.name, p)
				if err := c.each(sql, args, func(st *sqlite3.Stmt) { copy(look.End[:], st.ColumnRawBlob(0)) }); err != nil {
					return err
				}
				if !look.End.IsZero() {
					s.until(look.End, p)
				}
			}
		}
		rest, args := s.newest(p)
		rows, err = query(c, t, rest, args...)
		return err
	})
	return rows, err
}

// list reads the selected rows in one snapshot.
func list[R any](ctx context.Context, r *Reader, t *relation[R], rest string, args ...value) (rows []R, err error) {
	err = r.read(ctx, "list "+t.name, func(c *conn) (err error) {
		rows, err = query(c, t, rest, args...)
		return err
	})
	return rows, err
}
