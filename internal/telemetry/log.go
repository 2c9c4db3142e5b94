package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"unicode"
)

// NewLogger writes JSON, one entry a line, to w (standard error of a node),
// through NewHandler. level may be a *slog.LevelVar, which can be changed while
// the logger is in use.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(NewHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})))
}

// NewHandler puts redaction in front of next. Attributes with denied names are
// replaced whole; every other string, error and message passes Redact; bytes
// give their number; structs, maps and what else could hold anything give
// their type alone. It is safe for concurrent use if next is.
func NewHandler(next slog.Handler) slog.Handler { return handler{next: next} }

type handler struct {
	next slog.Handler
	// denied is set inside a group with a denied name.
	denied bool
}

// Enabled asks the handler behind.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle passes a cleaned copy of the record on, with the trace that it belongs
// to.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, Redact(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	if id := traceID(ctx); id != "" {
		clean.AddAttrs(slog.String("trace_id", id))
	}
	return h.next.Handle(ctx, clean)
}

// WithAttrs cleans the attributes once, for all records to come.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return handler{next: h.next.WithAttrs(clean), denied: h.denied}
}

// WithGroup remembers whether the group's name is denied.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{next: h.next.WithGroup(oneLine(name)), denied: h.denied || denied(name)}
}

func (h handler) attr(a slog.Attr) slog.Attr {
	if h.denied || denied(a.Key) {
		return slog.String(oneLine(a.Key), Redacted)
	}
	return slog.Attr{Key: Redact(a.Key), Value: h.value(a.Value.Resolve())}
}

func (h handler) value(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(Redact(v.String()))
	case slog.KindGroup:
		clean := make([]slog.Attr, len(v.Group()))
		for i, a := range v.Group() {
			clean[i] = h.attr(a)
		}
		return slog.GroupValue(clean...)
	case slog.KindAny:
		return anyValue(v.Any())
	}
	return v
}

// anyValue keeps what a value says of itself, and of all others only what
// cannot hold a secret.
func anyValue(v any) slog.Value {
	switch v := v.(type) {
	case nil:
		return slog.AnyValue(nil)
	case io.Reader:
		// A *bytes.Buffer would print what it holds.
		return slog.StringValue(fmt.Sprintf("[%T]", v))
	case error, fmt.Stringer:
		// Sprint survives methods that panic on a nil receiver.
		return slog.StringValue(Redact(fmt.Sprint(v)))
	case []string:
		clean := make([]string, len(v))
		for i := range v {
			clean[i] = Redact(v[i])
		}
		return slog.AnyValue(clean)
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.String:
		return slog.StringValue(Redact(r.String()))
	case reflect.Bool:
		return slog.BoolValue(r.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return slog.Int64Value(r.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return slog.Uint64Value(r.Uint())
	case reflect.Float32, reflect.Float64:
		return slog.Float64Value(r.Float())
	case reflect.Slice:
		if r.Type().Elem().Kind() == reflect.Uint8 {
			return slog.StringValue(fmt.Sprintf("[%d bytes]", r.Len()))
		}
	}
	return slog.StringValue(fmt.Sprintf("[%T]", v))
}

// deniedWords are words of a name whose value is never shown.
var deniedWords = map[string]bool{
	"authorization": true, "secret": true, "key": true, "token": true, "signature": true, "password": true,
	"passwd": true, "cookie": true, "credential": true, "prompt": true, "input": true, "result": true,
	"output": true, "body": true, "query": true, "payload": true, "metadata": true,
}

// harmlessWords end names that only measure or name something.
var harmlessWords = map[string]bool{
	"id": true, "count": true, "bytes": true, "size": true, "state": true, "type": true, "seconds": true, "ms": true,
}

// denied judges a name word by word: api_key, apiKey, X-Api-Key and webhookkeys
// are denied; key_id and body_bytes are not.
func denied(name string) bool {
	words := strings.FieldsFunc(splitCamel(name), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) == 0 || harmlessWords[words[len(words)-1]] {
		return false
	}
	for _, w := range words {
		w = strings.TrimSuffix(w, "s")
		if deniedWords[w] {
			return true
		}
		for _, end := range []string{"key", "token", "secret", "password"} {
			if strings.HasSuffix(w, end) {
				return true
			}
		}
	}
	return false
}

// splitCamel puts a space before each upper-case letter that follows a
// lower-case one, and gives lower case.
func splitCamel(name string) string {
	var out strings.Builder
	lower := false
	for _, r := range name {
		if lower && unicode.IsUpper(r) {
			out.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
