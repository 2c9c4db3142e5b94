package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pawlhq/pawl/internal/api"
)

func asked(cookie, path string, refreshing bool) *http.Request {
	r := httptest.NewRequest("GET", path, nil)
	r.AddCookie(&http.Cookie{Name: cookiePlain, Value: cookie})
	if refreshing {
		r.Header.Set("HX-Request", "true")
	}
	return r
}

// TestSessionsEnd holds the two ends of a session, and that a page that refreshes
// itself keeps none alive.
func TestSessionsEnd(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	find := func(s *sessions, r *http.Request, after time.Duration) bool {
		one, _ := s.find(r, start.Add(after))
		return one != nil
	}
	s := newSessions()
	cookie := s.begin(api.Visitor{}, "key", start)
	person, page, stream := asked(cookie, "/console", false), asked(cookie, "/console", true), asked(cookie, livePath, false)
	if !find(s, person, idle-1) || !find(s, person, 2*idle-2) {
		t.Error("a session in use has ended")
	}
	if !find(s, page, 3*idle-3) || find(s, stream, 3*idle-2) {
		t.Error("refreshing keeps a session alive, or ends it too early")
	}
	s = newSessions()
	cookie = s.begin(api.Visitor{}, "key", start)
	person = asked(cookie, "/console", false)
	for at := time.Duration(0); at < lifetime; at += idle / 2 {
		if !find(s, person, at) {
			t.Fatalf("ended after %s", at)
		}
	}
	if find(s, person, lifetime) {
		t.Error("a session lives beyond its lifetime")
	}
	if find(s, asked("guess", "/console", false), 0) {
		t.Error("a guess is a session")
	}
}

// TestSessionsAreBounded holds that one more ends the one that was idle longest.
func TestSessionsAreBounded(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSessions()
	first, second := s.begin(api.Visitor{}, "a", start), s.begin(api.Visitor{}, "b", start.Add(time.Second))
	for i := range maxSessions - 2 {
		s.begin(api.Visitor{}, fmt.Sprint(i), start.Add(time.Duration(i+2)*time.Second))
	}
	s.find(asked(first, "/console", false), start.Add(10*time.Minute))
	s.begin(api.Visitor{}, "c", start.Add(11*time.Minute))
	if len(s.of) != maxSessions {
		t.Errorf("%d sessions", len(s.of))
	}
	if one, _ := s.find(asked(second, "/console", false), start.Add(12*time.Minute)); one != nil {
		t.Error("the one that was idle longest lives")
	}
	if one, _ := s.find(asked(first, "/console", false), start.Add(12*time.Minute)); one == nil {
		t.Error("one in use was ended")
	}
}

// TestNoKeyTakesAllSessions holds that whoever logs in again and again ends his own
// sessions, and nobody else's.
func TestNoKeyTakesAllSessions(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSessions()
	operator := s.begin(api.Visitor{}, "operator", start)
	first := s.begin(api.Visitor{}, "tenant", start.Add(time.Second))
	for i := range maxSessions {
		s.begin(api.Visitor{}, "tenant", start.Add(time.Duration(i+2)*time.Second))
	}
	later := start.Add(10 * time.Minute)
	if one, _ := s.find(asked(operator, "/console", false), later); one == nil {
		t.Error("another key's session was ended")
	}
	if one, _ := s.find(asked(first, "/console", false), later); one != nil || len(s.of) != maxOfKey+1 {
		t.Errorf("%d sessions, the first %v", len(s.of), one)
	}
}

// TestNoKeyTakesAllStreams holds that the pages of one key that listen leave room
// for those of others.
func TestNoKeyTakesAllStreams(t *testing.T) {
	s := newStreams()
	joined := 0
	for s.join("tenant") {
		joined++
	}
	if joined != 64 || !s.join("operator") {
		t.Errorf("%d pages of one key listen", joined)
	}
	s.leave("tenant")
	if !s.join("tenant") || s.join("tenant") {
		t.Error("a page that ends leaves room for one")
	}
}
