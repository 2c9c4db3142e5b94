package sim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pawlhq/pawl/webhook"
)

// handle makes one attempt at a job and returns after how long the job is to
// be tried again, 0 for never.
func (c *courier) handle(j *job) time.Duration {
	attempt := Attempt{Task: j.task.id, Event: j.task.eventID(j.call), Kind: j.call.Kind, Fault: j.call.Fault}
	if c.outage.has(j.task.script.Dialect) {
		c.lost(j, attempt)
		return 0
	}
	if j.call.Fault == CallbackDropped {
		c.note(j, attempt)
		return 0
	}
	if !j.task.ready(j.call.Fault) {
		if j.gate++; j.gate < gateTries {
			return gateWait
		}
		c.note(j, attempt)
		return 0
	}
	message, key, ok := c.compose(j)
	if !ok { // there is no other task to name
		c.note(j, attempt)
		return 0
	}
	j.attempt++
	attempt.Number, attempt.Status = j.attempt, c.post(j, message, key)
	c.note(j, attempt)
	if j.tried != nil && j.attempt == 1 {
		close(j.tried)
	}
	if attempt.Status/100 == 2 {
		j.task.acknowledge(j.call)
		return 0
	}
	if !j.call.Fault.retried() || j.attempt >= c.config.Attempts {
		return 0
	}
	return min(c.config.Backoff<<min(j.attempt-1, 20), c.config.MaxBackoff)
}

func (c *courier) note(j *job, a Attempt) {
	c.books.edit(j.task.script.N, func(p *page) { p.callbacks = append(p.callbacks, a) })
}

// retried reports whether the sender insists on an answer: a provider does, a
// forger does not.
func (f Fault) retried() bool { return f.genuine() || f == CallbackLate || f == CallbackConflict }

// ready reports whether what the event depends on has happened. A well-signed
// event for another task would teach a client that has no task yet a wrong one
// (7-rules R19); a second end that overtakes the first would be the first.
func (t *task) ready(f Fault) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch f {
	case CallbackWrongTask, CallbackUnknownTask:
		return t.known
	case CallbackLate, CallbackConflict, CallbackDiffers:
		return t.endKnown
	}
	return true
}

// acknowledge notes what a 2xx proves.
func (t *task) acknowledge(c Callback) {
	if !c.Fault.genuine() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = true
	if c.Kind == TellsEnd || c.Kind == TellsSettled {
		t.endKnown = true
	}
}

func (t *task) eventID(c Callback) string {
	prefix := "evt_"
	if t.script.Dialect == MediaV2 {
		prefix = "whd_"
	}
	return prefix + t.eventPrefix + "-" + c.Event
}

// compose makes the message of a job's next attempt and the key to sign it
// with. It fails where an event for another task finds none.
func (c *courier) compose(j *job) (webhook.Message, webhook.Key, bool) {
	t, call := j.task, j.call
	g := c.signers[t.script.Dialect]
	key, now := g.honest, time.Now()
	var names string
	switch call.Fault {
	case CallbackBadSignature:
		key = g.forged
	case CallbackStale:
		now = now.Add(-time.Hour)
	case CallbackWrongTask:
		if names = c.book.neighbor(t); names == "" {
			return webhook.Message{}, key, false
		}
	case CallbackUnknownTask:
		names = t.id + "-unknown"
	}
	body := t.body(call, names)
	return webhook.Message{ID: t.eventID(call), Timestamp: now.Unix(), Body: body}, key, true
}

// body writes an event. Its bytes are the same for every sending, except that
// a forger's or misrouted body is never mistaken for the event's own.
func (t *task) body(call Callback, names string) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := call.Fault.retried()
	if b, ok := t.bodies[call.Event]; ok && own {
		return b
	}
	e := event{report: t.tell(call), id: t.eventID(call), progress: call.Kind == TellsProgress, at: t.real(call.At)}
	if names != "" {
		e.task = names
	}
	e.odd = call.Fault == CallbackUnknownType
	b, err := json.Marshal(t.script.Dialect.voice().event(e))
	if err != nil {
		panic("sim: an event of strings and numbers did not become JSON: " + err.Error())
	}
	if own {
		t.bodies[call.Event] = b
	}
	return b
}

// post sends a message and returns the status, 0 for no answer.
func (c *courier) post(j *job, m webhook.Message, key webhook.Key) int {
	headers, err := c.signers[j.task.script.Dialect].scheme.Sign(m, key)
	if err != nil {
		panic("sim: an own event could not be signed: " + err.Error())
	}
	body := m.Body
	if j.call.Fault == CallbackCorrupted && j.attempt == 1 {
		body = bytes.Clone(body)
		body[len(body)/2] ^= 1
	}
	address := j.task.callbackURL
	if j.call.Fault == CallbackNoToken {
		address = address[:strings.LastIndexByte(address, '/')]
	}
	request, err := http.NewRequestWithContext(c.ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	request.Header = headers
	if c.config.Unsigned && j.task.script.Dialect == Native {
		request.Header = http.Header{}
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody))
	return answer.StatusCode
}
