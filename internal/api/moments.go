package api

import (
	"net/http"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/strict"
)

// between is the range of time in the query: from the one, itself included,
// until before the other. Zero is not given.
func (c *call) between() (from, until pawl.Time, err error) {
	if from, err = c.moment("from"); err != nil {
		return from, until, err
	}
	until, err = c.moment("until")
	return from, until, err
}

func (c *call) moment(name string) (pawl.Time, error) {
	text := c.query.Get(name)
	if text == "" {
		return 0, nil
	}
	at, err := strict.ParseTime(text)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "invalid_query", name+" must be a time such as 2026-01-31T18:00:00Z")
	}
	// What is before 1970 is before everything.
	return max(1, pawl.TimeOf(at)), nil
}
