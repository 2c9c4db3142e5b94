package postgres

import "github.com/pawlhq/pawl"

// columns walks over a row's columns in their order, to name, to write or to
// read them: each row type lists its columns once, for all three.
type columns struct {
	mode  mode
	names []string
	kinds []kind
	// sets are the columns of the rows written so far.
	sets []array
	// limit ends writing after so many columns, where it is not zero.
	limit int
	// row is the row that is read.
	row  [][]byte
	next int
}

type mode uint8

const (
	naming mode = iota
	writing
	reading
)

func (c *columns) name(name string, k kind) {
	c.names, c.kinds = append(c.names, name), append(c.kinds, k)
}

// set is the column that is written next, nil where it is not wanted.
func (c *columns) set() *array {
	at := c.next
	c.next++
	if c.limit > 0 && at >= c.limit {
		return nil
	}
	return &c.sets[at]
}

// get is the column that is read next, nil where it is NULL or was not asked
// for.
func (c *columns) get() []byte {
	at := c.next
	c.next++
	if at >= len(c.row) {
		return nil
	}
	return c.row[at]
}

// number is an integer column.
func number[T ~int64 | ~int32 | ~uint32 | ~uint8](c *columns, name string, p *T) {
	switch c.mode {
	case naming:
		c.name(name, integer)
	case writing:
		if a := c.set(); a != nil {
			a.int(int64(*p))
		}
	case reading:
		*p = T(fromInt(c.get()))
	}
}

// moment is a time column: no time is the epoch, never is infinity.
func moment(c *columns, name string, p *pawl.Time) {
	switch c.mode {
	case naming:
		c.name(name, instant)
	case writing:
		if a := c.set(); a != nil {
			a.int(toInstant(*p))
		}
	case reading:
		if b := c.get(); b != nil {
			*p = fromInstant(b)
		}
	}
}

// flag is a boolean column.
func flag(c *columns, name string, p *bool) {
	switch c.mode {
	case naming:
		c.name(name, logical)
	case writing:
		if a := c.set(); a != nil {
			b := []byte{0}
			if *p {
				b[0] = 1
			}
			a.put(b)
		}
	case reading:
		b := c.get()
		*p = len(b) == 1 && b[0] != 0
	}
}

// text is a text column, empty rather than NULL.
func text[T ~string](c *columns, name string, p *T) {
	switch c.mode {
	case naming:
		c.name(name, words)
	case writing:
		if a := c.set(); a != nil {
			a.text(string(*p))
		}
	case reading:
		*p = T(fromText(c.get()))
	}
}

// id is an identifier; the zero id is NULL, which keeps it out of indexes.
func id(c *columns, name string, p *pawl.ID) { fixed(c, name, uuid, p[:], true) }

// key is an identifier that is part of a key and thus never NULL.
func key(c *columns, name string, p []byte) { fixed(c, name, uuid, p, false) }

// blob is a short string of bytes of fixed length; all zeros are NULL.
func blob(c *columns, name string, p []byte) { fixed(c, name, octets, p, true) }

func fixed(c *columns, name string, k kind, p []byte, nullable bool) {
	switch c.mode {
	case naming:
		c.name(name, k)
	case writing:
		if a := c.set(); a == nil {
			return
		} else if nullable && isZero(p) {
			a.null()
		} else {
			a.put(p)
		}
	case reading:
		copy(p, c.get())
	}
}

// body is bytes of any length, stored as received.
func body(c *columns, name string, p *string) {
	switch c.mode {
	case naming:
		c.name(name, octets)
	case writing:
		if a := c.set(); a != nil {
			a.raw(*p)
		}
	case reading:
		*p = string(c.get())
	}
}

func isZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}
