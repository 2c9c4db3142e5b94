package canary_test

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// traced looks at every span that the node made, and checks that there were some
// of each kind.
func (w *world) traced() {
	all := ""
	for _, s := range w.spans.GetSpans() {
		text := spanText(s)
		w.look(traces, text)
		all += text + "\n"
	}
	for _, part := range []string{
		"POST /v1/operations ", "POST /hooks/{source}/{token} ", "GET /files/{token} ", "pawl.act=create ", "pawl.act=read ", "pawl.act=deliver ",
		"pawl.act=capture ", "error.type=timeout ",
	} {
		if !strings.Contains(all, part) {
			w.Errorf("no span has %q", part)
		}
	}
}

// spanText is all that a span says, but for its ids and times.
func spanText(s tracetest.SpanStub) string {
	text := s.Name + " "
	add := func(attributes []attribute.KeyValue) {
		for _, a := range attributes {
			text += fmt.Sprintf("%s=%s ", a.Key, a.Value.String())
		}
	}
	add(s.Attributes)
	for _, e := range s.Events {
		text += e.Name + " "
		add(e.Attributes)
	}
	for _, l := range s.Links {
		text += l.SpanContext.TraceState().String() + " "
		add(l.Attributes)
	}
	return text + s.SpanContext.TraceState().String() + " " + s.Status.Description
}
