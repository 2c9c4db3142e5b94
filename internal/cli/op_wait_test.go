package cli

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// states answers reads with one state after the other; the last one stays.
func states(words ...string) http.HandlerFunc {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		i := min(int(n.Add(1)), len(words)) - 1
		if words[i] == "away" {
			reply(w, http.StatusServiceUnavailable, `{"title":"T"}`)
			return
		}
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusAccepted
		}
		reply(w, status, fmt.Sprintf(`{"id":"op_1","state":%q,"upstream":"u"}`, words[i]))
	}
}

func TestWait(t *testing.T) {
	for _, tt := range []struct {
		name   string
		states []string
		args   []string
		status int
		stdout string
		stderr string
	}{
		{"succeeded already", []string{"succeeded"}, nil, ExitDone, "succeeded", ""},
		{"succeeds later", []string{"pending", "away", "succeeded"}, nil, ExitDone, "succeeded", ""},
		{"failed", []string{"failed"}, nil, ExitFailed, "failed", ""},
		{"canceled", []string{"canceled"}, nil, ExitFailed, "canceled", ""},
		{"expired, as JSON", []string{"expired"}, []string{"--json"}, ExitFailed, `"state":"expired"`, ""},
		{"time is over", []string{"running"}, []string{"--timeout", "50ms"}, ExitFailed, "", "op_1 is still running after 50ms"},
		{"away at first", []string{"away"}, nil, ExitFailed, "", "T"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, fake(t, states(tt.states...)))
			w.run(append([]string{"op", "wait", "op_1"}, tt.args...)...).want(t, tt.status, tt.stdout, tt.stderr)
		})
	}
	newWorld(t, gone(t)).run("op", "wait", "op_1").want(t, ExitUnreachable, "", "did not answer")
}

func TestSubmitAndWait(t *testing.T) {
	w := newWorld(t, fake(t, states("pending", "succeeded")))
	w.run(submitArgs("--wait")...).want(t, ExitDone, "succeeded", "")
	w = newWorld(t, fake(t, states("pending", "failed")))
	w.run(submitArgs("--wait")...).want(t, ExitFailed, "failed", "")
	if len(remembered(t, w)) != 0 {
		t.Error("an answered command is remembered")
	}
	// Who stops waiting has no answer yet: the same command waits on.
	w = newWorld(t, fake(t, states("pending", "running")))
	w.signals = make(chan os.Signal, 2)
	waited := w.run(submitArgs("--wait", "--timeout", "50ms")...)
	waited.want(t, ExitFailed, "", "still running")
	if strings.Contains(waited.stderr, "the outcome is open") {
		t.Errorf("two messages about one thing: %s", waited.stderr)
	}
	if len(remembered(t, w)) != 1 {
		t.Error("a command without an answer is forgotten")
	}
}

// 1-product E1: ×1.5 up to the limit, ±10 %.
func TestBackoff(t *testing.T) {
	b := newBackoff(time.Second, 5*time.Second)
	for i, want := range []float64{1, 1.5, 2.25, 3.375, 5, 5} {
		if got := b.next(0).Seconds(); math.Abs(got-want) > want*0.1001 {
			t.Errorf("wait %d is %v s, want %v ± 10 %%", i+1, got, want)
		}
	}
	if got := b.next(time.Minute); got != time.Minute {
		t.Errorf("asked for a minute, got %v", got)
	}
}
