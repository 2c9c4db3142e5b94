package simulate

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice draws. All chance of a run comes from dice made of its seed.
type dice struct{ *rand.Rand }

// newDice are dice for one purpose of a seed: what is drawn for one purpose
// does not disturb the others.
func newDice(seed uint64, purpose string) dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

func (d dice) percent(p int) bool { return d.IntN(100) < p }

// between is a duration from low up to high, in whole microseconds.
func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64((high-low)/time.Microsecond)+1))*time.Microsecond
}

// lag is how long a step of the program or the network takes: mostly little,
// now and then seconds.
func (d dice) lag() time.Duration {
	switch roll := d.IntN(1000); {
	case roll < 850:
		return d.between(20*time.Microsecond, 3*time.Millisecond)
	case roll < 980:
		return d.between(3*time.Millisecond, 300*time.Millisecond)
	default:
		return d.between(300*time.Millisecond, 4*time.Second)
	}
}

// seed is the seed of a command's ids.
func (d dice) seed() (s [16]byte) {
	for i := range s {
		s[i] = byte(d.Uint32())
	}
	return s
}

func pick[V any](d dice, from ...V) V { return from[d.IntN(len(from))] }
