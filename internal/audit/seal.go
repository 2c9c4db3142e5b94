// Package audit makes changes of the audit evident (4-standards PR-07): stretches
// of its lines are sealed with a key that the database does not hold, each seal
// over the one before. Who changes, removes or adds a sealed line by hand cannot
// make the seal that it would need.
package audit

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Key is what seals are made with.
type Key []byte

// KeyOf derives the key from the ledger's root, which stays the same under every
// wrapping key: seals outlive a rewrap.
func KeyOf(root []byte) (Key, error) {
	return hkdf.Key(sha256.New, root, nil, "pawl audit seals", sha256.Size)
}

// Stretch takes the lines of one seal, in the order of their ids.
type Stretch struct {
	before ledger.AuditSeal
	mac    hash.Hash
	last   pawl.ID
	lines  int64
}

// After begins the stretch behind a seal, which is empty for the first one.
func (k Key) After(before ledger.AuditSeal) *Stretch {
	s := &Stretch{before: before, mac: hmac.New(sha256.New, k)}
	s.mac.Write([]byte("seal"))
	s.mac.Write(before.MAC[:])
	s.number(before.Number + 1)
	return s
}

// Add takes the next line.
func (s *Stretch) Add(a ledger.Audit) {
	s.last = a.ID
	s.lines++
	s.mac.Write(a.ID[:])
	s.number(int64(a.At))
	for _, text := range [...]string{a.Tenant, a.Actor, a.Action, a.Subject, a.Detail} {
		s.number(int64(len(text)))
		s.mac.Write([]byte(text))
	}
}

// Seal is that of the lines taken.
func (s *Stretch) Seal(at pawl.Time) ledger.AuditSeal {
	s.mac.Write(s.last[:])
	s.number(s.lines)
	s.number(int64(at))
	seal := ledger.AuditSeal{Number: s.before.Number + 1, Last: s.last, Lines: s.lines, SealedAt: at}
	s.mac.Sum(seal.MAC[:0])
	return seal
}

func (s *Stretch) number(n int64) {
	var text [8]byte
	binary.BigEndian.PutUint64(text[:], uint64(n))
	s.mac.Write(text[:])
}

// Removal proves that the lines of a seal were removed by their age.
func (k Key) Removal(s ledger.AuditSeal) (proof [32]byte) {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte("removal"))
	mac.Write(s.MAC[:])
	// The seals before are gone, so these are not in a MAC that can be made again.
	mac.Write(s.Last[:])
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(s.Number))
	mac.Write(number[:])
	mac.Sum(proof[:0])
	return proof
}
