package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

// Job is a leased capture. It holds a slot, of all and of its host, until
// [Capturer.Do] returns.
type Job struct {
	artifact ledger.Artifact
	slot     *run
}

// Artifact is the id of what is to be captured.
func (j Job) Artifact() pawl.ID { return j.artifact.ID }

// UnderWay is how many captures this node has leased.
func (c *Capturer) UnderWay() int {
	c.slots.mu.Lock()
	defer c.slots.mu.Unlock()
	return len(c.slots.runs)
}

// Claim takes free slots and leases as many due artifacts: tenants take turns,
// and each tenant's come in the order in which their links end; those of a host
// that has no slot left wait without holding up the others. What found no slot
// until its link ended is ended. Each job must be given to [Capturer.Do].
func (c *Capturer) Claim(ctx context.Context, now time.Time) (jobs []Job, err error) {
	if c.o.Full == nil || !c.o.Full() {
		picked, failed := c.pick(ctx, now)
		jobs, err = c.lease(ctx, picked)
		err = errors.Join(failed, err, c.relieve(ctx, now))
	}
	return jobs, errors.Join(err, c.end(ctx, now))
}

// pick finds due artifacts and takes a slot for each. At first no tenant gets more
// than half of the slots; what is left then is anybody's.
func (c *Capturer) pick(ctx context.Context, now time.Time) (picked []Job, err error) {
	fair, passed := true, []string(nil)
	for {
		free, full, halves := c.slots.free()
		if free == 0 {
			return picked, nil
		}
		f := store.DueFilter{By: pawl.TimeOf(now), WithoutHosts: full, WithoutTenants: passed}
		if fair {
			f.WithoutTenants = slices.Concat(passed, halves)
		}
		due, err := c.due(ctx, f, free, picked)
		switch {
		case err != nil:
			return picked, err
		case len(due) > 0:
			took := c.turn(due, fair)
			picked = append(picked, took...)
			for _, a := range due {
				if fair && !slices.ContainsFunc(took, func(j Job) bool { return j.artifact.Tenant == a.Tenant }) && !slices.Contains(passed, a.Tenant) {
					passed = append(passed, a.Tenant)
				}
			}
		case !fair:
			return picked, nil
		default:
			fair, passed = false, nil
		}
	}
}

// due finds artifacts that are not picked yet, of tenants that had no turn in
// this round; where there are none, of any in a new round.
func (c *Capturer) due(ctx context.Context, f store.DueFilter, free int, picked []Job) ([]ledger.Artifact, error) {
	served, without := c.slots.round(), f.WithoutTenants
	for {
		f.WithoutTenants = slices.Concat(without, served)
		due, err := c.o.Reader.DueArtifacts(ctx, f, free+len(picked))
		if err != nil {
			return nil, err
		}
		due = slices.DeleteFunc(due, func(a ledger.Artifact) bool {
			return slices.ContainsFunc(picked, func(j Job) bool { return j.artifact.ID == a.ID })
		})
		switch {
		case len(due) > 0 && len(served) == 0:
			c.slots.newRound()
			return due, nil
		case len(due) > 0 || len(served) == 0:
			return due, nil
		}
		served = nil
	}
}

// turn takes a slot for one artifact of each tenant.
func (c *Capturer) turn(due []ledger.Artifact, fair bool) (took []Job) {
	for _, a := range due {
		if slices.ContainsFunc(took, func(j Job) bool { return j.artifact.Tenant == a.Tenant }) {
			continue
		}
		if r := c.slots.take(a, fair); r != nil {
			took = append(took, Job{a, r})
		}
	}
	return took
}

// relieve has a tenant that holds more than half of the slots yield one to
// another that waits for it.
func (c *Capturer) relieve(ctx context.Context, now time.Time) error {
	for _, crowd := range c.slots.crowds() {
		_, full, halves := c.slots.free()
		f := store.DueFilter{By: pawl.TimeOf(now), Host: crowd.host, WithoutTenants: append(halves, crowd.tenant)}
		if crowd.host == "" {
			f.WithoutHosts = full
		}
		waiting, err := c.o.Reader.DueArtifacts(ctx, f, 1)
		if err != nil {
			return err
		}
		if len(waiting) > 0 {
			c.slots.yield(crowd, waiting[0])
		}
	}
	return nil
}

// endStep is how many artifacts are ended at once.
const endStep = 100

// end ends what waits in vain: no slot is needed for that.
func (c *Capturer) end(ctx context.Context, now time.Time) error {
	for {
		ended, err := c.o.Reader.DueArtifacts(ctx, store.DueFilter{By: pawl.TimeOf(now), EndsBy: pawl.TimeOf(now)}, endStep)
		if err != nil || len(ended) == 0 {
			return err
		}
		commands, upstreams := make([]ledger.Command, len(ended)), c.o.Upstreams.Now()
		for i, a := range ended {
			command := ledger.EndArtifact{Header: store.NewHeader(""), Operation: a.Operation, Artifact: a.ID}
			if up, ok := upstreams[a.Upstream]; ok {
				command.Up = up.Policy()
			}
			commands[i] = command
		}
		n := 0
		for i, r := range c.o.Store.DoAll(ctx, commands...) {
			if r.Err != nil {
				return fmt.Errorf("capture: end: %w", r.Err)
			}
			if r.Outcome.Reason == "failed" {
				c.o.Log.Warn("a result file could not be captured", "artifact", ended[i].ID.Text(pawl.PrefixArtifact), "operation", ended[i].Operation.Text(pawl.PrefixOperation), "why", "the link has ended")
			}
			if r.Outcome.Err == nil && r.Outcome.Reason != "not_due" {
				n++
				c.o.Metrics.Captures.WithLabelValues(ledger.ArtifactGone.String()).Inc()
			}
		}
		if n < endStep {
			return nil
		}
	}
}

// give gives a slot back and lets the loop use it.
func (c *Capturer) give(r *run) {
	c.slots.give(r)
	c.Wake()
}

// lease issues the commands at once, so that they share a commit. A lease that
// was taken must be known, so it is not given up half-way.
func (c *Capturer) lease(ctx context.Context, picked []Job) (jobs []Job, err error) {
	if len(picked) == 0 {
		return nil, nil
	}
	commands := make([]ledger.Command, len(picked))
	for i, j := range picked {
		commands[i] = ledger.LeaseArtifact{Header: store.NewHeader(""), Artifact: j.artifact.ID, For: leaseFor}
	}
	var errs []error
	for i, r := range c.o.Store.DoAll(context.WithoutCancel(ctx), commands...) {
		leased, ok := r.Outcome.Value.(ledger.Artifact)
		if r.Err == nil && r.Outcome.Err == nil && ok {
			jobs = append(jobs, Job{leased, picked[i].slot})
			continue
		}
		c.give(picked[i].slot)
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("capture: lease: %w", r.Err))
		}
	}
	return jobs, errors.Join(errs...)
}
