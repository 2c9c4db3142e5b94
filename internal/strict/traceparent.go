package strict

import (
	"encoding/hex"
	"strings"
)

// Traceparent is where a caller is in its trace (W3C Trace Context).
type Traceparent struct {
	Trace [16]byte
	Span  [8]byte
	// Flags has the bits that are defined: FlagSampled and FlagRandom.
	Flags byte
}

// The flags of a [Traceparent].
const (
	// FlagSampled says that the caller may have recorded its part of the trace.
	FlagSampled = 1
	// FlagRandom says that the id of the trace was drawn at random.
	FlagRandom = 2
)

// traceparentSize is the length of version 00, and the least of a later one.
const traceparentSize = 2 + 1 + 32 + 1 + 16 + 1 + 2

// ParseTraceparent reads the lines of the header. Whatever is not exactly one
// well-formed line counts as none. Of a later version the part that is known is
// read; flags are bits, of which those that are not defined are dropped (TR-01 to
// TR-03).
func ParseTraceparent(lines []string) (t Traceparent, ok bool) {
	if len(lines) != 1 || len(lines[0]) < traceparentSize {
		return t, false
	}
	line := lines[0]
	known, rest := line[:traceparentSize], line[traceparentSize:]
	version, flags := [1]byte{}, [1]byte{}
	ok = known[2] == '-' && known[35] == '-' && known[52] == '-' &&
		lowerHex(version[:], known[:2]) && lowerHex(t.Trace[:], known[3:35]) && lowerHex(t.Span[:], known[36:52]) && lowerHex(flags[:], known[53:])
	if !ok || version[0] == 0xff || t.Trace == [16]byte{} || t.Span == [8]byte{} {
		return Traceparent{}, false
	}
	if rest != "" && (version[0] == 0 || rest[0] != '-') {
		return Traceparent{}, false
	}
	t.Flags = flags[0] & (FlagSampled | FlagRandom)
	return t, true
}

// lowerHex decodes digits of which none is upper-case.
func lowerHex(into []byte, digits string) bool {
	_, err := hex.Decode(into, []byte(digits))
	return err == nil && !strings.ContainsAny(digits, "ABCDEF")
}

// String is the header in version 00.
func (t Traceparent) String() string {
	return "00-" + hex.EncodeToString(t.Trace[:]) + "-" + hex.EncodeToString(t.Span[:]) + "-" + hex.EncodeToString([]byte{t.Flags})
}
