package sqlite

import (
	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl"
)

// kind is how a value is stored.
type kind uint8

const (
	null kind = iota
	integer
	words
	octets
	// long is a blob kept in text: payloads have no fixed length.
	long
)

// value is one column on its way to a statement. It is comparable, so that
// two rows can be compared column by column, and holds short blobs by value,
// so that making one allocates nothing.
type value struct {
	kind kind
	// n is the integer, or the length of the short blob.
	n    int64
	text string
	blob [32]byte
}

func intValue[T ~int | ~int64 | ~uint8](n T) value { return value{kind: integer, n: int64(n)} }
func textValue(s string) value                     { return value{kind: words, text: s} }
func idValue(id pawl.ID) value                     { return blobValue(id[:]) }

func blobValue(b []byte) value {
	v := value{kind: octets, n: int64(len(b))}
	copy(v.blob[:], b)
	return v
}

// bind gives a statement its arguments in order.
func bind(s *sqlite3.Stmt, args []value) error {
	for i := range args {
		if err := args[i].bind(s, i+1); err != nil {
			return err
		}
	}
	return nil
}

func (v *value) bind(s *sqlite3.Stmt, at int) error {
	switch v.kind {
	case integer:
		return s.BindInt64(at, v.n)
	case words:
		return s.BindText(at, v.text)
	case octets:
		return s.BindBlob(at, v.blob[:v.n])
	case long:
		return s.BindBlob(at, []byte(v.text))
	}
	return s.BindNull(at)
}

// columns walks over a row's columns in their order, to name, to write or to
// read them: each row type lists its columns once, for all three.
type columns struct {
	mode   mode
	names  []string
	values []value
	// limit ends writing after so many columns, where it is not zero.
	limit int
	stmt  *sqlite3.Stmt
	next  int
}

type mode uint8

const (
	naming mode = iota
	writing
	reading
)

func (c *columns) put(v value) {
	if c.limit == 0 || len(c.values) < c.limit {
		c.values = append(c.values, v)
	}
}

func (c *columns) step() int {
	at := c.next
	c.next++
	return at
}

// number is an integer column.
func number[T ~int64 | ~int32 | ~uint32 | ~uint8](c *columns, name string, p *T) {
	switch c.mode {
	case naming:
		c.names = append(c.names, name)
	case writing:
		c.put(value{kind: integer, n: int64(*p)})
	case reading:
		*p = T(c.stmt.ColumnInt64(c.step()))
	}
}

// flag is a column that is 0 or 1.
func flag(c *columns, name string, p *bool) {
	var n uint8
	if *p {
		n = 1
	}
	number(c, name, &n)
	if c.mode == reading {
		*p = n != 0
	}
}

// text is a text column, empty rather than NULL.
func text[T ~string](c *columns, name string, p *T) {
	switch c.mode {
	case naming:
		c.names = append(c.names, name)
	case writing:
		c.put(textValue(string(*p)))
	case reading:
		*p = T(c.stmt.ColumnText(c.step()))
	}
}

// id is an identifier; the zero id is NULL, which keeps it out of indexes.
func id(c *columns, name string, p *pawl.ID) { blob(c, name, p[:]) }

// blob is a short blob of fixed length; all zeros are NULL.
func blob(c *columns, name string, p []byte) {
	if c.mode == writing && isZero(p) {
		c.put(value{})
		return
	}
	key(c, name, p)
}

// key is a blob that is part of a key and thus never NULL.
func key(c *columns, name string, p []byte) {
	switch c.mode {
	case naming:
		c.names = append(c.names, name)
	case writing:
		c.put(blobValue(p))
	case reading:
		copy(p, c.stmt.ColumnRawBlob(c.step()))
	}
}

// body is bytes of any length, stored as received.
func body(c *columns, name string, p *string) {
	switch c.mode {
	case naming:
		c.names = append(c.names, name)
	case writing:
		c.put(value{kind: long, text: *p})
	case reading:
		*p = string(c.stmt.ColumnRawBlob(c.step()))
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
