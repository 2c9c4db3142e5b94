package intake

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One source does not take the turns of all, nor who was given no address those
// of the operations' own ones; what it has too many of wait for 10 s and no more.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		var back []func()
		take := func(at address, want error) {
			t.Helper()
			give, err := turns.take(t.Context(), at)
			if !errors.Is(err, want) {
				t.Fatalf("%v: %v, want %v", at, err, want)
			}
			if err == nil {
				back = append(back, give)
			}
		}
		began := time.Now()
		for _, source := range []string{"a", "b"} {
			for range 4 {
				take(address{source, false}, nil)
			}
			if source == "a" {
				take(address{"a", false}, errBusy)
				if waited := time.Since(began); waited != 10*time.Second {
					t.Errorf("waited for %v", waited)
				}
			}
		}
		take(address{"c", false}, errBusy) // 8 in all
		began = time.Now()
		for _, source := range []string{"a", "c"} {
			for range 4 {
				take(address{source, true}, nil)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("operations' own addresses waited for %v", waited)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := turns.take(gone, address{"a", true}); !errors.Is(err, context.Canceled) {
			t.Errorf("a sender that is gone: %v", err)
		}
		for _, give := range back {
			give()
		}
		back = nil
		for range 4 {
			take(address{"c", false}, nil) // What waited in vain holds nothing.
		}
	})
}

// slow is a connection whose sender stops after the first 70,000 bytes.
type slow struct {
	*httptest.ResponseRecorder
	left     int
	deadline time.Time
	set      []time.Time
}

func (s *slow) SetReadDeadline(t time.Time) error {
	s.deadline, s.set = t, append(s.set, t)
	return nil
}

// Read implements [io.Reader].
func (s *slow) Read(p []byte) (int, error) {
	if s.left > 0 {
		n := min(len(p), s.left)
		s.left -= n
		return n, nil
	}
	if s.deadline.IsZero() {
		return 0, errors.New("it would be waited for without end")
	}
	time.Sleep(time.Until(s.deadline))
	return 0, os.ErrDeadlineExceeded
}

// Whoever has a turn has 10 s for the body, and gives it back then.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := fuzzHandler(t, &taken{})
		for range 2 * turnsOfKind { // One after the other: each gives its turn back.
			w := &slow{ResponseRecorder: httptest.NewRecorder(), left: 70_000}
			r := httptest.NewRequest(http.MethodPost, "/hooks/studio", io.NopCloser(w))
			r.ContentLength = 1 << 20
			began := time.Now()
			h.ServeHTTP(w, r)
			if took := time.Since(began); took != 10*time.Second || w.Code != http.StatusRequestTimeout || !strings.Contains(w.Body.String(), "too_slow") || w.Header().Get("Connection") != "close" {
				t.Fatalf("%d %s after %v", w.Code, w.Body, took)
			}
		}
		w := &slow{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodPost, "/hooks/studio", strings.NewReader(strings.Repeat(" ", 100_000)))
		h.ServeHTTP(w, r)
		if len(w.set) != 2 || !w.deadline.IsZero() {
			t.Errorf("the deadline outlives the body: %v", w.set)
		}
	})
}
