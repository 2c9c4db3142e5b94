package sim

import (
	"sync"
	"time"

	"github.com/pawlhq/pawl"
)

// task is one job of the server. What it is at a moment follows from its
// script and the time since it was made; only a cancel changes it.
type task struct {
	id          string
	model       string
	clientRef   string
	callbackURL string
	base        string // of the server, as its client calls it
	currency    string
	script      Script
	speed       float64
	made        time.Time
	eventPrefix string

	mu         sync.Mutex
	canceledAt time.Duration // script time, meaningful if canceled
	canceled   bool
	reads      int
	cancels    int
	fetches    int               // of the result file
	known      bool              // the client has shown that it knows the task
	endKnown   bool              // a callback that tells the end was acknowledged
	bodies     map[string][]byte // of sent events: a repeat has the same bytes
}

// report is what the provider says of a task, in a read answer or a callback.
type report struct {
	task     string
	model    string
	state    pawl.State
	word     string // the dialect's name of state, or of none
	version  int
	percent  int // progress, -1 for none
	cost     pawl.Amount
	settled  bool
	currency string
	code     string
	result   string // link, "" for none
	numeric  bool   // write the cost as a JSON number
	made     time.Time
	ended    time.Time // zero while unfinished
}

func (t *task) elapsed(now time.Time) time.Duration {
	return time.Duration(float64(now.Sub(t.made)) * t.speed)
}

// real is the moment at which so much script time has passed.
func (t *task) real(at time.Duration) time.Time {
	return t.made.Add(time.Duration(float64(at) / t.speed))
}

// stateAt must be called with the lock held.
func (t *task) stateAt(at time.Duration) pawl.State {
	switch {
	case t.canceled && at >= t.canceledAt:
		return pawl.Canceled
	case at >= t.script.End:
		return t.script.Final
	case at >= t.script.Start:
		return pawl.Running
	}
	return pawl.Pending
}

// end is the state that the task ends with and when.
func (t *task) end() (pawl.State, time.Duration) {
	if t.canceled {
		return pawl.Canceled, t.canceledAt
	}
	return t.script.Final, t.script.End
}

// final is the charge once it is settled. A canceled task that had begun costs
// a quarter: money follows what the provider says (1-product F2).
func (t *task) final() pawl.Amount {
	switch {
	case !t.canceled:
		return t.script.Cost
	case t.canceledAt >= t.script.Start && t.script.Dialect.Priced():
		return t.script.Price / 4
	}
	return 0
}

// describe is the report for a state; the lock must be held.
func (t *task) describe(s pawl.State, settled bool) report {
	r := report{
		task: t.id, model: t.model, state: s, word: t.script.Dialect.word(s), percent: -1, currency: t.currency,
		cost: t.script.Price, settled: settled, numeric: t.script.N%2 != 0, made: t.made,
	}
	if t.script.Currency != "" {
		r.currency = t.script.Currency
	}
	switch {
	case s == pawl.Pending:
		r.version = 1
	case s == pawl.Running:
		r.version = 2
	default:
		r.version = 3
		_, at := t.end()
		r.ended = t.real(at)
	}
	if settled {
		r.cost = t.final()
	}
	switch s {
	case pawl.Succeeded:
		if t.script.Result != ResultMissing {
			r.result = t.link(t.made.Add(linkLife))
			if t.script.Result == LinkEnded {
				r.result = t.link(t.made)
			}
		}
	case pawl.Failed, pawl.Expired:
		r.code = t.script.ErrorCode
		if r.code == "" {
			r.code = string(pawl.FailGeneration)
		}
	}
	return r
}

// current is the truth now.
func (t *task) current(now time.Time) report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at(t.elapsed(now))
}

// at is the truth at a moment of script time; the lock must be held.
func (t *task) at(at time.Duration) report {
	s := t.stateAt(at)
	r := t.describe(s, s.Terminal() && (t.canceled || at >= t.script.Settle))
	if s == pawl.Running {
		r.percent = int(100 * (at - t.script.Start) / (t.script.End - t.script.Start))
	}
	return r
}

// read is the answer to the next read and the fault that it carries.
func (t *task) read(now time.Time) (report, Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = true
	n := t.reads
	t.reads++
	r := t.at(t.elapsed(now))
	if r.result != "" {
		r.result = t.link(now.Add(linkLife))
	}
	if n >= t.script.ReadTimes {
		return r, ""
	}
	switch t.script.Reads {
	case ReadFlapping:
		if n%2 == 0 {
			return t.describe(earlier(r.state), false), ReadFlapping
		}
	case ReadWrongTask:
		r.task += "-other"
		return r, ReadWrongTask
	case ReadUnknownState:
		r.word = meltedWord
		return r, ReadUnknownState
	case ReadFailed, ReadNotFound:
		return r, t.script.Reads
	}
	return r, ""
}

// meltedWord is a state word that no description has.
const meltedWord = "melted"

// earlier is the state that a replica lagging behind would show.
func earlier(s pawl.State) pawl.State {
	if s.Terminal() {
		return pawl.Running
	}
	return pawl.Pending
}

// cancel ends the task unless it has ended or the script has other plans, and
// reports whether the answer is a yes.
func (t *task) cancel(now time.Time) (r report, yes bool, fault Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = true
	at := t.elapsed(now)
	t.cancels++
	if t.cancels <= t.script.CancelTimes || t.script.Cancel == CancelRefused {
		fault = t.script.Cancel
	}
	switch {
	case fault == CancelRefused, fault == CancelFailed:
		return t.at(at), false, fault
	case t.stateAt(at).Terminal():
		return t.at(at), t.canceled, fault
	case fault == CancelIgnored:
		return t.at(at), true, fault
	}
	t.canceled, t.canceledAt = true, at
	return t.at(at), true, fault
}

// tell is the report that a callback of this kind carries; the lock must be held.
func (t *task) tell(c Callback) report {
	end, _ := t.end()
	switch c.Fault {
	case CallbackConflict, CallbackBadSignature, CallbackDiffers:
		r := t.describe(otherEnd(end), c.Fault != CallbackConflict)
		r.version = 4
		return r
	case CallbackUnknownState:
		r := t.describe(pawl.Running, false)
		r.word, r.version = meltedWord, 9
		return r
	}
	switch c.Kind {
	case TellsRunning:
		return t.describe(pawl.Running, false)
	case TellsProgress:
		r := t.describe(pawl.Running, false)
		r.percent = 50
		return r
	case TellsSettled:
		return t.describe(end, true)
	default:
		return t.describe(end, t.canceled || t.script.Settles == "")
	}
}

func otherEnd(s pawl.State) pawl.State {
	if s == pawl.Succeeded {
		return pawl.Failed
	}
	return pawl.Succeeded
}
