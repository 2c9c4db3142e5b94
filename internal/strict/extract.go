package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Extract checks a whole JSON text (see Check) and picks the values that the
// JSON Pointers (RFC 6901) name, in one pass and without building a tree. The
// i-th Value belongs to the i-th pointer; it is the zero Value where the text
// has no such place. Values point into doc. The error is an *Error, or that of
// CheckPointer.
func Extract(doc []byte, pointers ...string) ([]Value, error) {
	if err := bounded(doc); err != nil {
		return nil, err
	}
	for i, p := range pointers {
		if err := CheckPointer(p); err != nil {
			return nil, fmt.Errorf("pointer %d: %w", i, err)
		}
	}
	w := walks.Get().(*walk)
	defer w.release()
	if err := w.run(doc, pointers); err != nil {
		return nil, err
	}
	return w.values, nil
}

// Lookup gives the value that one JSON Pointer (RFC 6901) names, false if doc
// fails Check or has no such place. For several pointers, or to learn what is
// wrong, use Extract.
func Lookup(doc []byte, pointer string) (Value, bool) {
	values, err := Extract(doc, pointer)
	if err != nil {
		return Value{}, false
	}
	return values[0], values[0].Present()
}

// walks keeps walkers for their decoders' inner tables, which are all but one
// of some thirty allocations for a callback body. It holds no state that anyone
// can see.
var walks = sync.Pool{New: func() any { return new(walk) }}

// walk goes down only where a pointer leads; everything beside is one
// ReadValue, which checks it at the library's full speed.
type walk struct {
	doc     []byte
	text    bytes.Buffer
	dec     jsontext.Decoder
	cursors []cursor
	values  []Value
	name    []byte // scratch for names written with escapes
}

func (w *walk) run(doc []byte, pointers []string) error {
	w.doc, w.text = doc, *bytes.NewBuffer(doc)
	w.dec.Reset(&w.text)
	if len(pointers) > 0 {
		w.values = make([]Value, len(pointers))
	}
	for _, p := range pointers {
		w.cursors = append(w.cursors, cursor{pointer: p})
	}
	if err := w.value(0); err != nil {
		return refusal(err)
	}
	switch _, err := w.dec.ReadToken(); {
	case err == nil:
		return &Error{Reason: "data after the value", Offset: w.dec.InputOffset()}
	case !errors.Is(err, io.EOF):
		return refusal(err)
	}
	return nil
}

// release drops everything that belongs to the caller before the walk is kept.
func (w *walk) release() {
	clear(w.cursors)
	w.doc, w.text, w.cursors, w.values = nil, bytes.Buffer{}, w.cursors[:0], nil
	w.dec.Reset(&w.text)
	walks.Put(w)
}

// value reads the value at depth, to which all cursors of that depth have come.
func (w *walk) value(depth int) error {
	kind := w.dec.PeekKind()
	if (kind != '{' && kind != '[') || !w.wantsInside(depth) {
		raw, err := w.dec.ReadValue()
		if err == nil {
			end := int(w.dec.InputOffset())
			w.found(depth, end-len(raw), end)
		}
		return err
	}
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	start := int(w.dec.InputOffset()) - 1
	inside := w.members
	if kind == '[' {
		inside = w.elements
	}
	if err := inside(depth); err != nil {
		return err
	}
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	w.found(depth, start, int(w.dec.InputOffset()))
	return nil
}

func (w *walk) members(depth int) error {
	for w.dec.PeekKind() != '}' {
		quoted, err := w.dec.ReadValue()
		if err != nil {
			return err
		}
		name := w.unquote(quoted)
		for i := range w.cursors {
			if w.cursors[i].enterName(name, depth) {
				return &Error{Reason: "a name that differs from an expected one in letter case only", Offset: w.dec.InputOffset()}
			}
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
		w.leave(depth)
	}
	return nil
}

func (w *walk) elements(depth int) error {
	for index := 0; w.dec.PeekKind() != ']'; index++ {
		for i := range w.cursors {
			w.cursors[i].enterIndex(index, depth)
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
		w.leave(depth)
	}
	return nil
}

// unquote needs no copy for a name without escapes. A value that is no string
// cannot come here: the decoder refuses it as a name.
func (w *walk) unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	w.name, _ = jsontext.AppendUnquote(w.name[:0], quoted)
	return w.name
}

func (w *walk) wantsInside(depth int) bool {
	for i := range w.cursors {
		if c := &w.cursors[i]; c.depth == depth && c.next < len(c.pointer) {
			return true
		}
	}
	return false
}

func (w *walk) found(depth, start, end int) {
	for i := range w.cursors {
		if c := &w.cursors[i]; c.depth == depth && c.next == len(c.pointer) {
			w.values[i] = Value{Raw: w.doc[start:end:end]}
		}
	}
}

func (w *walk) leave(depth int) {
	for i := range w.cursors {
		w.cursors[i].leave(depth)
	}
}
