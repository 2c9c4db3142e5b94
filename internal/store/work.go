package store

import (
	"context"

	"github.com/pawlhq/pawl"
)

// Line is what waits for own workers of one upstream, tenant and model. Since is
// when its first operation may be leased.
type Line struct {
	Upstream, Tenant, Model string
	Since                   pawl.Time
}

// Work finds what waits for own workers.
type Work interface {
	// WorkLines lists the lines in which something waits, now or later, in the
	// order of upstream, tenant and model.
	WorkLines(ctx context.Context, limit int) ([]Line, error)
	// WorkWaiting names operations of a line that may be leased by a moment, those
	// that wait the longest first. Since is not looked at.
	WorkWaiting(ctx context.Context, l Line, by pawl.Time, limit int) ([]pawl.ID, error)
}
