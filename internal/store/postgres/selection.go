package postgres

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// selection gathers the conditions of a list: fixed text, values apart.
type selection struct {
	conditions []string
	args       []value
	// low and high bound the ids, themselves excluded; zero does not.
	low, high pawl.ID
}

// and adds a condition; each ? in it stands for the next of the values, and is
// followed by its type.
func (s *selection) and(condition string, args ...value) {
	for _, a := range args {
		s.args = append(s.args, a)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(s.args)), 1)
	}
	s.conditions = append(s.conditions, condition)
}

// named restricts a text column that has an index of what is not empty.
func (s *selection) named(column, want string) {
	if want != "" {
		s.and(column+" <> '' AND "+column+" = ?::text", textValue(want))
	}
}

// text, id and number restrict a column unless the wanted value is zero.
func (s *selection) text(column, want string) {
	if want != "" {
		s.and(column+" = ?::text", textValue(want))
	}
}

func (s *selection) id(column string, want pawl.ID) {
	if !want.IsZero() {
		s.and(column+" = ?::uuid", idValue(want))
	}
}

func (s *selection) number(column string, want uint8) {
	if want != 0 {
		s.and(column+" = ?::bigint", intValue(want))
	}
}

// newest completes the selection to one page, newest first unless the page
// says otherwise.
func (s *selection) newest(p store.Page) (rest string, args []value) {
	order := " ORDER BY id DESC LIMIT "
	switch after := !p.After.IsZero(); {
	case p.Oldest:
		order = " ORDER BY id LIMIT "
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
	s.args = append(s.args, limit(p.Limit))
	return fmt.Sprintf("WHERE %s%s$%d::bigint", strings.Join(s.conditions, " AND "), order, len(s.args)), s.args
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

// page reads one page of a list.
func page[R any](ctx context.Context, r *Reader, t *relation[R], s selection, p store.Page) ([]R, error) {
	rest, args := s.newest(p)
	return list(ctx, r, t, rest, args...)
}
