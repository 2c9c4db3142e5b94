package sqlite

import (
	"bytes"
	"context"
	"strings"

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

// newest completes the selection to one page, newest first.
func (s *selection) newest(p store.Page) (rest string, args []value) {
	after := p.After
	if after.IsZero() {
		after = pawl.ID(bytes.Repeat([]byte{0xff}, len(after)))
	}
	s.and("id < ?", idValue(after))
	return "WHERE " + strings.Join(s.conditions, " AND ") + " ORDER BY id DESC LIMIT ?", append(s.args, limit(p.Limit))
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
