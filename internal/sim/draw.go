package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawlhq/pawl"
)

// calmShare is the percentage of scripts in which nothing goes wrong: without
// them nobody would notice that the plain path has broken.
const calmShare = 25

// errorWords are the nine codes of 1-product D5 and two that no client knows.
var errorWords = []pawl.FailureCode{
	pawl.FailInvalidRequest, pawl.FailUnsupported, pawl.FailContentRejected, pawl.FailRateLimited,
	pawl.FailUnavailable, pawl.FailGeneration, pawl.FailTimeout, pawl.FailInvalidAsset, pawl.FailUpstream,
	"gpu_on_fire", "E1042",
}

// createShares are percentages of the scripts that are not calm.
var createShares = []struct {
	fault Fault
	share int
}{
	{CreateLost, 12},
	{CreateSlow, 6},
	{CreateRefused, 5},
	{CreateLimited, 8},
	{CreateFailedBefore, 6},
	{CreateFailedAfter, 8},
}

// dice draws for one script. Every question consumes the same randomness
// whatever the answer, so a fault left out disturbs the others little.
type dice struct {
	*rand.Rand
	without []Fault
}

func (d dice) percent(p int) bool { return d.IntN(100) < p }

func (d dice) hit(f Fault, p int) bool { return d.percent(p) && !slices.Contains(d.without, f) }

func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)))/time.Millisecond*time.Millisecond
}

// draw makes the script of operation n.
func draw(seed uint64, n int, o Options) Script {
	d := dice{rand.New(rand.NewPCG(seed, uint64(n))), o.Without}
	s := Script{N: n, Dialect: o.Dialects[d.IntN(len(o.Dialects))], Price: o.Price}
	s.Lookup = s.Dialect == Native && !o.NoLookup
	s.drawOutcome(d)
	s.drawTimes(d)
	if d.percent(calmShare) {
		s.Callbacks = s.course(d)
		return s
	}
	s.drawCreate(d)
	if s.Create == CreateRefused {
		s.refuse()
		return s
	}
	s.drawReads(d)
	s.drawCallbacks(d)
	return s
}

func (s *Script) drawOutcome(d dice) {
	roll := d.IntN(100)
	for _, o := range s.Dialect.outcomes() {
		if roll -= o.share; roll < 0 {
			s.Final = o.state
			break
		}
	}
	part := pawl.Amount(d.Int64N(int64(s.Price)) + 1)
	whole, word := d.percent(20), errorWords[d.IntN(len(errorWords))]
	switch {
	case s.Final == pawl.Failed:
		s.ErrorCode = string(word)
	case s.Final == pawl.Expired:
		s.ErrorCode = string(pawl.FailTimeout)
	case !s.Dialect.Priced():
		// No figure is ever reported: a success costs what was agreed, a
		// canceled task nothing (1-product F2).
		if s.Final == pawl.Succeeded {
			s.Cost = s.Price
		}
	case s.Final == pawl.Canceled && whole:
	case whole:
		s.Cost = s.Price
	default:
		s.Cost = part
	}
}

func (s *Script) drawTimes(d dice) {
	s.Start = d.between(100*time.Millisecond, 1500*time.Millisecond)
	s.End = s.Start + d.between(200*time.Millisecond, 4*time.Second)
	s.Settle = s.End
	later, byCallback, gap := d.percent(30), d.percent(50), d.between(500*time.Millisecond, 3*time.Second)
	if s.Final != pawl.Succeeded || !s.Dialect.Priced() || !later {
		return
	}
	kind := SettleByRead
	if byCallback {
		kind = SettleLater
	}
	if !slices.Contains(d.without, kind) {
		s.Settles, s.Settle = kind, s.End+gap
	}
}

func (s *Script) drawCreate(d dice) {
	roll, times := d.IntN(100), 1+d.IntN(2)
	for _, c := range createShares {
		if roll -= c.share; roll < 0 {
			if !slices.Contains(d.without, c.fault) {
				s.Create, s.CreateTimes = c.fault, times
			}
			return
		}
	}
}

// refuse turns the script into one that never makes a task.
func (s *Script) refuse() {
	s.Final, s.ErrorCode, s.Cost = pawl.Failed, string(pawl.FailInvalidRequest), 0
	s.Settles, s.Settle = "", s.End
}

func (s *Script) drawReads(d dice) {
	kinds := []Fault{ReadFailed, ReadFlapping, ReadWrongTask}
	kind, times := kinds[d.IntN(len(kinds))], 1+d.IntN(3)
	if !d.hit(kind, 35) {
		return
	}
	s.Reads, s.ReadTimes = kind, times
	switch kind {
	case ReadWrongTask:
		s.ReadTimes = 1
	case ReadFlapping:
		s.ReadTimes = 2 * times // every other one is true
	}
}

// course is the events of the task's life, nothing wrong with them.
func (s *Script) course(d dice) []Callback {
	var out []Callback
	running, progress := d.percent(80), d.percent(50)
	if running {
		out = append(out, Callback{Event: "running", Kind: TellsRunning, At: s.Start})
	}
	if progress {
		out = append(out, Callback{Event: "progress", Kind: TellsProgress, At: (s.Start + s.End) / 2})
	}
	out = append(out, Callback{Event: "end", Kind: TellsEnd, At: s.End})
	if s.Settles == SettleLater {
		out = append(out, Callback{Event: "settled", Kind: TellsSettled, At: s.Settle})
	}
	return out
}

func (s *Script) drawCallbacks(d dice) {
	if s.Create == CreateFailedBefore && !s.Dialect.Idempotent() {
		return // nobody repeats the create, so no task is ever made
	}
	s.drawEarly(d)
	course := s.course(d)
	unclear := s.Create.unclear() && !s.Dialect.Idempotent()
	silent := d.hit(CallbackDropped, 30) && unclear || d.hit(CallbackDropped, 8)
	endSent := false
	for i, c := range course {
		switch {
		case silent:
			c.Fault = CallbackDropped
		case i == 0 && c.At == 0: // drawEarly made it so
			c.Fault = CallbackEarly
		default:
			s.spoil(d, &c)
		}
		// Where only a callback can tell, either all are dropped or the end is
		// sent: whether an outcome can be learned never hangs on an ambiguity.
		if unclear && !silent && c.Kind == TellsEnd && c.Fault == CallbackDropped {
			c.Fault = ""
		}
		endSent = endSent || c.Kind == TellsEnd && c.Fault.genuine()
		s.Callbacks = append(s.Callbacks, c)
		if d.hit(CallbackDuplicate, 20) && c.Fault.genuine() {
			s.repeat(d, c)
		}
	}
	s.forge(d, !silent, endSent)
	slices.SortStableFunc(s.Callbacks, func(a, b Callback) int { return cmp.Compare(a.At, b.At) })
}

// drawEarly makes some tasks run, or even end, at once: only of these can an
// honest provider tell anything before the create is answered.
func (s *Script) drawEarly(d dice) {
	early, ended := d.hit(CallbackEarly, 12), d.percent(30)
	if !early {
		return
	}
	gap := s.Settle - s.End
	s.End -= s.Start
	s.Start = 0
	if ended {
		s.End = 0
	}
	s.Settle = s.End + gap
}

func (s *Script) spoil(d dice, c *Callback) {
	delay, after := d.between(time.Second, 5*time.Second), d.between(100*time.Millisecond, 900*time.Millisecond)
	roll := d.IntN(100)
	switch {
	case roll < 14:
		c.Fault = CallbackDropped
	case roll < 24:
		c.Fault = CallbackDelayed
	case roll < 34 && (c.Kind == TellsRunning || c.Kind == TellsProgress):
		c.Fault = CallbackReordered
	case roll >= 92:
		c.Fault = CallbackCorrupted
	}
	if slices.Contains(d.without, c.Fault) {
		c.Fault = ""
	}
	switch c.Fault {
	case CallbackDelayed:
		c.At += delay
	case CallbackReordered:
		c.At = s.End + after
	}
}

// repeat adds one or two more copies of an event.
func (s *Script) repeat(d dice, c Callback) {
	c.Fault = CallbackDuplicate
	for range 1 + d.IntN(2) {
		c.At += d.between(0, 800*time.Millisecond)
		s.Callbacks = append(s.Callbacks, c)
	}
}

// forge adds events that must change nothing. Those that are well signed need
// a client that is told its task at all, those after the end a told end.
func (s *Script) forge(d dice, told, endTold bool) {
	forgeries := []struct {
		fault Fault
		share int
		kind  CallbackKind
		event string
		ok    bool
	}{
		{CallbackBadSignature, 12, TellsEnd, "end", true},
		{CallbackStale, 10, TellsEnd, "end", true},
		{CallbackWrongTask, 8, TellsEnd, "wrong-task", told},
		{CallbackUnknownTask, 8, TellsEnd, "unknown-task", told},
		{CallbackUnknownState, 8, TellsEnd, "unknown-state", told},
		{CallbackLate, 10, TellsRunning, "late", endTold},
		{CallbackConflict, 8, TellsEnd, "conflict", endTold},
	}
	for _, f := range forgeries {
		hit, at := d.hit(f.fault, f.share), d.between(0, s.End+time.Second)
		if !hit || !f.ok {
			continue
		}
		s.Callbacks = append(s.Callbacks, Callback{Event: f.event, Kind: f.kind, Fault: f.fault, At: at})
	}
}
