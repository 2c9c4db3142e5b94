package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// ReceiverBooks is what a [Receiver] has seen. Events and operations are in
// the order in which they were first seen.
type ReceiverBooks struct {
	Events     []Received          `json:"events"`
	Operations []ReceivedOperation `json:"operations"`
	// Refused counts deliveries that did not verify, by reason.
	Refused map[string]int `json:"refused"`
	// Violations are what a sender must never do.
	Violations []Violation `json:"violations"`
	// Faults counts the faulty answers.
	Faults map[Fault]int `json:"faults"`
}

// Received is one event at one path. A path stands for an endpoint: the same
// event has another sequence, so other bytes, at another endpoint.
type Received struct {
	Path string `json:"path"`
	// Event is the event id (webhook-id, or its like in the other schemes).
	Event string `json:"event"`
	// Digest is the hexadecimal SHA-256 of the first body.
	Digest string `json:"digest"`
	// Statuses are the answers to the attempts, 0 for a connection cut after
	// the event was accepted. There are Count attempts, some perhaps unanswered.
	Statuses []int `json:"statuses"`
	Count    int   `json:"count"`
}

// ReceivedOperation is what was told of one operation (or task) at one path.
type ReceivedOperation struct {
	Path string `json:"path"`
	ID   string `json:"id"`
	Seen []Seen `json:"seen"`
}

// Seen is one event, once, when it was first seen.
type Seen struct {
	Event    string `json:"event"`
	Type     string `json:"type"`
	Version  int64  `json:"version"`
	State    string `json:"state"`
	Sequence int64  `json:"sequence"`
}

// Violation is something that a sender must never do. What is one of
// "body_changed" and "sequence_differs".
type Violation struct {
	Path  string `json:"path"`
	Event string `json:"event"`
	What  string `json:"what"`
}

// delivery is one verified arrival.
type delivery struct {
	path, event, digest string
	operation           string
	seen                Seen
	headerSequence      string
}

// parseDelivery reads the event in the body of any of the three schemes.
func parseDelivery(id string, r *http.Request, body []byte) (delivery, bool) {
	var e struct {
		ID        string `json:"id"`
		RequestID string `json:"request_id"`
		Type      string `json:"type"`
		Sequence  int64  `json:"sequence"`
		Data      struct {
			ID      string `json:"id"`
			MediaID string `json:"taskId"`
			TaskID  string `json:"task_id"`
			State   string `json:"state"`
			Status  string `json:"status"`
			Version int64  `json:"version"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &e) != nil {
		return delivery{}, false
	}
	sum := sha256.Sum256(body)
	d := delivery{
		path: r.URL.Path, event: first(id, e.ID, e.RequestID), digest: hex.EncodeToString(sum[:]),
		operation:      first(e.Data.ID, e.Data.MediaID, e.Data.TaskID),
		headerSequence: r.Header.Get("Pawl-Endpoint-Sequence"),
	}
	d.seen = Seen{d.event, e.Type, e.Data.Version, first(e.Data.State, e.Data.Status), e.Sequence}
	return d, d.event != ""
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

type receiverBooks struct {
	mu         sync.Mutex
	events     map[[2]string]int // path, event → index
	operations map[[2]string]int // path, operation → index
	books      ReceiverBooks
}

func newReceiverBooks() *receiverBooks {
	return &receiverBooks{
		events: map[[2]string]int{}, operations: map[[2]string]int{},
		books: ReceiverBooks{
			Events: []Received{}, Operations: []ReceivedOperation{}, Violations: []Violation{},
			Refused: map[string]int{}, Faults: map[Fault]int{},
		},
	}
}

func (b *receiverBooks) refuse(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.books.Refused[reason]++
}

// arrive records a verified delivery and returns its number, from 1.
func (b *receiverBooks) arrive(d delivery) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.headerSequence != "" && d.headerSequence != strconv.FormatInt(d.seen.Sequence, 10) {
		b.violate(d, "sequence_differs") // 7-rules §3: header and body say the same
	}
	key := [2]string{d.path, d.event}
	i, known := b.events[key]
	if !known {
		i = len(b.books.Events)
		b.events[key] = i
		b.books.Events = append(b.books.Events, Received{Path: d.path, Event: d.event, Digest: d.digest})
		b.see(d)
	}
	e := &b.books.Events[i]
	if e.Digest != d.digest {
		b.violate(d, "body_changed")
	}
	e.Count++
	return e.Count
}

// see must be called with the lock held.
func (b *receiverBooks) see(d delivery) {
	if d.operation == "" {
		return
	}
	key := [2]string{d.path, d.operation}
	i, known := b.operations[key]
	if !known {
		i = len(b.books.Operations)
		b.operations[key] = i
		b.books.Operations = append(b.books.Operations, ReceivedOperation{Path: d.path, ID: d.operation})
	}
	o := &b.books.Operations[i]
	o.Seen = append(o.Seen, d.seen)
}

// violate must be called with the lock held.
func (b *receiverBooks) violate(d delivery, what string) {
	b.books.Violations = append(b.books.Violations, Violation{d.path, d.event, what})
}

func (b *receiverBooks) answer(d delivery, status int, fault Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &b.books.Events[b.events[[2]string{d.path, d.event}]]
	e.Statuses = append(e.Statuses, status)
	if fault != "" {
		b.books.Faults[fault]++
	}
}

func (b *receiverBooks) snapshot() ReceiverBooks {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := ReceiverBooks{
		Events: slices.Clone(b.books.Events), Operations: slices.Clone(b.books.Operations),
		Violations: slices.Clone(b.books.Violations),
		Refused:    maps.Clone(b.books.Refused), Faults: maps.Clone(b.books.Faults),
	}
	for i := range out.Events {
		out.Events[i].Statuses = slices.Clone(out.Events[i].Statuses)
	}
	for i := range out.Operations {
		out.Operations[i].Seen = slices.Clone(out.Operations[i].Seen)
	}
	return out
}
