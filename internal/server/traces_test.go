package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// The example of W3C Trace Context, and a caller's trace that is another's.
const (
	callerTrace     = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerSpan      = "00f067aa0ba902b7"
	traceOfCaller   = "00-" + callerTrace + "-" + callerSpan + "-01"
	strangerTrace   = "0af7651916cd43dd8448eb211c80319c"
	traceOfStranger = "00-" + strangerTrace + "-b7ad6b7169203331-01"
)

// traced makes a world whose node makes spans of all it does.
func traced(t *testing.T) (*world, *tracetest.InMemoryExporter) {
	w := newWorld(t, "sim")
	w.drain()
	spans := tracetest.NewInMemoryExporter()
	w.traces = telemetry.NewTraces(telemetry.NewTraceProvider(sdk.WithSyncer(spans)))
	w.start()
	return w, spans
}

// attributes are a span's, as text.
func attributes(s tracetest.SpanStub) map[string]string {
	all := make(map[string]string)
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// having waits for the spans that hold attributes, given as name and value; an
// empty name is that of the span.
func (w *world) having(spans *tracetest.InMemoryExporter, n int, want ...string) []tracetest.SpanStub {
	w.Helper()
	var got []tracetest.SpanStub
	w.eventually("there were never as many spans with "+strings.Join(want, " "), func() bool {
		got = slices.DeleteFunc(spans.GetSpans(), func(s tracetest.SpanStub) bool {
			has := attributes(s)
			has[""] = s.Name
			for i := 0; i < len(want); i += 2 {
				if has[want[i]] != want[i+1] {
					return true
				}
			}
			return false
		})
		return len(got) == n
	})
	return got
}

func contextText(s tracetest.SpanStub) string {
	c := s.SpanContext
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

func linked(s tracetest.SpanStub) (all []string) {
	for _, l := range s.Links {
		c := l.SpanContext
		all = append(all, c.TraceID().String()+"-"+c.SpanID().String())
	}
	return all
}

// From the submission to the delivery (TR-05 to TR-08): what is done once for the
// submission is in its trace, what others begin or what is done often links it, and
// nobody outside gets more than the one header of a delivery.
func TestTraceFromSubmissionToDelivery(t *testing.T) {
	t.Parallel()
	w, spans := traced(t)
	w.endpoint("policy", quickly, "types", []string{"operation.succeeded"})
	w.sink.script(func(n int, _ delivery) (int, string) {
		if n == 1 {
			return 503, ""
		}
		return 200, ""
	})
	op := w.want(202, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", "k",
		"Traceparent", traceOfCaller, "Tracestate", "acme=1", "Baggage", "user=42")).at("id")
	w.state(op, "running")
	submission := w.having(spans, 1, "", "POST /v1/operations")[0]
	if s := submission; s.SpanKind != trace.SpanKindServer || s.SpanContext.TraceID().String() != callerTrace || s.Parent.SpanID().String() != callerSpan ||
		s.SpanContext.TraceState().Len() != 0 || attributes(s)["http.response.status_code"] != "202" || attributes(s)["http.route"] != "/v1/operations" {
		t.Errorf("submission: %+v", s)
	}
	create := w.having(spans, 1, "pawl.act", "create", "pawl.operation", op)[0]
	if create.Name != "POST" || create.SpanKind != trace.SpanKindClient || create.Parent.SpanID() != submission.SpanContext.SpanID() ||
		create.SpanContext.TraceID().String() != callerTrace || attributes(create)["pawl.upstream"] != "up" || attributes(create)["server.address"] != "127.0.0.1" {
		t.Errorf("create: %+v", create)
	}
	w.want(202, w.call(http.MethodPost, "/v1/operations/"+op+"/reconcile", nil))
	read := w.having(spans, 1, "pawl.act", "read")[0]
	ours := callerTrace + "-" + submission.SpanContext.SpanID().String()
	if read.Name != "GET" || read.Parent.IsValid() || read.SpanContext.TraceID().String() == callerTrace || !slices.Equal(linked(read), []string{ours}) {
		t.Errorf("read: %+v", read)
	}
	c := w.provider.created()[0]
	body := w.provider.render(event{id: "end", said: done(c.task)})
	head := w.provider.sign("end", body, time.Now())
	head.Set("Traceparent", traceOfStranger)
	w.want(202, w.hook(c.callback, body, head))
	callback := w.having(spans, 1, "", "POST /hooks/{source}/{token}")[0]
	if callback.Parent.IsValid() || callback.SpanContext.TraceID().String() == strangerTrace || attributes(callback)["pawl.operation"] != op ||
		!slices.Equal(linked(callback), []string{strangerTrace + "-b7ad6b7169203331", ours}) {
		t.Errorf("callback: %+v, links %v", callback, linked(callback))
	}
	tries := w.having(spans, 2, "pawl.act", "deliver")
	sent := w.sink.attempts()
	for i, s := range tries {
		if s.Name != "POST" || s.SpanKind != trace.SpanKindClient || s.SpanContext.TraceID().String() != callerTrace || s.Parent.SpanID() != submission.SpanContext.SpanID() {
			t.Errorf("attempt %d: %+v", i+1, s)
		}
		if got := sent[i].header.Get("Traceparent"); got != contextText(s) {
			t.Errorf("attempt %d was sent with %s, its span is %s", i+1, got, contextText(s))
		}
		if got := attributes(s)["http.request.resend_count"]; got != []string{"", "1"}[i] {
			t.Errorf("attempt %d: resent %q times", i+1, got)
		}
	}
	if a := attributes(tries[0]); tries[0].Status.Code != codes.Error || a["error.type"] != "503" || a["http.response.status_code"] != "503" {
		t.Errorf("the attempt that failed: %v, %v", tries[0].Status, a)
	}
	if a := attributes(tries[1]); tries[1].Status.Code != codes.Unset || a["error.type"] != "" {
		t.Errorf("the attempt that did not: %v, %v", tries[1].Status, a)
	}
	w.nothingElse()
}

// nothingElse checks that no other context than that of deliveries left (TR-08).
func (w *world) nothingElse() {
	w.Helper()
	for _, h := range w.provider.headers() {
		for _, name := range []string{"Traceparent", "Tracestate", "Baggage"} {
			if h.Get(name) != "" {
				w.Errorf("the provider got %s: %s", name, h.Get(name))
			}
		}
	}
	for _, d := range w.sink.attempts() {
		if d.header.Get("Tracestate") != "" || d.header.Get("Baggage") != "" {
			w.Errorf("the endpoint got %v", d.header)
		}
	}
}

// Who has not proved who they are begins no trace of theirs here, and a refusal is
// no fault of the server (TR-05, TR-11). Their lines in the log name the trace.
func TestStrangersTrace(t *testing.T) {
	t.Parallel()
	w, spans := traced(t)
	w.want(401, w.call(http.MethodGet, "/v1/operations", nil, "Authorization", "Bearer wrong", "Traceparent", traceOfStranger))
	refused := w.having(spans, 1, "", "GET /v1/operations")[0]
	if refused.Parent.IsValid() || refused.SpanContext.TraceID().String() == strangerTrace || !slices.Equal(linked(refused), []string{strangerTrace + "-b7ad6b7169203331"}) ||
		refused.Status.Code != codes.Unset || attributes(refused)["error.type"] != "" {
		t.Errorf("%+v", refused)
	}
	w.want(404, w.hook("http://x/hooks/nobody", []byte("{}"), http.Header{"Content-Type": {"application/json"}}))
	hook := w.having(spans, 1, "", "POST /hooks/{source}/{token}")[0]
	if line := `"trace_id":"` + hook.SpanContext.TraceID().String() + `"`; !strings.Contains(w.log.String(), line) {
		t.Errorf("the log has no %s", line)
	}
	w.want(404, w.call(http.MethodGet, "/v1/nothing/of/this", nil))
	w.having(spans, 1, "", "GET", "http.response.status_code", "404")
}

// Without spans a delivery goes on in the trace that the submission was in, if
// that is well-formed, else in one of the operation's own.
func TestTraceparentWithoutTraces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sim")
	w.endpoint("types", []string{"operation.running"})
	for i, c := range []struct{ given, trace, flags string }{
		{traceOfCaller, callerTrace, "01"},
		{"00-" + callerTrace + "-" + callerSpan + "-00", callerTrace, "00"},
		{"cc-" + callerTrace + "-" + callerSpan + "-03-later", callerTrace, "03"},
		{"", "", "00"},
		{strings.ToUpper(traceOfCaller), "", "00"},
		{"ff" + traceOfCaller[2:], "", "00"},
		{"00-" + strings.Repeat("0", 32) + "-" + callerSpan + "-01", "", "00"},
		{traceOfCaller + "\t; drop table", "", "00"},
		{strings.Repeat("a", 4000), "", "00"},
	} {
		op := w.want(202, w.call(http.MethodPost, "/v1/operations", job("a red kite"), "Idempotency-Key", string(rune('a'+i)),
			"Traceparent", c.given, "Tracestate", "acme=1", "Baggage", "user=42")).at("id")
		w.told(op, "operation.running")
		if c.trace == "" {
			id, err := pawl.ParseID(pawl.PrefixOperation, op)
			if err != nil {
				t.Fatal(err)
			}
			c.trace = id.String()
		}
		sent := w.sink.attempts()
		got := sent[len(sent)-1].header.Get("Traceparent")
		if !strings.HasPrefix(got, "00-"+c.trace+"-") || !strings.HasSuffix(got, "-"+c.flags) || strings.Contains(got, callerSpan) || len(got) != 55 {
			t.Errorf("%.80q: sent %s", c.given, got)
		}
	}
	w.nothingElse()
}
