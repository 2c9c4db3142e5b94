package listing

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// Cursor is where a walk through a list has come. The zero value begins it. Its
// text goes through other hands: whoever gives it away must seal it.
type Cursor struct {
	// At is the parameter of the page to come, Offset how many entries were told.
	At     string `json:"at,omitempty"`
	Offset int    `json:"offset,omitempty"`
	// Pages counts those that were read.
	Pages int `json:"pages,omitempty"`
	// Told are the marks of the entries of the page before, so that what overlaps
	// is told once (O-061).
	Told []byte `json:"told,omitempty"`
	// Mark is a page that the walk came through, Power and Lap when the next one is
	// kept: Brent's way to find any circle with one page kept.
	Mark  uint64 `json:"mark,omitempty"`
	Power int    `json:"power,omitempty"`
	Lap   int    `json:"lap,omitempty"`
}

// maxPages ends every walk: with the largest pages it is ten million entries.
const maxPages = 10_000

// follow is the cursor of the page that begins at a parameter; false if the walk
// was there before.
func (c Cursor) follow(at string, entries int, told []byte) (Cursor, bool) {
	sum := sha256.Sum256([]byte(at))
	mark := binary.BigEndian.Uint64(sum[:])
	next := Cursor{At: at, Offset: c.Offset + entries, Pages: c.Pages + 1, Told: told, Mark: c.Mark, Power: max(c.Power, 1), Lap: c.Lap + 1}
	if next.Pages >= maxPages || c.Pages > 0 && mark == c.Mark {
		return Cursor{}, false
	}
	if c.Pages == 0 || next.Lap == next.Power {
		next.Mark, next.Power, next.Lap = mark, 2*next.Power, 0
	}
	return next, true
}

// markSize is the length of an entry's mark.
const markSize = 8

// mark identifies an entry, with what it tells, within a walk.
func (e Entry) mark() (m [markSize]byte) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", e.Task, e.Event, e.Word))
	copy(m[:], sum[:])
	return m
}

func (c Cursor) seen() map[[markSize]byte]bool {
	all := make(map[[markSize]byte]bool, len(c.Told)/markSize)
	for i := 0; i+markSize <= len(c.Told); i += markSize {
		all[[markSize]byte(c.Told[i:])] = true
	}
	return all
}

// Text is the cursor as a text that [ParseCursor] reads.
func (c Cursor) Text() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // It has no value that JSON lacks.
	}
	return text
}

// ParseCursor reads what [Cursor.Text] wrote.
func ParseCursor(text []byte) (Cursor, error) {
	var c Cursor
	if err := json.Unmarshal(text, &c); err != nil || c.Offset < 0 || c.Pages < 0 || len(c.At) > maxCursor || len(c.Told) > markSize*maxSize {
		return Cursor{}, errors.New("listing: this is no cursor")
	}
	return c, nil
}
