package simulate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/sim"
	"github.com/pawlhq/pawl/webhook"
)

// tells is what an event of a task tells.
type tells uint8

const (
	tellsRunning tells = iota + 1
	tellsProgress
	tellsEnd
	tellsSettled
)

// eventBook is what a provider knows of one of its events.
type eventBook struct {
	id    string
	body  []byte
	state pawl.State
	// perhaps counts sendings that the client may have stored: all that reached a
	// node, but for those that it refused.
	perhaps int
	// taken: one of them was answered with a 2xx.
	taken bool
}

// sending is one way of an event to the client.
type sending struct {
	task    *task
	name    string
	kind    tells
	fault   Fault
	attempt int
}

// genuine reports whether it is the provider's own word about the task.
func (s sending) genuine() bool {
	switch s.fault {
	case "", sim.CallbackDuplicate, sim.CallbackDelayed, sim.CallbackReordered, sim.CallbackEarly, sim.CallbackCorrupted:
		return true
	}
	return false
}

// insists reports whether the provider goes on until it is answered.
func (s sending) insists() bool {
	return s.genuine() || s.fault == sim.CallbackLate || s.fault == sim.CallbackConflict
}

// schedule plans the events of a task's life, and what goes wrong with them.
func (t *task) schedule(d dice) {
	t.plan(d, "running", tellsRunning, t.start)
	if t.end != never {
		for _, name := range []string{"progress-1", "progress-2"} {
			if d.percent(40) {
				t.plan(d, name, tellsProgress, t.start+d.between(0, t.end-t.start))
			}
		}
		t.plan(d, "end", tellsEnd, t.end)
		if t.settle > t.end && !t.provider.world.hitBy(d, sim.SettleByRead, 400) {
			t.plan(d, "settled", tellsSettled, t.settle)
		}
		if t.raise > 0 {
			t.plan(d, "raised", tellsSettled, t.raise)
		}
	}
	for _, f := range []Fault{
		sim.CallbackBadSignature, sim.CallbackStale, sim.CallbackWrongTask, sim.CallbackUnknownTask,
		sim.CallbackUnknownState, CallbackUnknownType, sim.CallbackLate, sim.CallbackConflict, CallbackOtherBody,
	} {
		if t.provider.world.hitBy(d, f, 50) {
			t.tell(string(f), tellsEnd, f, d.between(0, min(t.end, time.Hour)+5*time.Minute))
		}
	}
}

// plan sends an event at its time, or wrongly.
func (t *task) plan(d dice, name string, kind tells, at time.Duration) {
	w := t.provider.world
	fault := Fault("")
	switch {
	case w.hitBy(d, sim.CallbackDropped, 120):
		return
	case w.hitBy(d, sim.CallbackEarly, 80) && kind == tellsRunning:
		fault, at = sim.CallbackEarly, 0
	case w.hitBy(d, sim.CallbackDelayed, 80):
		fault, at = sim.CallbackDelayed, at+d.between(time.Second, 20*time.Minute)
	case w.hitBy(d, sim.CallbackReordered, 80) && kind != tellsEnd && t.end != never:
		fault, at = sim.CallbackReordered, t.end+d.between(0, time.Minute)
	case w.hitBy(d, sim.CallbackCorrupted, 40):
		fault = sim.CallbackCorrupted
	}
	t.tell(name, kind, fault, at)
	if w.hitBy(d, sim.CallbackDuplicate, 120) {
		t.tell(name, kind, sim.CallbackDuplicate, at+d.between(0, pick(d, time.Second, 10*time.Minute)))
	}
}

// tell has an event sent in a while.
func (t *task) tell(name string, kind tells, f Fault, in time.Duration) {
	t.provider.world.after(in, func() { t.send(sending{t, name, kind, f, 1}) })
}

// ready reports whether what an event depends on has happened: a well-signed
// event for another task would teach a client that has no task yet a wrong one
// (7-rules R19), and a second end that overtakes the first would be the first.
func (s sending) ready() bool {
	switch t := s.task; s.fault {
	case sim.CallbackWrongTask:
		return t.known && !t.shared && t.neighbor() != nil
	case sim.CallbackUnknownTask:
		return t.known || t.shared
	case sim.CallbackLate, sim.CallbackConflict:
		return t.ended
	case CallbackOtherBody:
		e := t.events["end"]
		return e != nil && e.taken
	case CallbackUnknownType:
		return t.provider.voice.typed()
	}
	return true
}

// neighbor is a task of another operation at the same provider.
func (t *task) neighbor() *task {
	for i := t.provider.serial; i > 0; i-- {
		if other := t.provider.tasks[taskName(t.provider, i)]; other != nil && other.op != t.op {
			return other
		}
	}
	return nil
}

// event is an event's book, its id and bytes made when it is first needed.
func (s sending) event() *eventBook {
	t := s.task
	if e, ok := t.events[s.name]; ok {
		return e
	}
	e := &eventBook{id: t.id + "-" + s.name}
	if t.provider.numbered {
		e.id = "evt-" + s.name
	}
	r := s.report()
	said := t.provider.voice.event(e.id, r, s.kind).(object)
	e.state = r.state
	if s.fault == CallbackUnknownType {
		said["type"] = "task.exploded"
	}
	e.body = encode(said)
	t.events[s.name] = e
	return e
}

// report is what the event says.
func (s sending) report() report {
	t := s.task
	switch s.fault {
	case sim.CallbackConflict, sim.CallbackBadSignature, CallbackOtherBody:
		other := t.otherEnd()
		if s.fault == sim.CallbackConflict {
			t.told[other] = true
		}
		r := t.reportAs(other, true)
		r.version = 4
		return r
	case sim.CallbackWrongTask:
		r := t.reportAs(pawl.Running, false)
		r.task = t.neighbor().id
		return r
	case sim.CallbackUnknownTask:
		r := t.reportAs(pawl.Running, false)
		r.task += "-unknown"
		return r
	case sim.CallbackUnknownState:
		r := t.reportAs(pawl.Running, false)
		r.word = "melted"
		return r
	case sim.CallbackLate, CallbackUnknownType:
		return t.reportAs(pawl.Running, false)
	}
	switch s.kind {
	case tellsRunning:
		return t.reportAs(pawl.Running, false)
	case tellsProgress:
		if t.provider.voice.typed() && t.provider.world.hit(CallbackProgressEnds, 150) {
			return t.reportAs(t.otherEnd(), false)
		}
		r := t.reportAs(pawl.Running, false)
		r.percent = 10 + t.provider.world.IntN(80)
		return r
	default:
		return t.reportAs(t.final, t.age() >= t.settle)
	}
}

// otherEnd is an end that the task does not have.
func (t *task) otherEnd() pawl.State {
	if t.final == pawl.Succeeded {
		return pawl.Failed
	}
	return pawl.Succeeded
}

// send sends an event once, to some node.
func (t *task) send(s sending) {
	w := t.provider.world
	if !s.ready() {
		return
	}
	e := s.event()
	if s.fault == CallbackOtherBody {
		e = &eventBook{id: t.events["end"].id, perhaps: 1}
		e.body = encode(t.provider.voice.event(e.id, s.report(), tellsEnd))
	}
	answered := false
	answer := func(status int, verdict string) {
		if !answered {
			answered = true
			t.answered(s, e, status, verdict)
		}
	}
	w.after(15*time.Second, func() { answer(0, "") })
	n := pick(w.dice, w.nodes...)
	if !n.up {
		w.after(w.lag(), func() { answer(0, "") })
		return
	}
	signed := w.now.Std()
	request := t.request(s, e, signed)
	e.perhaps++
	n.after(w.lag(), func() {
		n.spawn("hook", func() {
			rec := &recorder{header: http.Header{}}
			n.hooks.ServeHTTP(rec, request)
			verdict := rec.verdict()
			w.trace("%s takes event %s of %s (%s): %d %s", n.name, e.id, t.id, s.fault, rec.status, verdict.Verdict)
			t.judge(s, e, rec.status, verdict, n.clock().Sub(signed))
			if !w.hit(CallbackUnanswered, 40) {
				w.after(w.lag(), func() { answer(rec.status, verdict.Verdict) })
			}
		})
	})
}

// request is the signed request of one sending.
func (t *task) request(s sending, e *eventBook, at time.Time) *http.Request {
	p := t.provider
	key, body := p.signing, e.body
	switch s.fault {
	case sim.CallbackBadSignature:
		key = p.forging
	case sim.CallbackStale:
		at = at.Add(-time.Hour)
	}
	header, err := http.Header{}, error(nil)
	if !p.unsigned {
		header, err = p.scheme.Sign(webhook.Message{ID: e.id, Timestamp: at.Unix(), Body: body}, key)
	}
	if err != nil {
		panic(err)
	}
	if s.fault == sim.CallbackCorrupted && s.attempt == 1 {
		body = bytes.Clone(body)
		body[len(body)/2] ^= 1
	}
	address := t.callback
	if t.shared {
		address = "https://pawl.example/hooks/" + p.name
	}
	r, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	return r
}

// answered is told of the client's answer, 0 for none, and sends again.
func (t *task) answered(s sending, e *eventBook, status int, verdict string) {
	w := t.provider.world
	if status/100 == 2 {
		e.taken = e.taken || verdict != pawl.Hint.String()
		if s.genuine() && e.taken && verdict != pawl.Orphan.String() {
			t.known = true
			t.ended = t.ended || s.kind >= tellsEnd
		}
		return
	}
	corrupted := s.fault == sim.CallbackCorrupted && s.attempt == 1
	if !s.insists() || s.attempt >= 7 || status/100 == 4 && status != http.StatusTooManyRequests && !corrupted && w.percent(50) {
		return
	}
	s.attempt++
	w.after(w.between(time.Second, time.Second<<min(2*s.attempt, 9)), func() { t.send(s) })
}

// recorder keeps an answer of ours.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is http.ResponseWriter's.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader is http.ResponseWriter's.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write is http.ResponseWriter's.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// verdictAnswer is what an answer to an event says.
type verdictAnswer struct {
	Verdict string `json:"verdict"`
	EventID string `json:"event_id"`
	Reason  string `json:"reason"`
}

func (r *recorder) verdict() (v verdictAnswer) {
	_ = json.Unmarshal(r.body.Bytes(), &v)
	return v
}
