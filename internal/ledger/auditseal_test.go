package ledger

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// A seal follows the one before it, is of lines before which none comes any more,
// and is there once; the lines of seals go in their order.
func TestAuditSeals(t *testing.T) {
	w := newWorld(t)
	id := func(ago time.Duration, n uint64) pawl.ID { return pawl.NewID(w.now.Add(-ago), n) }
	first := AuditSeal{Number: 1, Last: id(time.Hour, 1), Lines: 2, MAC: [32]byte{1}}
	second := AuditSeal{Number: 2, Last: id(time.Hour, 2), Lines: 1, MAC: [32]byte{2}}
	expect(t, "no first one", w.do(SealAudits{Seal: second, Before: first}).Reason, "version")
	young := first
	young.Last = id(sealAfter-time.Second, 1)
	expect(t, "too young", w.do(SealAudits{Seal: young}).Reason, "early")
	expect(t, "the first", w.do(SealAudits{Seal: first}).Reason, "added")
	expect(t, "once more", w.do(SealAudits{Seal: young}).Reason, "sealed")
	expect(t, "over another", w.do(SealAudits{Seal: second}).Reason, "version")
	back := second
	back.Last = first.Last
	expect(t, "no line more", w.do(SealAudits{Seal: back, Before: first}).Reason, "empty")
	expect(t, "the second", w.do(SealAudits{Seal: second, Before: first}).Reason, "added")

	expect(t, "out of order", w.do(ForgetAudits{Seal: 2, Removal: [32]byte{9}}).Reason, "order")
	expect(t, "in order", w.do(ForgetAudits{Seal: 1, Removal: [32]byte{8}}).Reason, "removed")
	first.Removal = [32]byte{8}
	expect(t, "marked", w.seals[1], first)
	expect(t, "the next", w.do(ForgetAudits{Seal: 2, Removal: [32]byte{9}}).Reason, "removed")
	second.Removal = [32]byte{9}
	expect(t, "marked", w.seals[2], second)
	expect(t, "seals that stay", len(w.seals), 1)
	expect(t, "lines about seals", len(w.audits), 0)
}
