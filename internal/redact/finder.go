// Package redact takes credentials out of text that others wrote: known ones by
// their value, in whatever encoding they are repeated, and others by their shape.
// It has no state and imports the standard library only.
package redact

import "strings"

// Mark stands in place of what was removed.
const Mark = "[redacted]"

// Finder knows values and finds them in text: as they are, in other letter case,
// percent-encoded, escaped for JSON, HTML or a string literal, and in hex and
// Base64, padded or not, of either alphabet, with whatever stands before and
// behind them in the same Base64 (as user:key does under Basic). A nil Finder
// finds nothing. It is immutable and safe for concurrent use. It prints nothing.
type Finder struct {
	needles []needle
	// pairs has the first two characters of each needle, as one number each.
	pairs [1 << 16 / 64]uint64
	// shortest is the length of the shortest needle.
	shortest int
	// beginnings: the needles are how credentials begin, and the rest goes too.
	beginnings bool
}

// form says how a needle is compared, and what belongs to it beyond itself.
type form uint8

const (
	escaped form = iota // with escapes read
	exact               // to the letter
	inHex
	inBase64 // with escapes read
)

// needle is one form of a value, folded.
type needle struct {
	text string
	form form
}

// minRest is how much has to follow the beginning of a credential: prose names
// beginnings, too.
const minRest = 4

// String says only what it is.
func (f *Finder) String() string { return "redact.Finder" }

// GoString is [Finder.String].
func (f *Finder) GoString() string { return f.String() }

// Remove puts mark in place of each known value. Text that holds none is given
// back as it is, without a copy.
func (f *Finder) Remove(text, mark string) string {
	if f == nil || len(f.needles) == 0 || len(text) < f.shortest {
		return text
	}
	var out strings.Builder
	kept := 0
	for i := 0; i+1 < len(text); i++ {
		if !f.mayBegin(text, i) {
			continue
		}
		from, to := f.at(text, i, kept)
		if to == 0 {
			continue
		}
		out.WriteString(text[kept:from])
		out.WriteString(mark)
		kept = to
		i = to - 1
	}
	if kept == 0 {
		return text
	}
	out.WriteString(text[kept:])
	return out.String()
}

// mayBegin reports whether a needle's first two characters stand at i, as they are
// or with escapes read.
func (f *Finder) mayBegin(text string, i int) bool {
	a, b := text[i], text[i+1]
	if f.hasPair(a, b) {
		return true
	}
	if !escapes[a] && !escapes[b] {
		return false
	}
	a, width := unit(text, i)
	if i+width >= len(text) {
		return false
	}
	b, _ = unit(text, i+width)
	return f.hasPair(a, b)
}

func (f *Finder) hasPair(a, b byte) bool {
	n := int(fold[a])<<8 | int(fold[b])
	return f.pairs[n/64]&(1<<(n%64)) != 0
}

// at gives the bounds of the longest value that begins at i, not reaching before
// floor; to is 0 if there is none.
func (f *Finder) at(text string, i, floor int) (from, to int) {
	for _, n := range f.needles {
		end := n.match(text, i)
		if end == 0 {
			continue
		}
		start, stop := n.widen(text, i, end, floor)
		if f.beginnings {
			for stop < len(text) && (n.form != inHex && part[text[stop]] || hexDigit[text[stop]]) {
				stop++
			}
			// What is not encoded is for the rules that know more of its shape.
			if stop < end+minRest || n.form == escaped && end-i == len(n.text) {
				continue
			}
		}
		if stop > to {
			from, to = start, stop
		}
	}
	return from, to
}

// match gives the end of the needle where it stands at i, else 0.
func (n needle) match(text string, i int) int {
	for j := range len(n.text) {
		if i >= len(text) {
			return 0
		}
		c, width := text[i], 1
		if escapes[c] && (n.form == escaped || n.form == inBase64) {
			c, width = unit(text, i)
		}
		if fold[c] != n.text[j] {
			return 0
		}
		i += width
	}
	return i
}

// widen adds what the value shares characters with: its first and last bits are in
// those beside it.
func (n needle) widen(text string, from, to, floor int) (int, int) {
	var belongs *[256]bool
	switch n.form {
	case inHex:
		belongs = &hexDigit
	case inBase64:
		belongs = &base64Digit
	default:
		return from, to
	}
	for from > floor && belongs[text[from-1]] {
		from--
	}
	for to < len(text) {
		c, width := unit(text, to)
		if !belongs[c] && (c != '=' || n.form != inBase64) {
			break
		}
		to += width
	}
	return from, to
}
