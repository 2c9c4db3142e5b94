package strict

import (
	"encoding"
	"errors"
	"io"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error is a refusal of a JSON text. It holds positions and fixed words only.
type Error struct {
	Reason  string // what is wrong, for a person; never a part of the text
	Pointer string // RFC 6901, shortened to maxPointerShown bytes; "" is the whole text
	Offset  int64  // bytes from the start, at or before the fault; 0 also where it is not known
}

// maxPointerShown bounds how many bytes of the sender's own names an error
// repeats.
const maxPointerShown = 120

// Error renders the refusal as "json: reason at pointer (byte n)".
func (e *Error) Error() string {
	text := "json: " + e.Reason
	if e.Pointer != "" {
		text += " at " + strconv.Quote(e.Pointer)
	}
	if e.Offset > 0 {
		text += " (byte " + strconv.FormatInt(e.Offset, 10) + ")"
	}
	return text
}

// wrongUTF8 finds the first byte that belongs to no UTF-8 sequence.
func wrongUTF8(doc []byte) *Error {
	if utf8.Valid(doc) {
		return nil
	}
	at := 0
	for at < len(doc) {
		r, size := utf8.DecodeRune(doc[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return &Error{Reason: "invalid UTF-8", Offset: int64(at)}
}

// refusal turns an error of the JSON library into ours, which drops the parts
// of the text that the library would quote.
func refusal(err error) error {
	if own := (*Error)(nil); errors.As(err, &own) {
		return own
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return &Error{
			Reason:  syntaxReason(syntactic.Err),
			Pointer: shorten(string(syntactic.JSONPointer)),
			Offset:  syntactic.ByteOffset,
		}
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return &Error{
			Reason:  semanticReason(semantic),
			Pointer: shorten(string(semantic.JSONPointer)),
			Offset:  semantic.ByteOffset,
		}
	}
	return &Error{Reason: syntaxReason(err)}
}

func syntaxReason(err error) string {
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "the same name twice in one object"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the text ends too early"
	default:
		return "not well-formed JSON"
	}
}

func semanticReason(err *json.SemanticError) string {
	if errors.Is(err.Err, json.ErrUnknownName) {
		return "unknown name"
	}
	got, want := kindWord(err.JSONKind), typeWord(err.GoType)
	switch {
	case got == "":
		return "value not accepted"
	case err.Err != nil, want == "", got == want:
		return got + " not accepted"
	default:
		return want + " wanted, not " + got
	}
}

func kindWord(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{', '}':
		return "object"
	case '[', ']':
		return "list"
	default:
		return ""
	}
}

func typeWord(t reflect.Type) string {
	if t == nil {
		return ""
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Map, reflect.Struct:
		return "object"
	default:
		return ""
	}
}

// shorten cuts a pointer at a character boundary.
func shorten(pointer string) string {
	if len(pointer) <= maxPointerShown {
		return pointer
	}
	cut := maxPointerShown
	for !utf8.RuneStart(pointer[cut]) {
		cut--
	}
	return pointer[:cut] + "…"
}
