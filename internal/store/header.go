package store

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// NewHeader is the header of a new command by an actor, empty for the system:
// the one place where the seed of a command's ids is drawn.
func NewHeader(actor string) ledger.Header {
	h := ledger.Header{Actor: actor}
	_, _ = rand.Read(h.Seed[:]) // Never fails (crypto/rand).
	return h
}

// NewID is the id of something that its maker names before it is decided.
func NewID() pawl.ID {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return pawl.NewID(pawl.TimeOf(time.Now()), binary.BigEndian.Uint64(b[:]))
}
