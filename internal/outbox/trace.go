package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// traceparent puts all deliveries of an operation into one trace, each attempt
// a span of its own (W3C Trace Context, version 00). The ids are derived, so
// that they need no room in the ledger; the trace is not sampled, since nothing
// here records it.
func (j Job) traceparent() string {
	trace := j.delivery.Operation
	if trace.IsZero() {
		trace = j.delivery.Event
	}
	span := sha256.Sum256(binary.BigEndian.AppendUint32(j.delivery.ID[:], uint32(j.delivery.Attempts)))
	return "00-" + trace.String() + "-" + hex.EncodeToString(span[:8]) + "-00"
}
