package strict_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl/internal/strict"
)

// The cases are those of the specification's own test suite (w3c/trace-context,
// test/test.py) for one header; its example is the first.
func TestTraceparent(t *testing.T) {
	const ids = "12345678901234567890123456789012-1234567890123456"
	for _, c := range []struct{ line, want string }{
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		{"00-" + ids + "-01", "00-" + ids + "-01"},
		{"00-" + ids + "-00", "00-" + ids + "-00"},
		// Unknown bits of the flags are dropped, the one for random ids is not.
		{"00-" + ids + "-02", "00-" + ids + "-02"},
		{"00-" + ids + "-ff", "00-" + ids + "-03"},
		{"00-" + ids + "-09", "00-" + ids + "-01"},
		// Version 00 has nothing behind the flags.
		{"00-" + ids + "-01.", ""},
		{"00-" + ids + "-01-", ""},
		{"00-" + ids + "-01-what-the-future-will-be-like", ""},
		// A later version may.
		{"cc-" + ids + "-01", "00-" + ids + "-01"},
		{"cc-" + ids + "-01-what-the-future-will-be-like", "00-" + ids + "-01"},
		{"cc-" + ids + "-01.what-the-future-will-not-be-like", ""},
		{"ff-" + ids + "-01", ""},
		{".0-" + ids + "-01", ""},
		{"0.-" + ids + "-01", ""},
		{"000-" + ids + "-01", ""},
		{"0000-" + ids + "-01", ""},
		{"0-" + ids + "-01", ""},
		{"FE-" + ids + "-01", ""},
		{"00-00000000000000000000000000000000-1234567890123456-01", ""},
		{"00-12345678901234567890123456789012-0000000000000000-01", ""},
		{"00-.2345678901234567890123456789012-1234567890123456-01", ""},
		{"00-1234567890123456789012345678901.-1234567890123456-01", ""},
		{"00-12345678901234567890123456789012-.234567890123456-01", ""},
		{"00-12345678901234567890123456789012-123456789012345.-01", ""},
		{"00-123456789012345678901234567890123-1234567890123456-01", ""},
		{"00-1234567890123456789012345678901-1234567890123456-01", ""},
		{"00-12345678901234567890123456789012-12345678901234567-01", ""},
		{"00-12345678901234567890123456789012-123456789012345-01", ""},
		{"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", ""},
		{"00-4bf92f3577b34da6a3ce929d0e0e4736-00F067AA0BA902B7-01", ""},
		{"00-" + ids + "-.0", ""},
		{"00-" + ids + "-0.", ""},
		{"00-" + ids + "-001", ""},
		{"00-" + ids + "-1", ""},
		{"00-" + ids, ""},
		{"00-" + ids + "-0A", ""},
		{"", ""},
		{"00" + ids + "-01-", ""},
		{"00-" + ids + "_01", ""},
		{strings.Repeat("0", 1<<16), ""},
	} {
		got, ok := strict.ParseTraceparent([]string{c.line})
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%.80q: %v, %v; want %q", c.line, got, ok, c.want)
		}
	}
	good := "00-" + ids + "-01"
	if _, ok := strict.ParseTraceparent([]string{good, good}); ok {
		t.Error("two lines are taken")
	}
	if _, ok := strict.ParseTraceparent(nil); ok {
		t.Error("no line is taken")
	}
}

// What the official library takes we take, and it reads back what we write. It is
// laxer in one place: a hyphen behind version 00; and stricter in another: flags
// that are not defined.
func FuzzTraceparent(f *testing.F) {
	for _, line := range []string{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "cc-12345678901234567890123456789012-1234567890123456-01-x",
		"00-12345678901234567890123456789012-1234567890123456-ff", "ff-12345678901234567890123456789012-1234567890123456-01", "",
	} {
		f.Add(line)
	}
	theirs := func(line string) trace.SpanContext {
		carrier := propagation.MapCarrier{"traceparent": line}
		return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := strict.ParseTraceparent([]string{line})
		want := theirs(line)
		if want.IsValid() && !ok && !strings.HasPrefix(line, "00-") {
			t.Fatalf("%q is refused", line)
		}
		if !ok {
			return
		}
		if want.IsValid() && (want.TraceID() != trace.TraceID(got.Trace) || want.SpanID() != trace.SpanID(got.Span) || byte(want.TraceFlags()) != got.Flags) {
			t.Fatalf("%q: %v, want %v", line, got, want)
		}
		back := theirs(got.String())
		if !back.IsValid() || back.TraceID() != trace.TraceID(got.Trace) || back.SpanID() != trace.SpanID(got.Span) {
			t.Fatalf("%q is written as %q", line, got)
		}
	})
}
