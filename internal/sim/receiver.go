package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// ReceiverConfig sets up a [Receiver].
type ReceiverConfig struct {
	// Scheme is the signature scheme, standard-webhooks if empty.
	Scheme string
	// Secrets are those that verify; at least one.
	Secrets []string
	// Seed decides, with the event's id, which fault an event meets.
	Seed uint64
	// Trouble is the percentage of events that meet a fault, 0 for none.
	Trouble int
	// Gone allows 410 among the faults. A sender disables the whole endpoint
	// for it (7-rules §5), so it must be asked for.
	Gone bool
	// Hold is how long a slow answer takes. Real time, default 1 s.
	Hold time.Duration
}

// Receiver takes webhooks on every path, verifies them and remembers them. It
// is an [http.Handler] and safe for concurrent use. GET /books answers its
// books as JSON.
type Receiver struct {
	config ReceiverConfig
	scheme webhook.Scheme
	keys   []webhook.Key
	books  *receiverBooks
	ctx    context.Context
	cancel context.CancelFunc
	socket loopback
	down   atomic.Bool
}

// NewReceiver fails on an unknown scheme or an unusable secret.
func NewReceiver(config ReceiverConfig) (*Receiver, error) {
	if config.Scheme == "" {
		config.Scheme = Native.Scheme()
	}
	setDefault(&config.Hold, time.Second)
	scheme, ok := webhook.Lookup(config.Scheme)
	if !ok {
		return nil, errors.New("sim receiver: unknown scheme: take one of webhook.Names")
	}
	r := &Receiver{config: config, scheme: scheme, books: newReceiverBooks()}
	for _, secret := range config.Secrets {
		key, err := scheme.ParseKey(secret)
		if err != nil {
			return nil, fmt.Errorf("sim receiver: secret: %w", err)
		}
		r.keys = append(r.keys, key)
	}
	if len(r.keys) == 0 {
		return nil, errors.New("sim receiver: no secret: give the endpoint's secret")
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Start listens on a free port of 127.0.0.1 and returns the base URL. It may
// be called once.
func (r *Receiver) Start() (string, error) { return r.socket.start(r) }

// Close stops the listener and the answers that are held back.
func (r *Receiver) Close() error {
	r.cancel()
	return r.socket.close()
}

// Snapshot is a copy of the books.
func (r *Receiver) Snapshot() ReceiverBooks { return r.books.snapshot() }

// ServeHTTP takes one delivery. To lose an answer it panics with
// [http.ErrAbortHandler], which an http.Server turns into a closed connection.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodGet && request.URL.Path == "/books" {
		writeJSON(w, http.StatusOK, r.Snapshot())
		return
	}
	if r.down.Load() {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, request.Body, maxBody))
	if err != nil {
		r.books.refuse("unreadable")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	verified, err := r.scheme.Verify(webhook.Request{Header: request.Header, Body: body}, time.Now(), r.keys...)
	if err != nil {
		r.books.refuse(reason(err))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	d, ok := parseDelivery(verified.ID, request, body)
	if !ok {
		r.books.refuse("no event id in the body")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	fault, times := r.fault(d.event)
	count := r.books.arrive(d)
	if count > times {
		fault = ""
	}
	r.answer(w, request, d, fault)
}

func reason(err error) string {
	var why webhook.Reason
	if errors.As(err, &why) {
		return string(why)
	}
	return "not verified"
}

// fault is what an event meets, and for how many attempts: a pure function of
// the seed and the event's id.
func (r *Receiver) fault(event string) (Fault, int) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, event)
	d := rand.New(rand.NewPCG(r.config.Seed, h.Sum64()))
	trouble, times := d.IntN(100), 1+d.IntN(3)
	if trouble >= r.config.Trouble {
		return "", 0
	}
	kinds := []Fault{ReceiverFailed, ReceiverSlow, ReceiverCut, ReceiverLimited}
	if r.config.Gone {
		kinds = append(kinds, ReceiverGone)
	}
	switch kind := kinds[d.IntN(len(kinds))]; kind {
	case ReceiverFailed:
		return kind, times
	case ReceiverGone:
		return kind, int(^uint(0) >> 1)
	default:
		return kind, 1
	}
}

func (r *Receiver) answer(w http.ResponseWriter, request *http.Request, d delivery, fault Fault) {
	status := http.StatusOK
	switch fault {
	case ReceiverFailed:
		status = http.StatusInternalServerError
	case ReceiverLimited:
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "1")
	case ReceiverGone:
		status = http.StatusGone
	case ReceiverCut:
		status = 0
	case ReceiverSlow:
		r.hold(request)
	}
	r.books.answer(d, status, fault)
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	if status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	writeJSON(w, status, map[string]bool{"received": true})
}

func (r *Receiver) hold(request *http.Request) {
	timer := time.NewTimer(r.config.Hold)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-request.Context().Done():
	case <-r.ctx.Done():
	}
}
