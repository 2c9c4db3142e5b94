package pawl

import (
	"encoding/hex"
	"errors"
	"strings"
)

// ID is a UUIDv7 (RFC 9562 §5.7) in its 16-byte form. The zero ID means
// "none". An ID is an identifier, never a capability.
type ID [16]byte

// The prefixes of identifiers in their text form (TypeID: prefix, underscore,
// 26 characters of lower-case Crockford base32).
const (
	PrefixOperation = "op"
	PrefixEvent     = "evt"
	PrefixDelivery  = "dlv"
	PrefixAttempt   = "att"
	PrefixEndpoint  = "ep"
	PrefixSource    = "src"
	PrefixKey       = "key"
	PrefixAccount   = "acct"
	PrefixReview    = "rev"
	PrefixEntry     = "ent"
	PrefixArtifact  = "art"
	PrefixNode      = "node"
	PrefixReplay    = "rpl"
)

const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// ErrID is returned for text that is not an identifier of the wanted kind.
var ErrID = errors.New("not a valid identifier")

// IsZero reports whether the id is absent.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids by their bytes, which for ids made here is the order in
// which they were made, to the microsecond.
func (id ID) Compare(other ID) int {
	for i := range id {
		if id[i] != other[i] {
			if id[i] < other[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// String is the hexadecimal form, for logs and debugging; on the wire use
// [ID.Text].
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Suffix is the 26-character part of the text form.
func (id ID) Suffix() string {
	var out [26]byte
	// 128 bits are read as 26 groups of five, the first padded with two zero
	// bits, most significant first.
	var acc uint32
	bits := 2
	n := 0
	for _, b := range id {
		acc = acc<<8 | uint32(b)
		bits += 8
		for bits >= 5 {
			bits -= 5
			out[n] = idAlphabet[acc>>bits&31]
			n++
		}
	}
	return string(out[:])
}

// Text is the TypeID form with the given prefix; the zero ID gives "".
func (id ID) Text(prefix string) string {
	if id.IsZero() {
		return ""
	}
	return prefix + "_" + id.Suffix()
}

// ParseID reads the TypeID text form and insists on the prefix. It returns
// [ErrID] for everything else.
func ParseID(prefix, text string) (ID, error) {
	rest, ok := strings.CutPrefix(text, prefix+"_")
	if !ok {
		return ID{}, ErrID
	}
	return ParseSuffix(rest)
}

// ParseSuffix reads the 26-character part of an identifier.
func ParseSuffix(text string) (ID, error) {
	var id ID
	if len(text) != 26 || text[0] > '7' {
		return ID{}, ErrID
	}
	var acc uint32
	bits := -2
	n := 0
	for i := range len(text) {
		v := strings.IndexByte(idAlphabet, text[i])
		if v < 0 {
			return ID{}, ErrID
		}
		acc = acc<<5 | uint32(v)
		bits += 5
		if bits >= 8 {
			bits -= 8
			id[n] = byte(acc >> bits)
			n++
		}
	}
	return id, nil
}

// NewID makes a UUIDv7 from a time and 64 random bits. The 12 bits after the
// version hold the microseconds within the millisecond (RFC 9562 §6.2, method
// 3), so that ids sort by time to the microsecond.
func NewID(at Time, random uint64) ID {
	var id ID
	ms, us := int64(at)/1000, int64(at)%1000
	if us < 0 {
		ms, us = ms-1, us+1000
	}
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	frac := uint16(us << 2)
	id[6] = 0x70 | byte(frac>>8)
	id[7] = byte(frac)
	for i := range 8 {
		id[8+i] = byte(random >> (56 - 8*i))
	}
	id[8] = id[8]&0x3f | 0x80
	return id
}
