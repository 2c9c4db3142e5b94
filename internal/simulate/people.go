package simulate

import (
	"slices"
	"time"
)

// step is one kind of thing that a person does. Each kind is one file,
// people_*.go.
type step struct {
	name string
	// share is how often it is done, against the others.
	share int
	do    func(w *world)
}

// steps are all kinds.
func steps() []step {
	return []step{
		{"resolve a review", 30, (*world).resolveReview},
		{"resolve an operation", 15, (*world).resolveOperation},
		{"read now", 8, (*world).readNow},
		{"cancel", 8, (*world).cancel},
		{"credit", 8, (*world).credit},
		{"change an endpoint", 10, (*world).changeEndpoint},
		{"add an endpoint", 4, (*world).addEndpoint},
		{"send again", 8, (*world).retryDelivery},
		{"submit something else", 4, (*world).contradict},
		{"ask again", 6, (*world).askAgain},
		{"try again", 6, (*world).tryAgain},
		{"correct", 5, (*world).correct},
		{"publish", 5, (*world).publish},
		{"pause an upstream", 5, (*world).pauseUpstream},
		{"reprocess an event", 6, (*world).reprocess},
		{"change a key", 5, (*world).changeKey},
	}
}

// person has somebody ask some node for something.
func (w *world) person(name string, ask func(n *node)) {
	var up []*node
	for _, n := range w.nodes {
		if n.up && n.frozen <= w.now {
			up = append(up, n)
		}
	}
	if len(up) == 0 {
		w.after(w.between(time.Second, 10*time.Second), func() { w.person(name, ask) })
		return
	}
	n := pick(w.dice, up...)
	n.spawn(name, func() { ask(n) })
}

// live plans what people do, over a while.
func (w *world) live(length time.Duration) {
	var all []step
	for _, s := range steps() {
		all = append(all, slices.Repeat([]step{s}, s.share)...)
	}
	at := time.Duration(0)
	for range 4*len(w.jobs) + 6 {
		s := pick(w.dice, all...)
		if w.percent(60) { // The others happen at about the same time as the one before.
			at = w.between(0, length)
		}
		w.after(at+w.lag(), func() { s.do(w) })
	}
}
