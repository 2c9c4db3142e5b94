package ledger

import "github.com/pawlhq/pawl"

// ForgetKey removes an idempotency key that has ended, as one that is used again
// would be overwritten: never one of an operation that is unfinished (7-rules
// R3).
type ForgetKey struct {
	Header
	Key IdempotencyKeyID
	// Before is by when it must have ended.
	Before pawl.Time
}

// Head is the command's header.
func (c ForgetKey) Head() Header { return c.Header }

// Keys names the rows the command needs; the key leads to its operation.
func (c ForgetKey) Keys(k *Keys) { k.IdempotencyKeys = add(k.IdempotencyKeys, c.Key) }

// Decide removes the key if it is free.
func (c ForgetKey) Decide(d *Draft) Outcome {
	claim, ok := d.IdempotencyKeys.Get(c.Key)
	if !ok {
		return done("repeat", nil)
	}
	op, isOp := d.Operations.Get(claim.Operation)
	if claim.ExpiresAt > min(c.Before, d.Now) || isOp && !op.State.Terminal() {
		return done("living", nil)
	}
	d.IdempotencyKeys.Remove(c.Key)
	return done("removed", nil)
}
