package config

import "sync/atomic"

// InForce gives what is made of a configuration and in force at the moment: a set
// that never changes, or a [Live] where a reload may replace it (1-product I7).
// Whoever handles something takes one set for all of it.
type InForce[S any] interface {
	// Now is the set in force; nobody changes it.
	Now() S
}

// Live is the set in force of a running node. One Live is shared by everything
// that works with the set, so that a swap is one step for all of it. It is safe
// for concurrent use.
type Live[S any] struct{ set atomic.Pointer[S] }

// NewLive begins with a set.
func NewLive[S any](s S) *Live[S] {
	l := new(Live[S])
	l.Swap(s)
	return l
}

// Now is the set in force.
func (l *Live[S]) Now() S { return *l.set.Load() }

// Swap puts another set in force. Work under way keeps the one it has.
func (l *Live[S]) Swap(s S) { l.set.Store(&s) }
