package ledger

import "github.com/pawlhq/pawl"

// Release lets a held result out (1-product G4).
type Release struct {
	Header
	Tenant    string
	Operation pawl.ID
	Note      string
}

// Head is the command's header.
func (c Release) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c Release) Keys(k *Keys) { k.Operations = add(k.Operations, c.Operation) }

// Decide lets the result out and answers with the operation; a second time it
// changes nothing.
func (c Release) Decide(d *Draft) Outcome {
	op, ok := d.Operations.Get(c.Operation)
	switch {
	case !ok || c.Tenant != "" && op.Tenant != c.Tenant:
		return dropped(pawl.NotFound, "not_found", "no such operation")
	case !op.Hold:
		return dropped(pawl.Conflicting, "not_held", "the operation's result is not held")
	case !op.Held():
		return done("released_before", op)
	case op.State != pawl.Succeeded:
		return dropped(pawl.Conflicting, "no_result_yet", "only the result of a success can be released; this operation is "+op.State.String())
	}
	d.release(&op, c.Note)
	d.saveDue(op)
	return done("released", op)
}

// release lets the result out and tells, also of what was not told while it was
// held. The caller saves the operation.
func (d *Draft) release(op *Operation, note string) {
	if !op.Held() || op.State != pawl.Succeeded {
		return
	}
	op.ReleasedAt = d.Now
	d.audit(op.Tenant, "operation.release", op.ID.Text(pawl.PrefixOperation), note)
	d.note(*op, History{Kind: "released", Detail: note, Version: op.Version})
	d.emit(op, pawl.TypeReleased)
	d.closeOpen(op, pawl.ReviewRelease, pawl.DecideRelease)
	if op.Captures == CapturesReady {
		d.emit(op, pawl.TypeArtifacts)
	}
}
