package listing

import (
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/strict"
)

// maxSize is how many entries a page may have.
const maxSize = 1000

// Check reports everything that is wrong with how a list is read, each as "KEY:
// WHAT" in one error.
func Check(l config.Listing) error {
	var problems []error
	that := func(ok bool, key, what string) {
		if !ok {
			problems = append(problems, fmt.Errorf("%s: %s", key, what))
		}
	}
	f, p := l.Fields, l.Paging
	for _, at := range [...]struct{ key, pointer string }{
		{"items", l.Items}, {"fields.task", f.Task}, {"fields.event", f.Event}, {"fields.state", f.State}, {"fields.time", f.Time},
		{"paging.next", p.Next}, {"paging.last", p.Last}, {"paging.more", p.More},
	} {
		that(strict.CheckPointer(at.pointer) == nil, at.key, "must be a JSON Pointer such as /data/id")
	}
	ways := 0
	for _, way := range [...]bool{p.Next != "", p.Last != "", p.Offset} {
		if way {
			ways++
		}
	}
	that(ways <= 1, "paging", "next, last and offset exclude each other")
	that((ways == 1) == (p.Param != ""), "paging.param", "goes together with next, last or offset")
	that(p.Overlap == 0 || p.Overlap > 0 && p.Last != "", "paging.overlap", "must be longer than 0, and needs last to point to a time")
	that(p.Overlap == 0 || p.Size > 0, "paging.size", "must be given with overlap, so that a page that is not full is known")
	that(p.Size >= 0 && p.Size <= maxSize, "paging.size", "must be from 1 to 1000")
	that(p.SizeParam == "" || p.Size > 0, "paging.size_param", "needs size")
	that(!p.NewestFirst || f.Time != "", "paging.newest_first", "needs fields.time")
	that(p.SinceParam == "" || f.Time != "", "paging.since_param", "needs fields.time")
	that(!p.NewestFirst || p.Overlap == 0, "paging.newest_first", "cannot go with overlap, which goes forward in time")
	return errors.Join(problems...)
}
