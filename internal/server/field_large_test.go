package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// slow is a receiver that takes longer over large bodies, and counts what it gets
// by event.
type slow struct {
	mu    sync.Mutex
	times map[string]int
	// worst is the longest that a small body was under way.
	worst time.Duration
	began time.Time
}

const (
	largeBody = 900 << 10
	largeTime = 12 * time.Second
)

// ServeHTTP implements [http.Handler].
func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return // cut in the middle: it did not arrive
	}
	s.mu.Lock()
	s.times[r.Header.Get("Webhook-Id")]++
	if took := time.Since(s.began); n < largeBody && took > s.worst {
		s.worst = took
	}
	s.mu.Unlock()
	if n >= largeBody {
		time.Sleep(largeTime)
	}
}

// Of a burst of 200 events each twentieth has a body of 900 KiB, over which its
// receiver takes long (O-111): nothing is sent twice for it, and the small ones
// do not wait for the large ones.
func TestO111LargeAmongSmall(t *testing.T) {
	inVirtualTime(t, "sim", func(w *world) {
		s := &slow{times: map[string]int{}, began: time.Now()}
		w.want(http.StatusCreated, w.call(http.MethodPost, "/v1/endpoints", map[string]any{"url": w.serve(s), "types": []string{"invoice.paid"}}))
		const n = 200
		padding := strings.Repeat("x", largeBody)
		for i := range n {
			body, event := paidBody(fmt.Sprint("evt_", i)), fmt.Sprint("evt_", i)
			if i%20 == 0 {
				body = []byte(fmt.Sprintf(`{"id":%q,"type":"invoice.paid","data":{"object":{"id":"in_1","text":%q}}}`, event, padding))
			}
			w.want(http.StatusAccepted, w.post("payments", "stripe", sourceSecret, body))
		}
		w.pass(2 * time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.times) != n {
			t.Errorf("%d events arrived, want %d", len(s.times), n)
		}
		for event, times := range s.times {
			if times != 1 {
				t.Errorf("%s was sent %d times", event, times)
			}
		}
		if s.worst >= largeTime {
			t.Errorf("a small event waited %v, as long as a large one takes", s.worst)
		}
	}, payments(t, ""))
}
