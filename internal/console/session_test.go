package console

import (
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
	cookie := s.begin(api.Visitor{}, start)
	person, page, stream := asked(cookie, "/console", false), asked(cookie, "/console", true), asked(cookie, livePath, false)
	if !find(s, person, idle-1) || !find(s, person, 2*idle-2) {
		t.Error("a session in use has ended")
	}
	if !find(s, page, 3*idle-3) || find(s, stream, 3*idle-2) {
		t.Error("refreshing keeps a session alive, or ends it too early")
	}
	s = newSessions()
	cookie = s.begin(api.Visitor{}, start)
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
	first, second := s.begin(api.Visitor{}, start), s.begin(api.Visitor{}, start.Add(time.Second))
	for i := range maxSessions - 2 {
		s.begin(api.Visitor{}, start.Add(time.Duration(i+2)*time.Second))
	}
	s.find(asked(first, "/console", false), start.Add(10*time.Minute))
	s.begin(api.Visitor{}, start.Add(11*time.Minute))
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
