package inbox

import "time"

// State says how far an event has come.
type State string

// The states of an event.
const (
	// Received: stored, and its work has not been tried yet.
	Received State = "received"
	// Waiting: its work is to be tried again, or effects of it are not carried
	// out yet.
	Waiting State = "waiting"
	// Done: its work and all its effects are done.
	Done State = "done"
	// Review: a person must look at it: the attempts are used up. [Inbox.Retry]
	// starts it again.
	Review State = "review"
)

// Event is one notification, verified by the caller.
type Event struct {
	// Source names the sender: ids are unique within it.
	Source string
	// ID is the sender's id of the event, the same on every repeat. Take it from
	// what the signature covers.
	ID string
	// Body is the raw body.
	Body []byte
}

// usable reports whether the event has a source and an id that every database can
// keep as they are.
func (e Event) usable() bool {
	return e.Source != "" && e.ID != "" && storable(e.Source) == e.Source && storable(e.ID) == e.ID
}

// Outcome is what became of an event.
type Outcome struct {
	// Duplicate: the event was known before.
	Duplicate bool
	State     State
	// Result is what the function returned when the event was applied.
	Result []byte
}

// Record is a stored event as an operator wants to see it.
type Record struct {
	Event
	State State
	// Attempts is how often its work was begun.
	Attempts   int
	ReceivedAt time.Time
	// NextAttemptAt is zero when nothing is planned.
	NextAttemptAt time.Time
	// LastError is the text of the latest error of its work or an effect.
	LastError string
	// Effects are those not carried out yet.
	Effects int
}

func micros(t time.Time) int64 { return t.UnixMicro() }

func timeOf(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
