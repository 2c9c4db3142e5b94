package server

import (
	"net/http"
	"slices"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// What was published is delivered in the trace of whoever published it; what a
// source sent, in that of its arrival here, which links the sender's (TR-05, TR-06).
func TestTraceOfOwnAndReceivedEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim", payments(t, ""))
	w.drain()
	spans := tracetest.NewInMemoryExporter()
	w.traces = telemetry.NewTraces(telemetry.NewTraceProvider(sdk.WithSyncer(spans)))
	w.start()
	w.endpoint()
	w.want(http.StatusAccepted, w.call(http.MethodPost, "/v1/events", `{"id":"own-1","type":"order.paid","data":{}}`, "Traceparent", traceOfCaller))
	published := w.having(spans, 1, "", "POST /v1/events")[0]
	own := w.having(spans, 1, "pawl.act", "deliver")[0]
	if own.SpanContext.TraceID().String() != callerTrace || own.Parent.SpanID() != published.SpanContext.SpanID() {
		t.Errorf("the delivery of what was published: %+v", own)
	}
	spans.Reset()
	w.want(http.StatusAccepted, w.post("payments", "stripe", sourceSecret, []byte(`{"id":"evt_1","type":"charge.paid","created":1}`), "Traceparent", traceOfStranger))
	arrival := w.having(spans, 1, "", "POST /hooks/{source}/{token}")[0]
	if arrival.Parent.IsValid() || arrival.SpanContext.TraceID().String() == strangerTrace || !slices.Contains(linked(arrival), strangerTrace+"-b7ad6b7169203331") {
		t.Errorf("the arrival: %+v", arrival)
	}
	received := w.having(spans, 1, "pawl.act", "deliver")[0]
	if received.SpanContext.TraceID() != arrival.SpanContext.TraceID() || received.Parent.SpanID() != arrival.SpanContext.SpanID() {
		t.Errorf("the delivery of what was received: %+v, arrived in %s", received, contextText(arrival))
	}
	for _, d := range w.sink.attempts() {
		if got := d.header.Get("Traceparent"); got != contextText(own) && got != contextText(received) {
			t.Errorf("sent with %s", got)
		}
	}
	w.nothingElse()
}

// Of an operation from before traces were on, deliveries are in one trace, whose id
// is made of the operation's and is another; a cancel is a span of its own.
func TestTracesTurnedOnLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint("types", []string{"operation.succeeded"})
	op, c := w.running("k")
	asked, _ := w.running("c")
	w.drain()
	spans := tracetest.NewInMemoryExporter()
	w.traces = telemetry.NewTraces(telemetry.NewTraceProvider(sdk.WithSyncer(spans)))
	w.start()
	w.sink.script(func(n int, _ delivery) (int, string) {
		if n == 1 {
			return 503, ""
		}
		return 200, ""
	})
	w.want(http.StatusAccepted, w.cancel(asked))
	cancel := w.having(spans, 1, "pawl.act", "cancel", "pawl.operation", asked)[0]
	if cancel.Name != "POST" && cancel.Name != "DELETE" || attributes(cancel)["pawl.upstream"] != "up" || cancel.Parent.IsValid() {
		t.Errorf("cancel: %+v", cancel)
	}
	w.provider.say(done(c.task))
	w.want(http.StatusAccepted, w.callback(c.callback, event{id: "end", said: done(c.task)}))
	var tries []tracetest.SpanStub
	w.eventually("it is not delivered again", func() bool {
		tries = slices.DeleteFunc(spans.GetSpans(), func(s tracetest.SpanStub) bool {
			return attributes(s)["pawl.act"] != "deliver" || attributes(s)["pawl.operation"] != op
		})
		return len(tries) > 0 && attributes(tries[len(tries)-1])["http.response.status_code"] == "200"
	})
	id, err := pawl.ParseID(pawl.PrefixOperation, op)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range tries {
		trace := s.SpanContext.TraceID()
		if trace != tries[0].SpanContext.TraceID() || trace == [16]byte(id) || s.Parent.IsValid() {
			t.Errorf("attempt: %+v", s)
		}
	}
	w.nothingElse()
}
