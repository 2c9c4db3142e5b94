package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/pawlhq/pawl"
)

// Once is the Idempotency-Key of a call that changes money or sends something
// (7-rules R52). Commands embed it; one without a key is decided each time.
//
// A command that takes a key asks [Draft.repeated] first and, once it has
// decided, has [Draft.takeKey] remember what the key stands for. What is
// remembered is that mapping and never an answer: a repeat is told how things
// are now, and a refusal leaves the key free (1-product A6).
type Once struct {
	// APIKey asks, and KeyTenant is its tenant: the space its keys live in.
	APIKey    pawl.ID
	KeyTenant string
	// Key is the Idempotency-Key, empty for none; Window is how long it lives
	// at least.
	Key    string
	Window time.Duration
}

// The purposes of keys: what was asked for under them.
const (
	// ForOperation: a new operation, by a submission or by the retry of one.
	ForOperation = "operation"
	// ForCredit: a change of an account's credit.
	ForCredit = "credit"
	// ForAccount: a new account.
	ForAccount = "account"
	// ForCancel: the cancel of an operation.
	ForCancel = "cancel"
	// ForResolve: a decision about an operation or a review.
	ForResolve = "resolve"
	// ForDelivery: a delivery sent again by hand.
	ForDelivery = "delivery"
	// ForNote: a remark on a review.
	ForNote = "note"
	// ForReplay: a replay of many.
	ForReplay = "replay"
	// ForReplayChange: a replay paused, resumed or canceled.
	ForReplayChange = "replay_change"
	// ForEvent: an event of a tenant's own.
	ForEvent = "event"
	// ForRetryCaptures: the files of a success saved again.
	ForRetryCaptures = "captures"
	// ForTest: an event that tries an endpoint.
	ForTest = "test"
)

// asked is what a key stands for: a purpose and the fingerprint of the request.
type asked struct {
	purpose     string
	fingerprint Digest
}

// ask is what a request with these parts asks for: two requests are the same
// if all parts are.
func ask(purpose string, parts ...string) asked {
	text := []byte(purpose)
	for _, part := range parts {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	return asked{purpose, sha256.Sum256(text)}
}

func (o Once) keyID() IdempotencyKeyID { return IdempotencyKeyID{o.KeyTenant, o.Key} }

// needs names the row of the key.
func (o Once) needs(k *Keys) {
	if o.Key != "" {
		k.IdempotencyKeys = add(k.IdempotencyKeys, o.keyID())
	}
}

// repeated reports whether the key was used before. The outcome is then either
// a refusal, or has the reason "replayed" and the id that the key stands for as
// its value, which the caller replaces with its own answer.
func (d *Draft) repeated(o Once, a asked) (Outcome, bool) {
	if o.Key == "" {
		return Outcome{}, false
	}
	return d.claimed(o.keyID(), o.APIKey, a.fingerprint, a.purpose)
}

// takeKey makes the key stand for subject from now on.
func (d *Draft) takeKey(o Once, a asked, subject pawl.ID) {
	if o.Key == "" {
		return
	}
	d.IdempotencyKeys.Put(o.keyID(), IdempotencyKey{
		ID: o.keyID(), APIKey: o.APIKey, For: a.purpose, Operation: subject, Fingerprint: a.fingerprint, ExpiresAt: d.Now.Add(o.Window),
	})
}

// claimed answers for an idempotency key that is taken: the id it stands for,
// or the refusal. An expired key is free once what it stands for has ended.
func (d *Draft) claimed(id IdempotencyKeyID, apiKey pawl.ID, fingerprint Digest, purpose string) (Outcome, bool) {
	claim, ok := d.IdempotencyKeys.Get(id)
	if !ok {
		return Outcome{}, false
	}
	op, isOp := d.Operations.Get(claim.Operation)
	if d.Now >= claim.ExpiresAt && (!isOp || op.State.Terminal()) {
		return Outcome{}, false
	}
	if claim.APIKey != apiKey {
		return dropped(pawl.Conflicting, "idempotency_key_in_use", "another API key of this tenant has used this Idempotency-Key; choose another"), true
	}
	if claim.Fingerprint != fingerprint || claim.For != purpose {
		out := dropped(pawl.Unprocessable, "idempotency_mismatch", "this Idempotency-Key was used for another request; repeat that one unchanged or choose another key")
		if isOp {
			out.Err.Operation = op.ID
		}
		return out, true
	}
	return done("replayed", claim.Operation), true
}
