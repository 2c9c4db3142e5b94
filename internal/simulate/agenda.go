package simulate

import (
	"container/heap"

	"github.com/pawlhq/pawl"
)

// entry is something that will happen at a moment of true time.
type entry struct {
	at pawl.Time
	// order settles who is first among what happens at one moment: it is drawn.
	// serial makes that total.
	order  uint32
	serial int
	do     func()
}

// agenda is all that will happen, earliest first.
type agenda struct {
	entries []entry
	serial  int
}

func (a *agenda) add(at pawl.Time, order uint32, do func()) {
	a.serial++
	heap.Push(a, entry{at, order, a.serial, do})
}

func (a *agenda) next() (entry, bool) {
	if len(a.entries) == 0 {
		return entry{}, false
	}
	return heap.Pop(a).(entry), true
}

// Len is for package heap.
func (a *agenda) Len() int { return len(a.entries) }

// Less is for package heap.
func (a *agenda) Less(i, k int) bool {
	x, y := a.entries[i], a.entries[k]
	switch {
	case x.at != y.at:
		return x.at < y.at
	case x.order != y.order:
		return x.order < y.order
	default:
		return x.serial < y.serial
	}
}

// Swap is for package heap.
func (a *agenda) Swap(i, k int) { a.entries[i], a.entries[k] = a.entries[k], a.entries[i] }

// Push is for package heap.
func (a *agenda) Push(x any) { a.entries = append(a.entries, x.(entry)) }

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := a.entries[len(a.entries)-1]
	a.entries = a.entries[:len(a.entries)-1]
	return last
}
