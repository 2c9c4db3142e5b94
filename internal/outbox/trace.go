package outbox

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/strict"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// traceparent puts all deliveries of an operation into one trace, each attempt
// a span of its own (W3C Trace Context, version 00): the trace that it was
// submitted in, else one whose id is the operation's, not sampled. The span's id is
// derived: where no spans are made, nobody records it. Where they are, the span's
// own context takes this one's place.
func (j Job) traceparent() string {
	at, known := strict.ParseTraceparent([]string{j.event.Traceparent})
	if !known {
		at = strict.Traceparent{Trace: j.about()}
	}
	span := sha256.Sum256(binary.BigEndian.AppendUint32(j.delivery.ID[:], uint32(j.delivery.Attempts)))
	copy(at.Span[:], span[:])
	return at.String()
}

// about is what the job's trace is of: the operation, else the event.
func (j Job) about() pawl.ID {
	if j.delivery.Operation.IsZero() {
		return j.delivery.Event
	}
	return j.delivery.Operation
}

// errand says what a request of the job is for: an attempt belongs to the trace of
// what it tells of, and its receiver is told where.
func (j Job) errand(act string) telemetry.Errand {
	about := j.about()
	return telemetry.Errand{
		Submission: j.event.Traceparent, Within: true, Seed: about[:], Told: act == "deliver", Resend: int(j.delivery.Attempts), Act: act,
		Operation: j.delivery.Operation.Text(pawl.PrefixOperation), Event: j.delivery.Event.Text(pawl.PrefixEvent),
		Endpoint: j.delivery.Endpoint.Text(pawl.PrefixEndpoint), Delivery: j.String(),
	}
}
