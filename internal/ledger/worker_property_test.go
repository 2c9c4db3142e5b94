package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"pgregory.net/rapid"
)

// crew drives a few operations of own workers through any sequence of what
// workers, callers, nodes and clocks do, sensible and not; old leases stay known.
type crew struct {
	*world
	given []WorkLease
	// ended is the terminal state that each operation was first seen in.
	ended map[pawl.ID]pawl.State
	// counted is the one lease whose word ended an operation.
	counted map[pawl.ID]WorkLeaseID
}

// TestAnySequenceOfWorkKeepsTheInvariants: whatever happens, an operation has
// one worker at a time, one outcome counts, its money ends once, it never goes
// back, and in the end it has ended; each command run twice changes nothing the
// second time.
func TestAnySequenceOfWorkKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		c := &crew{world: w, ended: map[pawl.ID]pawl.State{}, counted: map[pawl.ID]WorkLeaseID{}}
		w.do(EnsureTenant{Name: tenant, Currency: "USD", Opening: 40})
		r.Repeat(map[string]func(*rapid.T){
			"": func(r *rapid.T) { c.invariants(r) },
			"submit": func(r *rapid.T) {
				key := fmt.Sprint("k", rapid.IntRange(0, 5).Draw(r, "key"))
				s := Submit{Tenant: tenant, APIKey: apiKey, Key: key, Fingerprint: digest(key), Window: time.Hour, Up: hands(), Deadline: c.now.Add(10 * time.Minute)}
				if price := rapid.Int64Range(0, 12).Draw(r, "price"); price > 0 {
					s.Metered, s.Price = true, pawl.Money{Amount: pawl.Amount(price), Currency: "USD"}
				}
				c.do(s)
			},
			"lease":  c.leaseAny,
			"say":    c.sayAny,
			"say it": c.sayAny,
			"sweep":  func(r *rapid.T) { c.sweepWork() },
			"claim": func(r *rapid.T) {
				// A node that claims and then dies, or decides late.
				c.do(LeaseWork{Queue: WorkQueueID(ReadQueue, "w", tenant), Limit: 1, Up: hands()})
			},
			"node": func(r *rapid.T) {
				id, ok := c.any(r)
				if !ok {
					r.Skip()
				}
				c.do(LoseLease{Operation: id, Fence: c.ops[id].Lease})
				c.do(ReleaseLease{Operation: id, Fence: c.ops[id].Lease})
				c.do(SpareWork{Operation: id, Up: hands()})
				c.do(Advance{Up: hands(), Operation: id, Fence: c.ops[id].Lease})
			},
			"cancel": func(r *rapid.T) {
				if id, ok := c.any(r); ok {
					c.do(Cancel{Tenant: tenant, Operation: id, Up: hands()})
				}
			},
			"tick": func(r *rapid.T) {
				c.tick(time.Duration(rapid.Int64Range(-1000, 90_000).Draw(r, "ms")) * time.Millisecond)
			},
		})
		c.rest(r)
	})
}

func (c *crew) any(r *rapid.T) (id pawl.ID, ok bool) {
	ids := sortedIDs(c.ops)
	if len(ids) == 0 {
		return id, false
	}
	return rapid.SampledFrom(ids).Draw(r, "operation"), true
}

func (c *crew) leaseAny(r *rapid.T) {
	cmd := LeaseForWorker{Tenant: rapid.SampledFrom([]string{"", tenant, "else"}).Draw(r, "tenant"), Limit: rapid.IntRange(1, 3).Draw(r, "limit")}
	for _, id := range sortedIDs(c.ops) {
		cmd.Offers = append(cmd.Offers, WorkOffer{id, hands()})
	}
	for _, l := range c.do(cmd).Value.([]WorkLease) {
		if cmd.Tenant == "else" {
			r.Fatalf("another tenant has got %s", l.ID)
		}
		for _, old := range c.given {
			if old.ID == l.ID {
				r.Fatalf("%s was given twice", l.ID)
			}
		}
		c.given = append(c.given, l)
	}
}

func (c *crew) sayAny(r *rapid.T) {
	if len(c.given) == 0 {
		r.Skip()
	}
	l := rapid.SampledFrom(c.given).Draw(r, "lease")
	before := c.ops[l.ID.Operation]
	var out Outcome
	switch rapid.IntRange(0, 3).Draw(r, "word") {
	case 0:
		out = c.beat(l)
	case 1:
		out = c.do(ReportProgress{Tenant: tenant, Lease: l.ID, Progress: rapid.Int32Range(-1, 3).Draw(r, "progress")})
	case 2:
		out = c.giveUp(l, rapid.Bool().Draw(r, "retryable"))
	default:
		out = c.do(CompleteWork{Tenant: tenant, Lease: l.ID, Up: hands(), Result: "1", Canceled: rapid.Bool().Draw(r, "canceled"),
			HasCost: rapid.Bool().Draw(r, "costs"), Cost: pawl.Amount(rapid.Int64Range(0, 14).Draw(r, "cost")), CostText: "1", Currency: "USD"})
	}
	after := c.ops[l.ID.Operation]
	if after == before {
		return
	}
	if out.Err != nil || before.State.Terminal() || l.ID.Attempt != before.Creates {
		r.Fatalf("%s changed %s of attempt %d by a word of attempt %d", out.Reason, before.State, before.Creates, l.ID.Attempt)
	}
	if after.State.Terminal() {
		if other, twice := c.counted[after.ID]; twice {
			r.Fatalf("%s ended it after %s", l.ID, other)
		}
		c.counted[after.ID] = l.ID
	}
}

func (c *crew) invariants(r *rapid.T) {
	for _, v := range c.check() {
		r.Fatalf("violation: %s", v)
	}
	for id, op := range c.ops {
		if was, ok := c.ended[id]; ok && op.State != was {
			r.Fatalf("it went from %s to %s", was, op.State)
		}
		if op.State.Terminal() {
			c.ended[id] = op.State
		}
		if op.State == pawl.Unconfirmed || op.State == pawl.Pending && op.Creates > 0 {
			r.Fatalf("%s after %d leases", op.State, op.Creates)
		}
		if op.Creates > hands().SubmitAttempts {
			r.Fatalf("attempt %d", op.Creates)
		}
	}
}

// rest lets time pass without any worker: everything must come to its end.
func (c *crew) rest(r *rapid.T) {
	for range 30 {
		c.tick(time.Minute)
		c.sweepWork()
	}
	c.invariants(r)
	for _, op := range c.ops {
		if !op.State.Terminal() {
			r.Fatalf("never ended: %+v", op)
		}
	}
}
