package torture

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is one kind of what befalls a node or its database, as a word.
type Fault string

// The faults.
const (
	// Kill: the node is killed (SIGKILL) and started again.
	Kill Fault = "kill"
	// KillStarting: it is killed, and once more while it starts.
	KillStarting Fault = "kill_starting"
	// KillDraining: it is told to stop, and killed while it drains.
	KillDraining Fault = "kill_draining"
	// Stop: it is told to stop (SIGTERM), must end by itself, and is started again.
	Stop Fault = "stop"
	// Freeze: it stands still (SIGSTOP) until all its leases have run out.
	Freeze Fault = "freeze"
	// Doze: it stands still for less than that.
	Doze Fault = "doze"
	// Cut: its connections to the database are closed, some in the middle of a
	// commit.
	Cut Fault = "cut"
	// Slow: whatever it sends to the database is late.
	Slow Fault = "slow"
	// Away: it cannot reach the database.
	Away Fault = "away"
	// Terminate: the database ends most sessions of all nodes.
	Terminate Fault = "terminate"
	// Restart: the database server is killed and started again.
	Restart Fault = "restart"
	// Full: no file of the node can grow, as on a full disk.
	Full Fault = "full"
)

// leases is how long a lease of these nodes lasts at most: the timeout of an
// action, 2 s here, and 15 s (3-architecture, "The store").
const leases = 17 * time.Second

// spans bounds how long a fault lasts. What has none is over at once.
var spans = map[Fault][2]time.Duration{
	KillStarting: {5 * time.Millisecond, 400 * time.Millisecond},
	KillDraining: {time.Millisecond, 300 * time.Millisecond},
	Freeze:       {leases + time.Second, leases + 4*time.Second},
	Doze:         {500 * time.Millisecond, 8 * time.Second},
	Slow:         {2 * time.Second, 6 * time.Second},
	Away:         {500 * time.Millisecond, 6 * time.Second},
	Full:         {500 * time.Millisecond, 3 * time.Second},
}

// Step is one fault of a plan.
type Step struct {
	Fault Fault
	// Node is whom it meets, from 0; the next one that nothing else befalls at that
	// time, if something does.
	Node int
	// After is how long after the one before it comes, For how long it lasts. The
	// next one may come meanwhile.
	After, For time.Duration
}

// Plan draws n faults of some kinds for some nodes. It is a pure function of
// its arguments. Every kind comes about as often as every other, and plain
// kills twice as often.
func Plan(seed uint64, n, nodes int, kinds []Fault) []Step {
	dice := rand.New(rand.NewPCG(seed, 0x746f7274))
	between := func(low, high time.Duration) time.Duration {
		if high <= low {
			return low
		}
		return low + time.Duration(dice.Int64N(int64(high-low))).Truncate(time.Millisecond)
	}
	var steps []Step
	var deck []Fault
	for len(steps) < n {
		if len(deck) == 0 {
			deck = append(slices.Clone(kinds), Kill)
			dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		f := deck[0]
		deck = deck[1:]
		steps = append(steps, Step{
			Fault: f, Node: dice.IntN(max(nodes, 1)),
			After: between(100*time.Millisecond, 1200*time.Millisecond), For: between(spans[f][0], spans[f][1]),
		})
	}
	return steps
}

// Count is how often a fault is in a plan.
type Count struct {
	Fault Fault `json:"fault"`
	Times int   `json:"times"`
}

// counts says how often each fault is in a plan, the most frequent first.
func counts(steps []Step) []Count {
	var out []Count
	for _, s := range steps {
		i := slices.IndexFunc(out, func(c Count) bool { return c.Fault == s.Fault })
		if i < 0 {
			i, out = len(out), append(out, Count{Fault: s.Fault})
		}
		out[i].Times++
	}
	slices.SortFunc(out, func(a, b Count) int { return cmp.Or(b.Times-a.Times, cmp.Compare(a.Fault, b.Fault)) })
	return out
}
