package sqlite

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// selection gathers the conditions of a list: fixed text, values apart.
type selection struct {
	conditions []string
	args       []value
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

func (s *selection) equal(column string, v value) {
	if s.driven {
		column = "+" + column
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
		s.and("+"+column+" = ?", intValue(want))
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
	return "WHERE " + strings.Join(s.conditions, " AND ") + order, append(s.args, limit(p.Limit))
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

// page reads one page of a list.
func page[R any](ctx context.Context, r *Reader, t *relation[R], s selection, p store.Page) ([]R, error) {
	rest, args := s.newest(p)
	return list(ctx, r, t, rest, args...)
}

// list reads the selected rows in one snapshot.
func list[R any](ctx context.Context, r *Reader, t *relation[R], rest string, args ...value) (rows []R, err error) {
	err = r.read(ctx, "list "+t.name, func(c *conn) (err error) {
		rows, err = query(c, t, rest, args...)
		return err
	})
	return rows, err
}
