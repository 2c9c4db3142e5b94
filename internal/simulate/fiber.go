package simulate

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// fiber runs a piece of the program that gives way where it waits. Fibers are
// coroutines: one runs at a time, and only while the agenda lets it, so that
// they make one goroutine's worth of order.
type fiber struct {
	world *world
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	over  bool
	// tries is how often a command that failed is tried in all, as the loops do
	// with what an action came to; 0 is once.
	tries int
}

// endless is for what a node tries until it succeeds.
const endless = 1 << 30

// killed unwinds a fiber whose node has died.
type killed struct{}

func (w *world) fiber(name string, body func()) *fiber {
	f := &fiber{world: w}
	f.next, f.stop = iter.Pull(func(yield func(struct{}) bool) {
		f.yield = yield
		defer func() {
			f.over = true
			switch p := recover().(type) {
			case nil, killed:
			default:
				w.violate("no step of the program panics", "%s: %v\n%s", name, p, debug.Stack())
			}
		}()
		body()
	})
	return f
}

// resume lets the fiber go on until it waits again or ends.
func (f *fiber) resume() {
	if f.over {
		return
	}
	before := f.world.running
	f.world.running = f
	f.next()
	f.world.running = before
}

// kill ends the fiber where it waits.
func (f *fiber) kill() {
	before := f.world.running
	f.world.running = f
	f.stop()
	f.world.running, f.over = before, true
}

// wait gives way until somebody resumes the fiber that runs now.
func (w *world) wait() {
	if w.running == nil {
		panic(fmt.Sprintf("simulate: %T waits outside of a fiber", w))
	}
	if !w.running.yield(struct{}{}) {
		panic(killed{})
	}
}
