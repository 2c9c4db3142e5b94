package ledger

import "github.com/pawlhq/pawl"

// PausedRestored is the reason of a pause that a restored ledger begins with:
// creates wait until a person has compared it with the provider.
const PausedRestored = "restored"

// DoubtCreate marks an operation of a restored ledger that is yet to be created:
// between the backup and the loss it may have been. From here on it is what a
// crash in the middle of a create leaves behind: it is repeated where that is
// safe, and becomes unconfirmed elsewhere (1-product B2).
type DoubtCreate struct {
	Header
	Operation pawl.ID
	// Since is the latest moment at which the ledger knows that no create had
	// begun, and Credential the one that the upstream was given then, zero where
	// that is not known.
	Since      pawl.Time
	Credential [8]byte
}

// Head is the command's header.
func (c DoubtCreate) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c DoubtCreate) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide marks the operation, unless a create is on record already or an own
// worker does it.
func (c DoubtCreate) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	if !ok {
		return dropped(pawl.NotFound, "not_found", "no such operation")
	}
	if op.State != pawl.Pending || op.InFlight || op.MayExist || op.WaitingAt.IsSet() || op.Adapter == WorkerAdapter {
		return done("unchanged", nil)
	}
	op.MayExist, op.FirstCreateAt, op.CreateCredential = true, c.Since, c.Credential
	d.note(op, History{Kind: RestoredLine, Version: op.Version})
	d.Operations.Put(op.ID, op)
	return done("doubted", nil)
}
