package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Job is a leased capture. It holds a slot, of all and of its host, until
// [Capturer.Do] returns.
type Job struct{ artifact ledger.Artifact }

// Artifact is the id of what is to be captured.
func (j Job) Artifact() pawl.ID { return j.artifact.ID }

// Claim takes free slots and leases as many due artifacts, in the order in which
// their links end; those of a host that has no slot left wait without holding
// up the others. Each job must be given to [Capturer.Do].
func (c *Capturer) Claim(ctx context.Context, now time.Time) ([]Job, error) {
	if c.o.Full != nil && c.o.Full() {
		return nil, nil
	}
	var jobs []Job
	for {
		free, full := c.free()
		if free == 0 {
			return jobs, nil
		}
		due, err := c.o.Reader.DueArtifacts(ctx, pawl.TimeOf(now), full, free)
		if err != nil || len(due) == 0 {
			return jobs, err
		}
		taken := c.take(due)
		some, err := c.lease(ctx, taken)
		jobs = append(jobs, some...)
		// Others were quicker, or all is taken that was found: a host that is full
		// now is left out when there is more to find.
		if err != nil || len(taken) == len(due) || len(some) < len(taken) {
			return jobs, err
		}
	}
}

// free is how many slots are left, and which hosts have none.
func (c *Capturer) free() (n int, full []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, busy := range c.hosts {
		if busy >= c.o.PerHost {
			full = append(full, host)
		}
	}
	return max(c.o.Concurrency-c.busy, 0), full
}

// take takes a slot for each artifact whose host has one left.
func (c *Capturer) take(due []ledger.Artifact) (taken []ledger.Artifact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range due {
		if c.hosts[a.Host] >= c.o.PerHost || c.busy >= c.o.Concurrency {
			continue
		}
		c.busy++
		c.hosts[a.Host]++
		taken = append(taken, a)
	}
	return taken
}

// give gives a slot back and lets the loop use it.
func (c *Capturer) give(host string) {
	c.mu.Lock()
	c.busy--
	if c.hosts[host]--; c.hosts[host] <= 0 {
		delete(c.hosts, host)
	}
	c.mu.Unlock()
	c.Wake()
}

// lease issues the commands at once, so that they share a commit. A lease that
// was taken must be known, so it is not given up half-way.
func (c *Capturer) lease(ctx context.Context, taken []ledger.Artifact) (jobs []Job, err error) {
	commands := make([]ledger.Command, len(taken))
	for i, a := range taken {
		commands[i] = ledger.LeaseArtifact{Header: store.NewHeader(""), Artifact: a.ID, For: leaseFor}
	}
	var errs []error
	for i, r := range c.o.Store.DoAll(context.WithoutCancel(ctx), commands...) {
		leased, ok := r.Outcome.Value.(ledger.Artifact)
		if r.Err == nil && r.Outcome.Err == nil && ok {
			jobs = append(jobs, Job{leased})
			continue
		}
		c.give(taken[i].Host)
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("capture: lease: %w", r.Err))
		}
	}
	return jobs, errors.Join(errs...)
}
