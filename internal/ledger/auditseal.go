package ledger

import (
	"strconv"
	"time"

	"github.com/pawlhq/pawl"
)

// sealAfter is how old a line of the audit must be to be sealed: older than any
// transaction becomes, so that no line comes late among sealed ones.
const sealAfter = 2 * time.Minute

// AuditSeal proves a stretch of the audit: the lines after the last one of the
// seal before, up to its own last one. What it proves them with is made and
// checked elsewhere (internal/audit); here is only that one follows the other.
type AuditSeal struct {
	// Number counts the seals from 1, without gaps.
	Number int64
	// Last is the last line, and Lines how many there are.
	Last     pawl.ID
	Lines    int64
	SealedAt pawl.Time
	// MAC is over the seal before and the lines.
	MAC [32]byte
	// Removal proves that the lines were removed by their age; zero while they are
	// there. Of such seals the newest stays: the chain hangs on it.
	Removal [32]byte
}

// Removed reports whether the lines are gone by their age.
func (s AuditSeal) Removed() bool { return s.Removal != [32]byte{} }

// SealAudits adds a seal.
type SealAudits struct {
	Header
	Seal AuditSeal
	// Before is the seal that it was made over, empty for the first one.
	Before AuditSeal
}

// Head is the command's header.
func (c SealAudits) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c SealAudits) Keys(k *Keys) { sealKeys(k, c.Seal.Number) }

// Decide adds the seal if it is the next one. Of two nodes that seal at once one
// comes later and finds the number taken.
func (c SealAudits) Decide(d *Draft) Outcome {
	if _, taken := d.AuditSeals.Get(c.Seal.Number); taken {
		return done("sealed", nil)
	}
	before, ok := d.sealBefore(c.Seal.Number)
	switch {
	case ok != (c.Seal.Number > 1) || before.MAC != c.Before.MAC || before.Last != c.Before.Last:
		return dropped(pawl.Conflicting, "version", "another seal came before")
	case c.Seal.Lines < 1 || c.Seal.Last.Compare(before.Last) <= 0:
		return dropped(pawl.Invalid, "empty", "a seal is of at least one line after those of the seal before")
	case madeAt(c.Seal.Last) > d.Now.Add(-sealAfter):
		return dropped(pawl.Conflicting, "early", "a line before it may still come")
	}
	d.AuditSeals.Put(c.Seal.Number, c.Seal)
	return done("added", nil)
}

// ForgetAudits removes the lines of a seal, which are old enough, and notes on the
// seal that this is why they are gone.
type ForgetAudits struct {
	Header
	// Seal is its number, and Audits are all of its lines.
	Seal   int64
	Audits []pawl.ID
	// Removal is what the seal will prove the removal with.
	Removal [32]byte
	// Differs says that the lines were not those that were sealed. They go
	// nevertheless, as content does; that it was so stays in the audit.
	Differs bool
}

// Head is the command's header.
func (c ForgetAudits) Head() Header { return c.Header }

// Keys names the rows the command needs.
func (c ForgetAudits) Keys(k *Keys) { sealKeys(k, c.Seal) }

// Decide removes them if those of all seals before are gone. The seal before has
// done its duty.
func (c ForgetAudits) Decide(d *Draft) Outcome {
	seal, ok := d.AuditSeals.Get(c.Seal)
	if !ok || seal.Removed() {
		return done("repeat", nil)
	}
	before, ok := d.sealBefore(c.Seal)
	if ok && !before.Removed() {
		return dropped(pawl.Conflicting, "order", "older lines are there yet")
	}
	if ok {
		d.AuditSeals.Remove(before.Number)
	}
	d.removed.Audits = append(d.removed.Audits, c.Audits...)
	seal.Removal = c.Removal
	d.AuditSeals.Put(seal.Number, seal)
	if c.Differs {
		d.audit("", "audit.differs", "seal "+strconv.FormatInt(c.Seal, 10), "")
	}
	return done("removed", nil)
}

// sealKeys are those of a seal and of the one before.
func sealKeys(k *Keys, number int64) {
	k.AuditSeals = add(k.AuditSeals, number)
	if number > 1 {
		k.AuditSeals = add(k.AuditSeals, number-1)
	}
}

func (d *Draft) sealBefore(number int64) (AuditSeal, bool) {
	if number <= 1 {
		return AuditSeal{}, false
	}
	return d.AuditSeals.Get(number - 1)
}
