package sender

import "sync/atomic"

// InForce gives the generic sources that are in force at the moment: a [Set]
// where they never change, a [Live] where a reload may replace them (1-product
// I7). Whoever handles something takes one set for all of it.
type InForce interface {
	// Now is the set in force; nobody changes it.
	Now() Set
}

// Now is the set itself.
func (s Set) Now() Set { return s }

// Live is the set in force of a running node. It is safe for concurrent use.
type Live struct{ set atomic.Pointer[Set] }

// NewLive begins with a set.
func NewLive(s Set) *Live {
	l := new(Live)
	l.Swap(s)
	return l
}

// Now is the set in force.
func (l *Live) Now() Set { return *l.set.Load() }

// Swap puts another set in force. Work under way keeps the one it has.
func (l *Live) Swap(s Set) { l.set.Store(&s) }
