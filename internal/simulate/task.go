package simulate

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/sim"
)

// task is a provider's job. What it is at a moment follows from its times.
type task struct {
	provider *provider
	id, op   string
	n        int
	made     pawl.Time
	callback string
	// start, end, settle are counted from when it was made; end is never for one
	// that does not end by itself.
	start, end, settle time.Duration
	final              pawl.State
	// cost is the final total; raised is what it becomes after raise.
	price, cost, raised pawl.Amount
	raise               time.Duration
	currency            string
	noResult            bool
	errorCode           string
	canceled            bool
	// forgotten is until when the provider does not find it.
	forgotten pawl.Time
	// known: the client has shown that it knows the task, by reading it or by
	// taking one of its events; ended: it has taken an event of the end.
	known, ended bool
	// shared says that its events go to the address of the source.
	shared bool
	// told are the ends that signed events have named besides the true one.
	told   map[pawl.State]bool
	events map[string]*eventBook
}

const never = time.Duration(1<<62 - 1)

// newTask draws a task's life.
func (p *provider) newTask(id, suffix string, asked createCall) *task {
	w := p.world
	d := newDice(w.seedNumber, "task "+id)
	t := &task{
		provider: p, id: id, op: suffix, n: asked.Input.N, made: w.now, callback: asked.CallbackURL + asked.CallbackURL2,
		currency: currency, told: map[pawl.State]bool{}, events: map[string]*eventBook{},
	}
	t.start = d.between(10*time.Millisecond, 5*time.Second)
	t.end = t.start + d.between(100*time.Millisecond, pick(d, 5*time.Second, time.Minute, 3*time.Minute))
	if w.hitBy(d, TaskSlow, 80) {
		t.end += d.between(5*time.Minute, 2*time.Hour)
	}
	if w.hitBy(d, TaskStuck, 30) {
		t.end = never
	}
	t.final = pick(d, p.voice.ends()...)
	t.outcome(d)
	t.settle = t.end
	if p.voice.settles() && t.end != never {
		if w.hitBy(d, sim.SettleLater, 250) {
			t.settle += d.between(time.Second, 20*time.Minute)
		}
	}
	if j := w.jobOf(t.n); j != nil {
		t.price = j.command.Price.Amount
	}
	t.drawCost(d)
	t.shared = d.percent(25)
	if t.callback != "" {
		t.schedule(d)
	}
	return t
}

func (t *task) outcome(d dice) {
	w := t.provider.world
	t.noResult = w.hitBy(d, NoResult, 40)
	if t.final == pawl.Failed {
		t.errorCode = pick(d, "generation_failed", "content_rejected", "gpu_on_fire")
	}
}

func (t *task) drawCost(d dice) {
	w := t.provider.world
	if !t.provider.voice.priced() {
		return
	}
	if t.price > 0 {
		t.cost = pawl.Amount(d.Int64N(int64(t.price) + 1))
	}
	if w.hitBy(d, CostAbove, 40) {
		t.cost = t.price + t.price/3 + 1
	}
	if w.hitBy(d, CostCurrency, 25) && t.provider.voice.currencies() {
		t.currency = "EUR"
	}
	t.raised = t.cost
	if w.hitBy(d, CostRaised, 60) && t.end != never {
		t.raise, t.raised = t.settle+d.between(time.Second, time.Hour), t.cost+t.price/10+1
		if d.percent(30) { // A total that falls books nothing.
			t.raised = t.cost / 2
		}
	}
}

// age is how long ago the task was made.
func (t *task) age() time.Duration { return t.provider.world.now.Sub(t.made) }

// state is what the task is now.
func (t *task) state() pawl.State {
	switch at := t.age(); {
	case at >= t.end:
		return t.final
	case at >= t.start:
		return pawl.Running
	}
	return pawl.Pending
}

// report is what a provider says of a task.
type report struct {
	task, word, currency, code, result string
	state                              pawl.State
	version, percent                   int
	cost                               pawl.Amount
	settled                            bool
}

// report is the truth now.
func (t *task) report() report { return t.reportAs(t.state(), t.age() >= t.settle) }

// reportAs is what is said of a task in a state; settled says that its charge
// is final.
func (t *task) reportAs(s pawl.State, settled bool) report {
	r := report{task: t.id, state: s, word: t.provider.voice.word(s), percent: -1, currency: t.currency, cost: t.price, version: 1}
	r.settled = settled && s.Terminal()
	switch {
	case s.Terminal():
		r.version = 3
	case s == pawl.Running:
		r.version = 2
	}
	if r.settled {
		r.cost = t.cost
		if t.raise > 0 && t.age() >= t.raise {
			r.cost = t.raised
		}
	}
	if s == pawl.Succeeded && !t.noResult {
		r.result = "https://files.example/" + t.id
	}
	if s == pawl.Failed || s == pawl.Expired {
		r.code = t.errorCode
	}
	return r
}

// read answers a status read.
func (p *provider) read(id string) reply {
	w := p.world
	t := p.tasks[id]
	if t == nil {
		w.violate("a read asks for a task that the provider made", "%q at %s", id, p.name)
		return p.refusal(404, "unknown_task")
	}
	t.known = true
	if w.hit(ReadNotFound, 6) {
		t.forgotten = w.now.Add(w.between(time.Second, 10*time.Minute))
	}
	r := t.report()
	answer := reply{status: 200}
	switch {
	case w.now < t.forgotten && !w.calm:
		return p.refusal(404, "unknown_task")
	case w.hit(sim.ReadFailed, 60):
		answer = p.refusal(500, "internal")
		if w.percent(30) {
			answer.header = map[string]string{"Retry-After": fmt.Sprint(1 + w.IntN(30))}
		}
		return answer
	case w.hit(ReadLost, 30):
		answer.lost = true
	case w.hit(sim.ReadFlapping, 60):
		// A replica that lags behind.
		earlier := pawl.Pending
		if r.state.Terminal() {
			earlier = pawl.Running
		}
		r = t.reportAs(earlier, false)
	case w.hit(sim.ReadWrongTask, 30):
		r.task += "-other"
	case w.hit(ReadUnknownState, 15):
		r.word = "melted"
	}
	answer.body = encode(p.voice.status(r))
	return answer
}

// find answers a lookup by our reference.
func (p *provider) find(ref string) reply {
	t := p.byRef[ref]
	switch {
	case t == nil, p.world.hit(ReadNotFound, 60):
		return p.refusal(404, "unknown_task")
	case p.world.hit(sim.ReadFailed, 60):
		return p.refusal(500, "internal")
	}
	return reply{status: 200, body: encode(p.voice.status(t.report()))}
}

// cancelTask stops a task unless it has ended.
func (p *provider) cancelTask(id string) reply {
	t := p.tasks[id]
	switch {
	case t == nil:
		return p.refusal(404, "unknown_task")
	case t.state().Terminal() && !t.canceled:
		return p.refusal(409, "not_cancelable")
	}
	if !t.canceled {
		t.canceled, t.final, t.end, t.settle = true, pawl.Canceled, t.age(), t.age()
		t.cost, t.raised, t.raise = t.price/4, t.price/4, 0
		t.tell("end", tellsEnd, "", p.world.lag())
	}
	r := reply{status: 202, body: encode(p.voice.status(t.report()))}
	if p.world.hit(ReadLost, 60) {
		r.lost = true
	}
	return r
}
