// Package watch lets many wait for operations to change, or for an endpoint's
// stream to grow, while one asks: a
// node's own commits wake them at once, and one poll for all of them together
// finds what another node has changed.
package watch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// ErrEnded is what waiters get when the node stops.
var ErrEnded = errors.New("watch: the node is stopping")

// Bounds of a [Hub].
const (
	// every is how often the poll asks while anyone waits.
	every = 200 * time.Millisecond
	// patience is how long one poll may take.
	patience = 5 * time.Second
	// most is how many may wait unless [Options.Most] says otherwise.
	most = 1000
)

// Options are what a [Hub] works with. Versions is required.
type Options struct {
	// Versions are the versions of those of the operations that exist.
	Versions func(ctx context.Context, operations ...pawl.ID) (map[pawl.ID]int64, error)
	// Sequences are the last numbers given in the endpoints' streams; nil where
	// only this node's own commits make them grow.
	Sequences func(ctx context.Context, endpoints ...pawl.ID) (map[pawl.ID]int64, error)
	// Most bounds the waiters; 1000 if zero.
	Most int
	// Waiting is told how many wait now; nil tells nobody. It must not block.
	Waiting func(n int)
	// Log takes what a person must see; nil discards it.
	Log *slog.Logger
}

// Hub knows who waits for what. Its methods are safe for concurrent use.
type Hub struct {
	o Options
	// began holds at most one token: somebody began to wait.
	began chan struct{}
	ended chan struct{}

	mu      sync.Mutex
	topics  map[pawl.ID]*topic
	waiters int
	closed  bool
}

// topic is an operation, or an endpoint's stream, that somebody waits for.
type topic struct {
	stream bool
	// version is the highest one, or the highest sequence, heard of since the
	// first of them came.
	version int64
	waiters int
	// changed is closed, and replaced, when version rises.
	changed chan struct{}
}

// New makes a hub; [Hub.Run] polls for it.
func New(o Options) *Hub {
	if o.Most <= 0 {
		o.Most = most
	}
	if o.Waiting == nil {
		o.Waiting = func(int) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Hub{o: o, began: make(chan struct{}, 1), ended: make(chan struct{}), topics: make(map[pawl.ID]*topic)}
}

// Waiter is one place among those who wait for an operation or a stream.
type Waiter struct {
	hub   *Hub
	id    pawl.ID
	topic *topic
}

// Join takes a place; [Waiter.Leave] gives it back. Whoever joins before
// reading the operation misses no change after that. It reports false where
// all places are taken or the node stops: then the answer must do as it is.
func (h *Hub) Join(operation pawl.ID) (*Waiter, bool) { return h.join(operation, false) }

// JoinStream is [Hub.Join] for an endpoint's stream, whose version is the last
// sequence in it.
func (h *Hub) JoinStream(endpoint pawl.ID) (*Waiter, bool) { return h.join(endpoint, true) }

func (h *Hub) join(id pawl.ID, stream bool) (*Waiter, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.waiters >= h.o.Most {
		return nil, false
	}
	t := h.topics[id]
	if t == nil {
		t = &topic{stream: stream, changed: make(chan struct{})}
		h.topics[id] = t
	}
	t.waiters++
	h.waiters++
	h.o.Waiting(h.waiters)
	select {
	case h.began <- struct{}{}:
	default:
	}
	return &Waiter{h, id, t}, true
}

// Leave gives the place back. It must be called once.
func (w *Waiter) Leave() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.waiters--
	w.hub.o.Waiting(w.hub.waiters)
	if w.topic.waiters--; w.topic.waiters == 0 {
		delete(w.hub.topics, w.id)
	}
}

// Wait returns nil once the operation is beyond a version, or the stream beyond
// a sequence, else the context's
// error or [ErrEnded].
func (w *Waiter) Wait(ctx context.Context, version int64) error {
	for {
		w.hub.mu.Lock()
		heard, changed := w.topic.version, w.topic.changed
		w.hub.mu.Unlock()
		if heard > version {
			return nil
		}
		select {
		case <-changed:
		case <-w.hub.ended:
			return ErrEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Committed wakes those who wait for what a commit has changed.
func (h *Hub) Committed(rows *ledger.Rows) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiters == 0 {
		return
	}
	for id, change := range rows.Operations.Changes() {
		h.heard(id, change.Now.Version)
	}
	for id, change := range rows.Queues.Changes() {
		if id.Kind == ledger.DeliveryQueue {
			h.heard(id.Endpoint, change.Now.Sequence)
		}
	}
}

func (h *Hub) heard(id pawl.ID, version int64) {
	t := h.topics[id]
	if t == nil || version <= t.version {
		return
	}
	t.version = version
	close(t.changed)
	t.changed = make(chan struct{})
}

// Run polls while anyone waits. It returns when the context ends.
func (h *Hub) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.began:
		}
		ticker := time.NewTicker(every)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				waiting = false
			case <-ticker.C:
				waiting = h.poll(ctx)
			}
		}
		ticker.Stop()
	}
}

// poll asks once for all and reports whether anyone waits.
func (h *Hub) poll(ctx context.Context) bool {
	var operations, streams []pawl.ID
	h.mu.Lock()
	for id, t := range h.topics {
		if t.stream {
			streams = append(streams, id)
		} else {
			operations = append(operations, id)
		}
	}
	h.mu.Unlock()
	h.ask(ctx, h.o.Versions, operations)
	h.ask(ctx, h.o.Sequences, streams)
	return len(operations)+len(streams) > 0
}

// ask hears what one question brings.
func (h *Hub) ask(ctx context.Context, question func(context.Context, ...pawl.ID) (map[pawl.ID]int64, error), ids []pawl.ID) {
	if question == nil || len(ids) == 0 {
		return
	}
	slices.SortFunc(ids, pawl.ID.Compare)
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	versions, err := question(asking, ids...)
	if err != nil {
		if ctx.Err() == nil {
			h.o.Log.Error("what somebody waits for could not be read", "error", err)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, version := range versions {
		h.heard(id, version)
	}
}

// Close ends every wait, present and future.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.closed = true
		close(h.ended)
	}
}

// Waiters is how many wait now.
func (h *Hub) Waiters() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiters
}
