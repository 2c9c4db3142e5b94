package audit

import (
	"context"
	"crypto/hmac"
	"fmt"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// step is how many rows are read at once.
const step = 200

// Reader is what the audit and its seals are read from.
type Reader interface {
	Audits(ctx context.Context, f store.AuditFilter, p store.Page) ([]ledger.Audit, error)
	AuditSeals(ctx context.Context, after int64, limit int) ([]ledger.AuditSeal, error)
}

// Lines visits the lines after one up to another, or all that follow where that is
// zero, in the order of their ids, at most so many.
func Lines(ctx context.Context, r Reader, after, last pawl.ID, most int, visit func(ledger.Audit)) error {
	for p := (store.Page{After: after, Oldest: true}); most > 0; {
		p.Limit = min(step, most)
		rows, err := r.Audits(ctx, store.AuditFilter{}, p)
		if err != nil {
			return err
		}
		for _, a := range rows {
			if !last.IsZero() && a.ID.Compare(last) > 0 {
				return nil
			}
			visit(a)
		}
		if len(rows) < p.Limit {
			return nil
		}
		most -= len(rows)
		p.After = rows[len(rows)-1].ID
	}
	return nil
}

const rule = "the audit is only added to"

// Check holds the lines of the audit against their seals, and tells visit of each
// seal that they do not fit, never of what a line says. Without a key it is found
// whether seals and lines are missing or too many, not whether they were changed.
// It works beside a running node. It returns how many seals there are.
func Check(ctx context.Context, r Reader, k Key, visit func(ledger.Violation) error) (seals int, err error) {
	c := checker{reader: r, key: k}
	for {
		some, err := r.AuditSeals(ctx, c.before.Number, step)
		if err != nil {
			return seals, err
		}
		for _, s := range some {
			wrong, err := c.seal(ctx, s)
			if err == nil && wrong != "" {
				err = visit(ledger.Violation{Row: fmt.Sprintf("audit seal %d", s.Number), Rule: rule, Detail: wrong})
			}
			if err != nil {
				return seals, err
			}
			c.before = s
			seals++
		}
		if len(some) < step {
			return seals, nil
		}
	}
}

type checker struct {
	reader Reader
	key    Key
	// before is the seal before the one that is looked at.
	before ledger.AuditSeal
}

// seal says what is wrong about a seal and its lines. Who removes old lines may
// have done so between two looks: then it is not wrong.
func (c *checker) seal(ctx context.Context, s ledger.AuditSeal) (wrong string, err error) {
	if wrong, err = c.look(ctx, s); wrong == "" || err != nil || s.Removed() {
		return wrong, err
	}
	now, err := c.reader.AuditSeals(ctx, s.Number-1, 1)
	if err != nil || len(now) == 0 || now[0] == s {
		return wrong, err
	}
	if now[0].Number != s.Number {
		return "", nil // It was the chain's first, and a later one is now.
	}
	return c.look(ctx, now[0])
}

func (c *checker) look(ctx context.Context, s ledger.AuditSeal) (string, error) {
	between := fmt.Sprintf("between %s and %s", c.after(), s.Last)
	switch {
	case s.Number != c.before.Number+1 && !(s.Removed() && c.before.Number == 0):
		return fmt.Sprintf("the seals from %d on are missing before it", c.before.Number+1), nil
	case s.Last.Compare(c.before.Last) <= 0:
		return "it ends before the one before it", nil
	case s.Removed():
		return c.removed(ctx, s)
	}
	stretch, n := c.key.After(c.before), int64(0)
	// One more than there should be says all that there is to say.
	err := Lines(ctx, c.reader, c.before.Last, s.Last, int(s.Lines)+1, func(a ledger.Audit) {
		stretch.Add(a)
		n++
	})
	switch {
	case err != nil:
		return "", err
	case n < s.Lines:
		return fmt.Sprintf("%d of %d lines %s were removed", s.Lines-n, s.Lines, between), nil
	case n > s.Lines:
		return fmt.Sprintf("lines %s were added to the %d that were sealed", between, s.Lines), nil
	case stretch.last != s.Last:
		return fmt.Sprintf("the last of the lines %s is another", between), nil
	}
	if made := stretch.Seal(s.SealedAt); c.key != nil && !hmac.Equal(made.MAC[:], s.MAC[:]) {
		return fmt.Sprintf("the lines %s, or the seal itself, were changed", between), nil
	}
	return "", nil
}

// removed looks at a seal whose lines have gone by their age: none is there, and
// the mark is ours.
func (c *checker) removed(ctx context.Context, s ledger.AuditSeal) (string, error) {
	if proof := c.key.Removal(s); c.key != nil && !hmac.Equal(proof[:], s.Removal[:]) {
		return "its lines were removed, and not by their age", nil
	}
	n := 0
	err := Lines(ctx, c.reader, c.before.Last, s.Last, 1, func(ledger.Audit) { n++ })
	if n > 0 {
		return fmt.Sprintf("lines up to %s were added after those were removed by their age", s.Last), err
	}
	return "", err
}

// after names the line that a stretch begins behind.
func (c *checker) after() string {
	if c.before.Last.IsZero() {
		return "the beginning"
	}
	return c.before.Last.String()
}
