package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/audit"
	"github.com/pawlhq/pawl/internal/ledger"
	"github.com/pawlhq/pawl/internal/store"
)

const (
	// sealLines is how many lines of the audit a seal is of at most, sealSpan how
	// much time lies between the first and the last: they are removed together.
	sealLines = 200
	sealSpan  = time.Hour
	// settled is how old a line must be. The ledger refuses what is too young by
	// its own clock.
	settled = 3 * time.Minute
	// sealsMost bounds one pass.
	sealsMost = 1000
)

// seal seals the lines of the audit that are not sealed yet. Of several nodes
// that do so at once each goes on behind what another has sealed.
func (r *Remover) seal(ctx context.Context, _ Settings, at pawl.Time, _ *counts) error {
	for range sealsMost {
		before, err := r.latestSeal(ctx)
		if err != nil {
			return err
		}
		stretch, n, first := r.o.AuditKey.After(before), 0, pawl.Time(0)
		err = audit.Lines(ctx, r.o.Reader, before.Last, idAt(at.Add(-settled)), sealLines, func(a ledger.Audit) {
			if n == 0 {
				first = a.At
			}
			if a.At.Sub(first) < sealSpan {
				stretch.Add(a)
				n++
			}
		})
		if err != nil || n == 0 {
			return err
		}
		seal := stretch.Seal(at)
		reason, err := r.do(ctx, ledger.SealAudits{Header: store.NewHeader(""), Seal: seal, Before: before})
		if err != nil {
			return err
		}
		switch reason {
		case "early":
			return nil
		case "added":
			r.sealed = seal
			// Where the log is kept elsewhere, the end of the chain is too.
			r.o.Log.Info("lines of the audit were sealed", "seal", seal.Number, "lines", seal.Lines, "mac", fmt.Sprintf("%x", seal.MAC))
		}
	}
	return nil
}

// latestSeal is that which the next one is made over. A chain that has become
// shorter was cut by hand.
func (r *Remover) latestSeal(ctx context.Context) (ledger.AuditSeal, error) {
	latest, err := r.o.Reader.LatestAuditSeal(ctx)
	if err != nil {
		return latest, err
	}
	if latest.Number < r.sealed.Number {
		r.o.Log.ErrorContext(ctx, "seals of the audit were removed by hand", "latest", latest.Number, "was", r.sealed.Number)
	}
	r.sealed = latest
	return latest, nil
}

// audits removes old lines of the audit, all of a seal at once, the oldest first.
func (r *Remover) audits(ctx context.Context, s Settings, at pawl.Time, n *counts) error {
	until := idAt(at.Add(-s.Audit))
	for {
		seals, err := r.o.Reader.AuditSeals(ctx, 0, 2)
		if err != nil {
			return err
		}
		var before ledger.AuditSeal
		if len(seals) > 0 && seals[0].Removed() {
			before, seals = seals[0], seals[1:]
		}
		if len(seals) == 0 || seals[0].Last.Compare(until) >= 0 {
			return nil
		}
		gone, err := r.forget(ctx, before, seals[0])
		if err != nil || gone == 0 {
			return err
		}
		n.audits += gone
	}
}

// forget removes the lines of a seal, and says how many there were. If they are
// not those that were sealed, that is told: nobody could find it later.
func (r *Remover) forget(ctx context.Context, before, seal ledger.AuditSeal) (gone int, err error) {
	c := ledger.ForgetAudits{Header: store.NewHeader(""), Seal: seal.Number, Removal: r.o.AuditKey.Removal(seal)}
	stretch := r.o.AuditKey.After(before)
	err = audit.Lines(ctx, r.o.Reader, before.Last, seal.Last, 10*sealLines, func(a ledger.Audit) {
		c.Audits = append(c.Audits, a.ID)
		stretch.Add(a)
	})
	if err != nil {
		return 0, err
	}
	if c.Differs = stretch.Seal(seal.SealedAt) != seal; c.Differs {
		r.o.Log.ErrorContext(ctx, "lines of the audit that are removed by their age are not those that were sealed", "seal", seal.Number)
	}
	reason, err := r.do(ctx, c)
	if err != nil || reason != "removed" {
		return 0, err
	}
	return max(1, len(c.Audits)), nil
}
