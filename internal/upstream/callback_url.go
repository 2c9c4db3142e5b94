package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl"
)

// suffixLength is that of the part of a token which is an operation's suffix.
const suffixLength = 26

// Callbacks makes and checks the addresses that providers call back: each
// operation has its own, known before its create goes out (1-product B3). The
// token in it is derived from a key of the ledger and not stored.
type Callbacks struct {
	base string
	key  [32]byte
}

// NewCallbacks derives the tokens' key from the ledger's. Base is the public
// URL of the inbound hooks.
func NewCallbacks(base string, ledgerKey []byte) Callbacks {
	mac := hmac.New(sha256.New, ledgerKey)
	mac.Write([]byte("pawl callback token"))
	c := Callbacks{base: strings.TrimRight(base, "/")}
	mac.Sum(c.key[:0])
	return c
}

// Format writes where the addresses begin, for every verb, and never the key.
func (c Callbacks) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "callbacks at "+c.base) }

// URL is the callback address of an operation at its upstream.
func (c Callbacks) URL(source string, operation pawl.ID) string {
	return c.base + "/hooks/" + source + "/" + c.Token(source, operation)
}

// Called is the public address that a request came to.
func (c Callbacks) Called(r *http.Request) string { return c.base + r.URL.RequestURI() }

// Token is the last part of the address: the operation's suffix and a MAC.
func (c Callbacks) Token(source string, operation pawl.ID) string {
	return operation.Suffix() + c.mac(source, operation)
}

// Operation checks a token in constant time and gives the operation it is for.
func (c Callbacks) Operation(source, token string) (pawl.ID, bool) {
	if len(token) != suffixLength+32 {
		return pawl.ID{}, false
	}
	id, err := pawl.ParseSuffix(token[:suffixLength])
	if err != nil || !hmac.Equal([]byte(c.mac(source, id)), []byte(token[suffixLength:])) {
		return pawl.ID{}, false
	}
	return id, true
}

func (c Callbacks) mac(source string, operation pawl.ID) string {
	mac := hmac.New(sha256.New, c.key[:])
	mac.Write(operation[:])
	mac.Write([]byte(source))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
