package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// key is the deduplication key of an event, "" if one of its parts is missing.
// Several parts are escaped before they are joined, so that no two lists give
// one key; a key that grows too long is digested.
func (k EventKey) key(d document, body []byte, signed string) string {
	if k.Digest {
		return "sha256:" + hexSHA256(k.stable(body))
	}
	parts := make([]string, len(k.From))
	for i, from := range k.From {
		parts[i] = signed
		if from != signedID {
			parts[i] = d.id(from)
		}
		if parts[i] == "" {
			return ""
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	for i, part := range parts {
		parts[i] = url.QueryEscape(part)
	}
	joined := strings.Join(parts, "&")
	if len(joined) > maxID {
		return "sha256:" + hexSHA256([]byte(joined))
	}
	return joined
}

// stable cuts the values of volatile members out of a body that was checked
// before. The rest stays as received, names included.
func (k EventKey) stable(body []byte) []byte {
	if len(k.Volatile) == 0 {
		return body
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	out := make([]byte, 0, len(body))
	at := 0
	for {
		if _, err := d.ReadToken(); err != nil {
			return append(out, body[at:]...)
		}
		if !slices.Contains(k.Volatile, memberAt(d)) {
			continue
		}
		value, err := d.ReadValue()
		if err != nil {
			return append(out, body[at:]...)
		}
		end := int(d.InputOffset())
		out = append(out, body[at:end-len(value)]...)
		at = end
	}
}

// memberAt is the pointer to the member whose name was read last, "" after any
// other token.
func memberAt(d *jsontext.Decoder) string {
	if kind, length := d.StackIndex(d.StackDepth()); kind != '{' || length%2 == 0 {
		return ""
	}
	return string(d.StackPointer())
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
