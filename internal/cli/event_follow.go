package cli

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
)

// The depth of following. Events are made in the order of their ids but for
// those of the same moment, so that each look goes back a little further than
// what was printed last.
const (
	followOverlap = 5 * time.Second
	followPage    = 200
)

// follower prints events as they come, each once.
type follower struct {
	s     *session
	c     *client
	query url.Values
	lines *lineTable
	// seen are the ids of what was printed of late, floor is the oldest of the
	// first look: what is before it is not asked for.
	seen  map[string]bool
	floor string
	last  time.Time
	begun bool
}

// followEvents prints the newest events and then those that come, until it is
// interrupted, which is how it ends and no failure. A server that goes away is
// asked again.
func (s *session) followEvents(query url.Values, every time.Duration, columns ...string) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	f := &follower{s: s, c: c, query: query, lines: &lineTable{columns: columns}, seen: make(map[string]bool)}
	wait := newBackoff(500*time.Millisecond, 15*time.Second)
	lost := false
	for {
		err := f.look()
		switch {
		case s.ctx.Err() != nil:
			return nil
		case err == nil && lost:
			s.say("the server answers again")
			fallthrough
		case err == nil:
			lost, wait = false, newBackoff(500*time.Millisecond, 15*time.Second)
			if pause(s.ctx, every) != nil {
				return nil
			}
			continue
		case final(err) || !isPassing(err) || !f.begun:
			return err
		}
		if !lost {
			s.say("%s; asking again", plain(err.Error()))
			lost = true
		}
		if pause(s.ctx, wait.next(retryAfter(err))) != nil {
			return nil
		}
	}
}

// isPassing reports whether the same call may be answered later.
func isPassing(err error) bool {
	_, refused := errors.AsType[*refusal](err)
	_, unreachable := errors.AsType[*unreachableError](err)
	return refused || unreachable
}

// look prints what is new, oldest first.
func (f *follower) look() error {
	var fresh []json.RawMessage
	first := !f.begun
	query := url.Values{}
	for name, values := range f.query {
		query[name] = values
	}
	if !first {
		query.Set("page_size", strconv.Itoa(followPage))
	}
	for {
		a, err := f.c.call(f.s.ctx, http.MethodGet, events, query, nil)
		if err != nil {
			return err
		}
		var p struct {
			Items []json.RawMessage `json:"items"`
			Next  string            `json:"next_page_token"`
		}
		if err := decode(a.body, &p); err != nil {
			return err
		}
		more := f.take(p.Items, &fresh)
		if first && p.Next != "" && len(fresh) > 0 {
			f.floor = idOf(fresh[len(fresh)-1])
		}
		if first || !more || p.Next == "" {
			return f.print(fresh)
		}
		query.Set("page_token", p.Next)
	}
}

// take keeps what was not printed yet and reports whether the next page may
// have more of it.
func (f *follower) take(items []json.RawMessage, fresh *[]json.RawMessage) bool {
	for _, item := range items {
		id := idOf(item)
		if id < f.floor || madeAt(id).Before(f.last.Add(-followOverlap)) {
			return false
		}
		if !f.seen[id] {
			*fresh = append(*fresh, item)
		}
	}
	return true
}

// print prints and remembers them; what is older than the overlap is forgotten.
func (f *follower) print(fresh []json.RawMessage) error {
	f.begun = true
	slices.Reverse(fresh)
	for _, item := range fresh {
		if err := f.s.printItem(f.lines, item); err != nil {
			return err
		}
		id := idOf(item)
		f.seen[id] = true
		if made := madeAt(id); made.After(f.last) {
			f.last = made
		}
	}
	for id := range f.seen {
		if madeAt(id).Before(f.last.Add(-2 * followOverlap)) {
			delete(f.seen, id)
		}
	}
	return nil
}

// printItem prints one thing of a list that goes on: a line of JSON, or a line
// of a table.
func (s *session) printItem(t *lineTable, item json.RawMessage) error {
	if s.flags.JSON {
		return s.printJSON(oneLine(item))
	}
	var row map[string]any
	if err := decode(item, &row); err != nil {
		return err
	}
	return s.print(t.line(row))
}

func idOf(item json.RawMessage) string {
	var named struct{ ID string }
	_ = json.Unmarshal(item, &named) // What has no id is printed, and sorts first.
	return named.ID
}

// madeAt is when an id was made: a UUIDv7 begins with milliseconds.
func madeAt(id string) time.Time {
	_, suffix, _ := strings.Cut(id, "_")
	parsed, err := pawl.ParseSuffix(suffix)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(parsed[:8]) >> 16))
}
