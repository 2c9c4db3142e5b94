package postgres

import (
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl"
)

// kind is how a column is stored. Statements name the types of their arguments,
// so that none is guessed and all go over the wire in binary form.
type kind struct {
	name string
	oid  uint32
}

var (
	integer = kind{"bigint", pgtype.Int8OID}
	logical = kind{"boolean", pgtype.BoolOID}
	words   = kind{"text", pgtype.TextOID}
	octets  = kind{"bytea", pgtype.ByteaOID}
	uuid    = kind{"uuid", pgtype.UUIDOID}
	instant = kind{"timestamptz", pgtype.TimestamptzOID}
)

// value is an argument of a statement in PostgreSQL's binary form; nil is NULL.
type value []byte

func intValue[T ~int | ~int64 | ~uint8](n T) value {
	return binary.BigEndian.AppendUint64(nil, uint64(int64(n)))
}
func boolValue(b bool) value {
	if b {
		return value{1}
	}
	return value{0}
}
func textValue(s string) value    { return append(value{}, toText(s)...) }
func idValue(id pawl.ID) value    { return id[:] }
func blobValue(b []byte) value    { return append(value{}, b...) }
func timeValue(t pawl.Time) value { return intValue(toInstant(t)) }
func limit(n int) value           { return intValue(max(n, 0)) }
func fromInt(b []byte) (n int64) {
	switch len(b) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// epoch2000 is PostgreSQL's epoch, 2000-01-01, in microseconds of ours.
const epoch2000 = 946_684_800_000_000

// toInstant is a time as PostgreSQL counts: never is infinity, and no time is
// the epoch.
func toInstant(t pawl.Time) int64 {
	if t == pawl.Never {
		return int64(t)
	}
	return int64(t) - epoch2000
}

func fromInstant(b []byte) pawl.Time {
	t := pawl.Time(fromInt(b))
	if t == pawl.Never {
		return t
	}
	return t + epoch2000
}

// array gathers one column of many rows, in the binary form of a
// one-dimensional array.
type array struct {
	kind  kind
	n     int
	nulls bool
	buf   []byte
}

// arrayHead is the length of an array's header with one dimension.
const arrayHead = 20

func (a *array) null() {
	a.begin()
	a.n++
	a.nulls = true
	a.buf = append(a.buf, 0xff, 0xff, 0xff, 0xff)
}

func (a *array) put(b []byte) {
	a.size(len(b))
	a.buf = append(a.buf, b...)
}

func (a *array) text(s string) {
	s = toText(s)
	a.size(len(s))
	a.buf = append(a.buf, s...)
}

func (a *array) raw(s string) {
	a.size(len(s))
	a.buf = append(a.buf, s...)
}

func (a *array) int(n int64) {
	a.size(8)
	a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(n))
}

func (a *array) begin() {
	if a.buf == nil {
		a.buf = make([]byte, arrayHead, 512)
	}
}

func (a *array) size(n int) {
	a.begin()
	a.n++
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(n))
}

// value is the whole array.
func (a *array) value() value {
	if a.n == 0 {
		// An empty array has no dimension.
		empty := make(value, 12)
		binary.BigEndian.PutUint32(empty[8:], a.kind.oid)
		return empty
	}
	binary.BigEndian.PutUint32(a.buf, 1)
	if a.nulls {
		binary.BigEndian.PutUint32(a.buf[4:], 1)
	}
	binary.BigEndian.PutUint32(a.buf[8:], a.kind.oid)
	binary.BigEndian.PutUint32(a.buf[12:], uint32(a.n))
	binary.BigEndian.PutUint32(a.buf[16:], 1)
	return a.buf
}

// idArray, textArray and intArray are arrays of arguments.
func idArray(ids []pawl.ID) value {
	a := array{kind: uuid}
	for i := range ids {
		a.put(ids[i][:])
	}
	return a.value()
}

func textArray(all []string) value {
	a := array{kind: words}
	for _, s := range all {
		a.text(s)
	}
	return a.value()
}
