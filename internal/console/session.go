package console

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pawlhq/pawl/internal/api"
)

// How long a session lives. It is held in memory alone: a restart of the node
// ends it, and so does the end of its API key.
const (
	// idle is how long it lives without a page being opened; pages that refresh
	// themselves do not count.
	idle = time.Hour
	// lifetime is how long it lives at most.
	lifetime = 12 * time.Hour
	// maxSessions bounds them, maxOfKey those of one API key, so that no tenant logs
	// everybody else out; one more ends the one that was idle longest.
	maxSessions, maxOfKey = 256, 64
	// maxSpent is how many forms that were sent a session remembers.
	maxSpent = 32
)

// The cookie's name says whether it came over TLS: a browser takes one with
// __Host- only so, for this host and path / (CO-01).
const (
	cookieTLS   = "__Host-pawl"
	cookiePlain = "pawl_console"
)

func cookieName(r *http.Request) string {
	if secure(r) {
		return cookieTLS
	}
	return cookiePlain
}

// token is the SHA-256 of what the cookie holds: 256 random bits.
type token [sha256.Size]byte

// session is somebody who has logged in.
type session struct {
	visitor api.Visitor
	// key is the id of its API key, which outlives a secret.
	key   string
	begun time.Time
	used  time.Time
	// flash is what the next page tells once.
	flash string
	// spent are the tokens of the latest forms that must not be sent twice.
	spent []string
}

// sessions are all of this node. Safe for concurrent use.
type sessions struct {
	mu sync.Mutex
	of map[token]*session
}

func newSessions() *sessions { return &sessions{of: make(map[token]*session)} }

// begin makes a session and gives the value of its cookie.
func (s *sessions) begin(v api.Visitor, key string, now time.Time) string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // Never fails (crypto/rand).
	value := base64.RawURLEncoding.EncodeToString(raw[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room(maxOfKey, func(one *session) bool { return one.key == key }, now)
	s.room(maxSessions, func(*session) bool { return true }, now)
	s.of[sha256.Sum256([]byte(value))] = &session{visitor: v, key: key, begun: now, used: now}
	return value
}

// room makes room for one more among those that count: what is over goes, and the
// one that was idle longest where there are as many as may be.
func (s *sessions) room(most int, counts func(*session) bool, now time.Time) {
	var oldest token
	n := 0
	for t, one := range s.of {
		switch {
		case one.over(now):
			delete(s.of, t)
		case !counts(one):
		default:
			n++
			if old := s.of[oldest]; old == nil || one.used.Before(old.used) {
				oldest = t
			}
		}
	}
	if n >= most {
		delete(s.of, oldest)
	}
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.used) >= idle || now.Sub(s.begun) >= lifetime
}

// find is the session of a request, as it is now; nil where it has none. A
// request that a page makes by itself does not prolong it.
func (s *sessions) find(r *http.Request, now time.Time) (*session, token) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return nil, token{}
	}
	t := token(sha256.Sum256([]byte(cookie.Value)))
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[t]
	if one == nil {
		return nil, t
	}
	if one.over(now) {
		delete(s.of, t)
		return nil, t
	}
	if !refreshes(r) {
		one.used = now
	}
	seen := *one
	return &seen, t
}

// refreshes reports whether a page asked by itself, and no person.
func refreshes(r *http.Request) bool {
	return r.Header.Get("HX-Request") != "" || r.URL.Path == livePath
}

// end ends a session.
func (s *sessions) end(t token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, t)
}

// spend takes the token of a form that is to be carried out once, and gives false
// for one that was sent before.
func (s *sessions) spend(t token, once string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[t]
	if one == nil || slices.Contains(one.spent, once) {
		return false
	}
	one.spent = append(one.spent[max(0, len(one.spent)-maxSpent+1):], once)
	return true
}

// refund gives the token of a form back that was refused.
func (s *sessions) refund(t token, once string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.of[t]; one != nil {
		one.spent = slices.DeleteFunc(one.spent, func(kept string) bool { return kept == once })
	}
}

// tell keeps what the session's next page says.
func (s *sessions) tell(t token, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.of[t]; one != nil {
		one.flash = text
	}
}

// told takes what was kept.
func (s *sessions) told(t token) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[t]
	if one == nil {
		return ""
	}
	text := one.flash
	one.flash = ""
	return text
}

// The pace of logins: some at once, then one each few seconds, for each address
// that they come from.
const (
	loginBurst   = 5
	loginEvery   = 6 * time.Second
	maxAddresses = 1024
)

// attempts bound how often an address may try to log in.
type attempts struct {
	mu sync.Mutex
	of map[string]*rate.Limiter
}

func newAttempts() *attempts { return &attempts{of: make(map[string]*rate.Limiter)} }

// take counts a try and reports whether it may be made.
func (a *attempts) take(from string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.of[from]
	if l == nil {
		if len(a.of) >= maxAddresses {
			clear(a.of)
		}
		l = rate.NewLimiter(rate.Every(loginEvery), loginBurst)
		a.of[from] = l
	}
	return l.AllowN(now, 1)
}

func setCookie(w http.ResponseWriter, r *http.Request, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: int(age / time.Second), Secure: secure(r), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}
