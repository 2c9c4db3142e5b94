package ledger

// RecordAccess writes into the audit that somebody read what is read under
// audit only: inputs, raw bodies, provider answers (7-rules R53).
type RecordAccess struct {
	Header
	Tenant string
	// Action is a word such as "operation.input"; Subject names what was read.
	Action, Subject, Detail string
}

// Head is the command's header.
func (c RecordAccess) Head() Header { return c.Header }

// Keys names the rows the command needs: none.
func (c RecordAccess) Keys(*Keys) {}

// Decide adds the line to the audit.
func (c RecordAccess) Decide(d *Draft) Outcome {
	d.audit(c.Tenant, c.Action, c.Subject, c.Detail)
	return done("recorded", nil)
}
