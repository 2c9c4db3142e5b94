package ledger

import (
	"encoding/base64"
	"strings"
)

// Sealed is a secret as it is kept at rest: encrypted, with the name of the key
// that it was sealed with. The core never sees what is inside; the edges seal
// and open it (internal/vault). The zero value stands for no secret.
type Sealed string

// sealedMark begins every sealed secret, with the version of the form.
const sealedMark = "sealed:1:"

// NewSealed joins the name of a wrapping key, which holds no colon, and what
// was encrypted with it.
func NewSealed(key string, box []byte) Sealed {
	return Sealed(sealedMark + key + ":" + base64.RawURLEncoding.EncodeToString(box))
}

// Parts are the name of the wrapping key and what was encrypted with it; false
// for everything else, such as a secret that was never sealed. A box that is no
// longer what [NewSealed] wrote is nil.
func (s Sealed) Parts() (key string, box []byte, ok bool) {
	rest, ok := strings.CutPrefix(string(s), sealedMark)
	if !ok {
		return "", nil, false
	}
	key, text, ok := strings.Cut(rest, ":")
	if !ok {
		return "", nil, false
	}
	box, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") { // which decoders skip
		return key, nil, true
	}
	return key, box, true
}
