package simulate

import (
	"time"
)

// mishap is one kind of thing that goes wrong by itself now and then.
type mishap struct {
	fault Fault
	do    func(w *world)
}

func mishaps() []mishap {
	return []mishap{
		{NodeCrash, func(w *world) { pick(w.dice, w.nodes...).crash() }},
		{NodeFreeze, (*world).freeze},
		{NodeDrain, func(w *world) { pick(w.dice, w.nodes...).drain() }},
		{NodeSkew, (*world).skewNode},
		{ClockForward, func(w *world) { w.jump(w.between(time.Second, pick(w.dice, time.Minute, 2*time.Hour, 50*time.Hour))) }},
		{ClockBack, func(w *world) { w.jump(-w.between(time.Millisecond, time.Minute)) }},
		{StoreDown, func(w *world) { w.down = w.now.Add(w.between(time.Second, 5*time.Minute)) }},
		{ProviderDown, func(w *world) {
			p := pick(w.dice, w.providers...)
			p.down = w.now.Add(w.between(time.Second, 30*time.Minute))
		}},
		{ProviderUnauthorized, func(w *world) {
			p := pick(w.dice, w.providers...)
			p.locked = w.now.Add(w.between(time.Second, 10*time.Minute))
		}},
		{ReceiverDown, (*world).receiverDown},
	}
}

// misfortune plans mishaps over a while.
func (w *world) misfortune(length time.Duration) {
	all := mishaps()
	for range 4 + w.IntN(16) {
		m := pick(w.dice, all...)
		w.after(w.between(0, length), func() {
			if w.hit(m.fault, 600) {
				w.trace("mishap: %s", m.fault)
				m.do(w)
			}
		})
	}
}

// freeze makes a node stand still; then it goes on where it was.
func (w *world) freeze() {
	n := pick(w.dice, w.nodes...)
	n.frozen = w.now.Add(w.between(time.Second, pick(w.dice, 20*time.Second, 2*time.Minute, 30*time.Minute)))
}

// skewNode sets a node's clock a little off, or right.
func (w *world) skewNode() {
	if len(w.nodes) == 1 {
		return
	}
	n := pick(w.dice, w.nodes...)
	n.skew = pick(w.dice, 0, w.between(-2*time.Second, 2*time.Second), w.between(-8*time.Minute, 8*time.Minute))
	n.begin()
}

// jump moves the database's clock and, as where both get their time from one
// server, now and then those of the nodes; later it is set right.
func (w *world) jump(by time.Duration) {
	all := len(w.nodes) == 1 || w.percent(50)
	move := func(by time.Duration) {
		w.skew += by
		for _, n := range w.nodes {
			if all {
				n.skew += by
			}
			n.begin()
		}
	}
	move(by)
	if w.percent(70) {
		w.after(w.between(time.Second, time.Hour), func() {
			if !w.calm {
				move(-by)
			}
		})
	}
}

// receiverDown makes one receiver unreachable.
func (w *world) receiverDown() {
	for _, t := range w.tenants {
		if len(t.endpoints) > 0 && w.percent(60) {
			pick(w.dice, t.endpoints...).receiver.goDown()
			return
		}
	}
}

// heal ends everything that is wrong by itself.
func (w *world) heal() {
	w.calm = true
	w.skew, w.down = max(w.skew, 0), 0
	for _, p := range w.providers {
		p.down, p.locked = 0, 0
	}
	for _, r := range w.receivers {
		r.down = 0
	}
	for _, n := range w.nodes {
		n.skew, n.frozen = w.skew, 0
		if !n.up {
			n.restart()
		}
		n.begin()
	}
	w.trace("everything is well from here on")
}
