// Package telemetry is what a node tells about itself: logs that cannot hold a
// secret, a prompt, a result or a link (1-product I4), and metrics whose labels
// are few and fixed (PM-06). It knows nothing of the other rooms; they are
// given a *slog.Logger and a *Metrics.
package telemetry
