package postgres

import (
	"context"
	"sync"
	"time"
)

// upkeepEvery is how often a node tidies up after batches and looks for the
// partitions to come.
const upkeepEvery = 10 * time.Minute

// upkeep is what a driver does for itself, off the path of commits.
type upkeep struct {
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

func (u *upkeep) stop() {
	if u.cancel != nil {
		u.cancel()
		u.loops.Wait()
	}
}

func (d *Driver) startUpkeep() {
	ctx, cancel := context.WithCancel(context.Background())
	d.upkeep.cancel = cancel
	d.upkeep.loops.Go(func() {
		ticker := time.NewTicker(upkeepEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				d.tidy(ctx)
			}
		}
	})
}

// tidy tells of what it cannot do and tries again the next time.
func (d *Driver) tidy(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"forget old batches", d.forgetBatches}, {"forget old nodes", d.forgetNodes}, {"make partitions", d.makePartitions}, {"drop empty partitions", d.dropPartitions}} {
		if err := step.do(limited); err != nil && ctx.Err() == nil {
			d.log.Warn("upkeep of the database failed and is tried again later", "step", step.name, "error", explain(limited, step.name, err))
		}
	}
}
