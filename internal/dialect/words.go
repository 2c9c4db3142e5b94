package dialect

import (
	"bytes"
	"encoding/json"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// The dialects, which are named like their signature schemes.
const (
	MediaV2       = "media-v2"
	BodyTimestamp = "body-timestamp"
)

// Spoken reports whether endpoints of a signature scheme get the bodies of one
// of the dialects.
func Spoken(scheme string) bool { return scheme == MediaV2 || scheme == BodyTimestamp }

// Render is the body of an outbound event of an operation for an endpoint of a
// scheme that is [Spoken]: the same event always gives the same bytes. It fails
// only on a damaged snapshot.
func Render(scheme string, e ledger.Event, metadata, result string) ([]byte, error) {
	v, err := e.Data(metadata, result)
	if err != nil {
		return nil, err
	}
	if scheme == MediaV2 {
		return encode(mediaCallback(e, v))
	}
	return encode(versionedCallback(e, v))
}

// suffix is what the dialects' ids of an operation share with our own.
func suffix(v ledger.OperationJSON) string {
	id, _ := pawl.ParseID(pawl.PrefixOperation, v.ID) // A view is of an operation.
	return id.Suffix()
}

// encode writes JSON on one line without escaping what only HTML needs escaped.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
