package strict

import (
	"errors"
	"strconv"
	"strings"
)

// CheckPointer reports whether text is a JSON Pointer in the string form of
// RFC 6901 §3: empty, or references that each begin with "/", where "~" is
// followed by 0 or 1. Pointers of a configuration are checked once with it.
func CheckPointer(text string) error {
	if text != "" && text[0] != '/' {
		return errors.New(`json pointer: must be empty or begin with "/" (RFC 6901)`)
	}
	for i := range len(text) {
		if text[i] == '~' && (i+1 == len(text) || (text[i+1] != '0' && text[i+1] != '1')) {
			return errors.New(`json pointer: "~" must be followed by 0 or 1 (RFC 6901)`)
		}
	}
	return nil
}

// cursor is one pointer on its way through a document: the references before
// next are matched by the path to the current value, which has that depth.
type cursor struct {
	pointer string
	next    int // offset of the first unmatched reference; len(pointer) when none is left
	depth   int // how many references are matched
}

// unescaped turns a reference into the name that it stands for (RFC 6901 §4).
var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// reference gives the next reference, unescaped, and the offset behind it.
func (c *cursor) reference() (text string, end int) {
	end = len(c.pointer)
	if i := strings.IndexByte(c.pointer[c.next+1:], '/'); i >= 0 {
		end = c.next + 1 + i
	}
	text = c.pointer[c.next+1 : end]
	if strings.IndexByte(text, '~') >= 0 {
		text = unescaped.Replace(text)
	}
	return text, end
}

// enterName advances a cursor standing at depth if its next reference names
// that member (RFC 6901 §4). It reports whether the member only looks like it:
// readers that do not care for letter case would take one for the other (JS-01,
// field case O-042).
func (c *cursor) enterName(name []byte, depth int) (confusing bool) {
	if c.depth != depth || c.next == len(c.pointer) {
		return false
	}
	text, end := c.reference()
	if text == string(name) {
		c.next, c.depth = end, depth+1
		return false
	}
	return strings.EqualFold(text, string(name))
}

// enterIndex does the same for an element: digits without a leading zero; "-"
// names no element.
func (c *cursor) enterIndex(index, depth int) {
	if c.depth != depth || c.next == len(c.pointer) {
		return
	}
	text, end := c.reference()
	n, err := strconv.Atoi(text)
	if err != nil || n != index || (text[0] == '0' && len(text) > 1) || text[0] == '+' || text[0] == '-' {
		return
	}
	c.next, c.depth = end, depth+1
}

// leave steps back to depth when the walk has left the value below it.
func (c *cursor) leave(depth int) {
	if c.depth > depth {
		c.next, c.depth = strings.LastIndexByte(c.pointer[:c.next], '/'), depth
	}
}
