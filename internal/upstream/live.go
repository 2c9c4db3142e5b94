package upstream

import "github.com/pawlhq/pawl/internal/config"

// InForce gives the upstreams that are in force at the moment: a [Set] where they
// never change, a [Live] where a reload may replace them.
type InForce = config.InForce[Set]

// Live is the set in force of a running node.
type Live = config.Live[Set]

// NewLive begins with a set.
func NewLive(s Set) *Live { return config.NewLive(s) }

// Now is the set itself.
func (s Set) Now() Set { return s }
