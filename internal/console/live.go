package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/watch"
)

// livePath is where pages listen for changes.
const livePath = "/console/live"

// Bounds of listening.
const (
	// maxStreams is how many pages may listen at once, streamsOfKey how many of one
	// API key; one more reads itself anew only when its reader does.
	maxStreams, streamsOfKey = 256, 64
	// tick is how often a page is told to look again, whatever has changed.
	tick = 5 * time.Second
	// streamed is how long one connection lasts; a browser makes a new one.
	streamed = 10 * time.Minute
)

// live tells a page when to read itself anew (server-sent events): at each tick,
// and at once when the operation that it names has changed. It tells nothing else,
// so what the page may show is decided where it is made.
func (v *visit) live() error {
	if v.streams.join(v.person.Key) {
		defer v.streams.leave(v.person.Key)
	} else {
		return &problem{Status: http.StatusServiceUnavailable, Title: "Too many pages listen", Detail: "This page does not refresh itself now."}
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), streamed)
	defer cancel()
	changed, err := v.watched(ctx)
	if err != nil {
		return err
	}
	out := http.NewResponseController(v.w)
	_ = out.SetWriteDeadline(time.Now().Add(streamed + tick)) // A writer without deadlines has no limit either.
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("X-Accel-Buffering", "no")
	send := func(text string) bool {
		_, err := fmt.Fprint(v.w, text)
		return err == nil && out.Flush() == nil
	}
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for ok := send("retry: 3000\n\n"); ok; {
		select {
		case <-ctx.Done():
			return nil
		case <-v.ended:
			return nil
		case <-changed:
			ok = send("event: change\ndata: \n\n")
		case <-ticks.C:
			if _, in, err := v.o.API.Person(ctx, v.session.visitor); err != nil || !in || v.ending() {
				return nil
			}
			ok = send("event: tick\ndata: \n\n")
		}
	}
	return nil
}

// streams counts the pages that listen, by API key. Safe for concurrent use.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

func newStreams() *streams { return &streams{of: make(map[string]int)} }

// join counts one more, and gives false where there are as many as may be.
func (s *streams) join(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreams || s.of[key] >= streamsOfKey {
		return false
	}
	s.all++
	s.of[key]++
	return true
}

func (s *streams) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[key]--; s.of[key] == 0 {
		delete(s.of, key)
	}
}

// ending reports whether the session has ended since the stream began.
func (v *visit) ending() bool {
	s, _ := v.sessions.find(v.r, time.Now())
	return s == nil
}

// watched tells of the operation that the page names when it is beyond the version
// that the page shows; nil where none is named, or too many wait.
func (v *visit) watched(ctx context.Context) (<-chan struct{}, error) {
	id := v.r.URL.Query().Get("operation")
	if id == "" || v.o.Watch == nil {
		return nil, nil
	}
	var op ledger.OperationJSON
	if err := v.get("/v1/operations/"+url.PathEscape(id), nil, &op); err != nil {
		return nil, err
	}
	key, err := pawl.ParseID(pawl.PrefixOperation, op.ID)
	if err != nil {
		return nil, err
	}
	waiter, ok := v.o.Watch.Join(key)
	if !ok {
		return nil, nil
	}
	shown, err := strconv.ParseInt(v.r.URL.Query().Get("version"), 10, 64)
	if err != nil {
		shown = op.Version
	}
	changed := make(chan struct{})
	go follow(ctx, waiter, shown, changed)
	return changed, nil
}

// follow tells of each version beyond the one that is shown. Of several at once it
// may tell a few times: the page is made anew either way.
func follow(ctx context.Context, w *watch.Waiter, shown int64, changed chan<- struct{}) {
	defer w.Leave()
	for ; w.Wait(ctx, shown) == nil; shown++ {
		select {
		case changed <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}
