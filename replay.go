package pawl

// ReplayState is how far a replay of many has come.
type ReplayState uint8

// The states of a replay.
const (
	// ReplayRunning: it is counting what it is about, or working through that.
	ReplayRunning ReplayState = iota + 1
	// ReplayPaused: a person has stopped it, and may let it go on.
	ReplayPaused
	// ReplayDone: it has come to the end of what it is about.
	ReplayDone
	// ReplayCanceled: a person has ended it; what was done by then stays done.
	ReplayCanceled
)

var replayNames = [...]string{ReplayRunning: "running", ReplayPaused: "paused", ReplayDone: "done", ReplayCanceled: "canceled"}

// String is the state's word in JSON, SQL and on screens; "" for none.
func (s ReplayState) String() string {
	if int(s) < len(replayNames) {
		return replayNames[s]
	}
	return ""
}

// MarshalText writes the state's word.
func (s ReplayState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finished reports whether nothing more will be done by the replay.
func (s ReplayState) Finished() bool { return s == ReplayDone || s == ReplayCanceled }
