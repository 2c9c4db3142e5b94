package canary_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlhq/pawl/internal/api"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
	"github.com/pawlhq/pawl/internal/store/memory"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// secretError is an error whose text is a secret.
type secretError struct{ text string }

func (e secretError) Error() string { return e.text }

// panics are what code may panic with.
var panics = []any{
	thePanic, errors.New(thePanic), fmt.Errorf("wrapped: %w", secretError{thePanic}), secretError{thePanic}, &secretError{thePanic},
	[]byte(thePanic), map[string]string{thePanic: thePanic}, struct{ Text string }{thePanic},
}

// A handler that panics tells nobody with what, before or amid its answer.
func TestHandlerPanics(t *testing.T) {
	w, out := newWatch(t), new(buffer)
	logger := telemetry.NewLogger(out, slog.LevelDebug)
	m := telemetry.NewMetrics(prometheus.NewRegistry())
	for _, value := range panics {
		for _, written := range []string{"", "half an answer"} {
			h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(rw, written)
				explode(r.Header.Get("Authorization"), value)
			})
			s := httptest.NewUnstartedServer(telemetry.HTTP(func(*http.Request) string { return "/x" }, m, nil, logger, api.Panicked, h))
			s.Config.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
			s.Start()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/"+theRefused+"?q="+theRefused, strings.NewReader(thePrompt))
			req.Header.Set("Authorization", "Bearer "+theAdminKey)
			if res, err := s.Client().Do(req); err == nil {
				text, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				w.look(problems, fmt.Sprint(res.Header)+string(text))
			}
			s.Close()
		}
	}
	if n := strings.Count(out.String(), "handler panicked"); n != 2*len(panics) {
		t.Errorf("%d panics are logged, want %d", n, 2*len(panics))
	}
	w.look(logs, out.String())
	w.judge(nil)
}

// explode has the secret among its arguments, which a stack must not show.
func explode(_ string, value any) { panic(value) }

// boom is a command that panics.
type boom struct {
	ledger.Header
	value any
	text  [len(thePanic)]byte
}

func (b boom) Head() ledger.Header                 { return b.Header }
func (b boom) Keys(*ledger.Keys)                   {}
func (b boom) Decide(*ledger.Draft) ledger.Outcome { panic(b.value) }

// A command that panics leaves the type of the value and the place, no more:
// by-value arguments of the stack's frames included.
func TestCommandPanics(t *testing.T) {
	w, out := newWatch(t), new(buffer)
	c := store.NewCommitter(memory.New(memory.Options{}), store.Options{Log: telemetry.NewLogger(out, slog.LevelDebug)})
	defer c.Close()
	for _, value := range panics {
		got, err := c.Do(t.Context(), boom{value: value, text: [len(thePanic)]byte([]byte(thePanic))})
		if err != nil || got.Err == nil {
			t.Fatalf("%v, %v", got, err)
		}
		w.look(problems, fmt.Sprintf("%+v %v", got, got.Err))
	}
	if n := strings.Count(out.String(), "command panicked"); n != len(panics) {
		t.Errorf("%d panics are logged, want %d", n, len(panics))
	}
	w.look(logs, out.String())
	w.judge(nil)
}

// What libraries write to the standard logger is kept without what it quotes.
func TestStandardLogger(t *testing.T) {
	w, out := newWatch(t), new(buffer)
	l := log.New(telemetry.LibraryLog(telemetry.NewLogger(out, slog.LevelDebug)), "", 0)
	l.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", theOutcome, secretError{"HTTP/1.1 " + thePanic})
	l.Printf("net/http: invalid byte %q in Cookie.Value; %s", 'x', thePanic)
	l.Printf("retrying %s", theLink)
	if !strings.Contains(out.String(), "Unsolicited response") || !strings.Contains(out.String(), "retrying https://files.provider.example") {
		t.Errorf("too little is kept: %s", out)
	}
	w.look(logs, out.String())
	w.judge(nil)
}
