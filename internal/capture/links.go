package capture

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// Links makes and checks our own links to captured files: bound to one artifact
// of one operation and tenant, until a moment (1-product G2). The token in a link
// is derived from a key of the ledger and not stored.
type Links struct {
	base string
	ttl  time.Duration
	key  [32]byte
}

// NewLinks derives the links' key from the ledger's. Base is the public URL, ttl
// how long a link works.
func NewLinks(base string, ttl time.Duration, ledgerKey []byte) Links {
	mac := hmac.New(sha256.New, ledgerKey)
	mac.Write([]byte("pawl artifact link"))
	l := Links{base: strings.TrimRight(base, "/"), ttl: ttl}
	mac.Sum(l.key[:0])
	return l
}

// Format writes where the links begin, for every verb, and never the key.
func (l Links) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "artifacts at "+l.base) }

// URL is a link to a captured file and the moment at which it ends, in whole
// seconds.
func (l Links) URL(a ledger.Artifact, now time.Time) (string, time.Time) {
	until := now.Add(l.ttl).Truncate(time.Second)
	return l.base + FilesPath + l.token(a, until.Unix()), until
}

// FilesPath is where files are given out: no API key, the link is the right.
const FilesPath = "/files/"

// A token is the artifact's suffix, the end in Unix seconds as ten hexadecimal
// digits, and a MAC of 128 bits.
const (
	suffixLen = 26
	untilLen  = 10
	macLen    = 32
)

func (l Links) token(a ledger.Artifact, until int64) string {
	head := a.ID.Suffix() + fmt.Sprintf("%0*x", untilLen, until)
	return head + l.mac(a, head)
}

func (l Links) mac(a ledger.Artifact, head string) string {
	mac := hmac.New(sha256.New, l.key[:])
	mac.Write([]byte(head))
	mac.Write(a.Operation[:])
	mac.Write([]byte(a.Tenant))
	return hex.EncodeToString(mac.Sum(nil)[:macLen/2])
}

// parse reads what a token claims; nothing of it is proven yet.
func (l Links) parse(token string) (id pawl.ID, until int64, ok bool) {
	if len(token) != suffixLen+untilLen+macLen {
		return id, 0, false
	}
	id, err := pawl.ParseSuffix(token[:suffixLen])
	if err != nil {
		return id, 0, false
	}
	until, err = strconv.ParseInt(token[suffixLen:suffixLen+untilLen], 16, 64)
	return id, until, err == nil
}

// proves reports in constant time whether the token was made for the artifact.
func (l Links) proves(token string, a ledger.Artifact) bool {
	head, mac := token[:suffixLen+untilLen], token[suffixLen+untilLen:]
	return hmac.Equal([]byte(l.mac(a, head)), []byte(mac))
}
