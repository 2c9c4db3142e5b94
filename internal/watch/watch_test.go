package watch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// table is a ledger of versions that counts how often it is asked.
type table struct {
	version atomic.Int64
	asked   atomic.Int64
	ids     atomic.Int64
	fails   atomic.Bool
}

func (s *table) versions(_ context.Context, ids ...pawl.ID) (map[pawl.ID]int64, error) {
	s.asked.Add(1)
	s.ids.Store(int64(len(ids)))
	all := make(map[pawl.ID]int64)
	for _, id := range ids {
		all[id] = s.version.Load()
	}
	if s.fails.Load() {
		return nil, errors.New("busy")
	}
	return all, nil
}

func running(t *testing.T, o Options) *Hub {
	h := New(o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return h
}

func join(t *testing.T, h *Hub, id pawl.ID) *Waiter {
	t.Helper()
	w, ok := h.Join(id)
	if !ok {
		t.Fatal("no place")
	}
	return w
}

func op(n uint64) pawl.ID { return pawl.NewID(1, n) }

// committed is what a commit hands over that took an operation to a version.
func committed(id pawl.ID, version int64) *ledger.Rows {
	rows := new(ledger.Rows)
	rows.Operations.Loaded(id, ledger.Operation{ID: id, Version: version - 1}, true)
	d := ledger.NewDraft(rows)
	d.Run(put{id, version}, 1)
	return rows
}

type put struct {
	id      pawl.ID
	version int64
}

func (put) Head() ledger.Header { return ledger.Header{} }
func (put) Keys(*ledger.Keys)   {}
func (p put) Decide(d *ledger.Draft) ledger.Outcome {
	d.Operations.Put(p.id, ledger.Operation{ID: p.id, Version: p.version})
	return ledger.Outcome{}
}

// A node's own commit wakes at once, whoever waits for that operation and
// nobody else.
func TestCommitWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &table{}
		h := running(t, Options{Versions: store.versions})
		began := time.Now()
		var woken [2]atomic.Int64
		for i := range woken {
			w := join(t, h, op(uint64(i)))
			go func() {
				defer w.Leave()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if w.Wait(ctx, 3) == nil {
					woken[i].Store(int64(time.Since(began)) + 1)
				}
			}()
		}
		time.Sleep(50 * time.Millisecond)
		h.Committed(committed(op(0), 3)) // nothing new
		time.Sleep(50 * time.Millisecond)
		h.Committed(committed(op(0), 4))
		synctest.Wait()
		if got := time.Duration(woken[0].Load() - 1); got != 100*time.Millisecond {
			t.Errorf("woken after %s, want 100ms", got)
		}
		time.Sleep(2 * time.Minute)
		if woken[1].Load() != 0 {
			t.Error("another operation's change woke a waiter")
		}
	})
}

// A change between the reading and the waiting is not missed: whoever has
// joined hears of it.
func TestJoinedBeforeTheChange(t *testing.T) {
	h := New(Options{Versions: (&table{}).versions})
	w := join(t, h, op(1))
	defer w.Leave()
	h.Committed(committed(op(1), 2))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := w.Wait(ctx, 1); err != nil {
		t.Error(err)
	}
}

// All waiters share one question a tick, and nobody asks while nobody waits.
func TestOnePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &table{}
		h := running(t, Options{Versions: store.versions})
		time.Sleep(time.Minute)
		if n := store.asked.Load(); n != 0 {
			t.Errorf("asked %d times for nobody", n)
		}
		ended := make(chan error, 100)
		for i := range 100 {
			w := join(t, h, op(uint64(i%50)))
			go func() { defer w.Leave(); ended <- w.Wait(context.Background(), 0) }()
		}
		time.Sleep(10 * time.Second)
		if n := store.asked.Load(); n < 49 || n > 51 {
			t.Errorf("asked %d times in 10 s, want 50", n)
		}
		if n := store.ids.Load(); n != 50 {
			t.Errorf("asked for %d operations, want 50", n)
		}
		store.version.Store(1)
		time.Sleep(every)
		synctest.Wait()
		if len(ended) != 100 {
			t.Errorf("%d of 100 were woken by the poll", len(ended))
		}
		n := store.asked.Load()
		time.Sleep(time.Minute)
		if more := store.asked.Load() - n; more > 1 {
			t.Errorf("asked %d times after the last one had left", more)
		}
	})
}

// A poll that fails is tried again.
func TestPollFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &table{}
		store.fails.Store(true)
		store.version.Store(5)
		h := running(t, Options{Versions: store.versions})
		w := join(t, h, op(1))
		defer w.Leave()
		go func() { time.Sleep(time.Second); store.fails.Store(false) }()
		began := time.Now()
		if err := w.Wait(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(began); got < time.Second || got > time.Second+2*every {
			t.Errorf("woken after %s", got)
		}
	})
}

func TestPlacesAreBounded(t *testing.T) {
	var told []int
	h := New(Options{Versions: (&table{}).versions, Most: 2, Waiting: func(n int) { told = append(told, n) }})
	first, second := join(t, h, op(1)), join(t, h, op(1))
	if _, ok := h.Join(op(2)); ok {
		t.Error("a third place of two")
	}
	first.Leave()
	third := join(t, h, op(2))
	second.Leave()
	third.Leave()
	if want := []int{1, 2, 1, 2, 1, 0}; len(told) != len(want) || told[5] != 0 || told[1] != 2 {
		t.Errorf("told %v, want %v", told, want)
	}
	if len(h.topics) != 0 {
		t.Errorf("%d topics are left", len(h.topics))
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := running(t, Options{Versions: (&table{}).versions})
		w := join(t, h, op(1))
		go func() { time.Sleep(time.Second); h.Close(); h.Close() }()
		if err := w.Wait(t.Context(), 9); err != ErrEnded {
			t.Errorf("waiting ended with %v", err)
		}
		w.Leave()
		if _, ok := h.Join(op(1)); ok {
			t.Error("a place after the end")
		}
	})
}

// Whoever gives up is free at once.
func TestContextEnds(t *testing.T) {
	h := New(Options{Versions: (&table{}).versions})
	w := join(t, h, op(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Wait(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.Leave()
}

// Streams and operations are asked for apart, each kind once a tick, and a
// node's own commits wake those who wait for a stream.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, streams := &table{}, &table{}
		h := running(t, Options{Versions: store.versions, Sequences: streams.versions})
		operation := join(t, h, op(1))
		defer operation.Leave()
		stream, ok := h.JoinStream(op(2))
		if !ok {
			t.Fatal("no place")
		}
		defer stream.Leave()
		streams.version.Store(3)
		if err := stream.Wait(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if n, m := store.ids.Load(), streams.ids.Load(); n != m || n == 0 {
			t.Errorf("asked for %d operations and %d streams", n, m)
		}
		began := time.Now()
		go func() {
			rows := new(ledger.Rows)
			queue := ledger.DeliveryQueueID(op(2))
			rows.Queues.Loaded(queue, ledger.Queue{}, false)
			d := ledger.NewDraft(rows)
			d.Run(grow{queue}, 1)
			h.Committed(rows)
		}()
		if err := stream.Wait(t.Context(), 8); err != nil || time.Since(began) != 0 {
			t.Errorf("woken after %s: %v", time.Since(began), err)
		}
	})
}

// grow is a command that leaves a stream of nine.
type grow struct{ queue ledger.QueueID }

func (grow) Head() ledger.Header { return ledger.Header{} }
func (grow) Keys(*ledger.Keys)   {}
func (p grow) Decide(d *ledger.Draft) ledger.Outcome {
	d.Queues.Put(p.queue, ledger.Queue{ID: p.queue, Sequence: 9})
	return ledger.Outcome{}
}
