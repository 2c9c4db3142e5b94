package sim

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// voice writes what the server has to say in one dialect. Bodies are values
// for encoding/json.
type voice interface {
	accepted(r report, requestID string) (status int, body any)
	refused(status int, code, message, requestID string) any
	state(r report, requestID string) any
	event(e event) any
}

// event is a callback's content before it is written in a dialect.
type event struct {
	report
	id       string
	progress bool // it only shows progress
	odd      bool // it is of a type that nobody knows
	at       time.Time
}

func (d Dialect) voice() voice {
	switch d {
	case MediaV2:
		return mediaV2{}
	case BodyTimestamp:
		return bodyTimestamp{}
	default:
		return native{}
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone: its business
}

// bearer is the key of an Authorization header, "" for none.
func bearer(r *http.Request) string {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return key
}

// fraction is a percentage as the decimal between 0 and 1 that dialects show.
func fraction(percent int) *float64 {
	if percent < 0 {
		return nil
	}
	f := float64(percent) / 100
	return &f
}
