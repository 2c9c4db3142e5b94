package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/strict"
)

// maxBody bounds a request body unless its route says otherwise.
const maxBody = 64 << 10

// none is the body of requests and answers that have none.
type none struct{}

// rawObject is a JSON object kept as the bytes received.
type rawObject []byte

// UnmarshalJSON keeps the bytes.
func (o *rawObject) UnmarshalJSON(b []byte) error {
	*o = bytes.Clone(b)
	return nil
}

// MarshalJSON gives the bytes.
func (o rawObject) MarshalJSON() ([]byte, error) { return o, nil }

// Schema describes any object.
func (rawObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// isObject reports whether the value, which is well-formed JSON, is an object.
func (o rawObject) isObject() bool { return len(o) > 0 && o[0] == '{' }

// decode reads the request's body strictly (JS-01). An empty one counts as an
// empty object, so that what is missing is told by name.
func decode(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	if err := jsonType(r.Header.Values("Content-Type")); err != nil {
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return bodyError(err)
	}
	text := bytes.TrimLeft(body, " \t\r\n")
	if len(text) == 0 {
		return nil
	}
	if text[0] != '{' {
		return &strict.Error{Reason: "object wanted"}
	}
	return strict.Decode(body, into)
}

func jsonType(values []string) error {
	if len(values) == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(values[0])
	known := kind == "application/json" || kind == "application/merge-patch+json"
	charset, named := params["charset"]
	if err != nil || len(values) > 1 || !known || named && !strings.EqualFold(charset, "utf-8") {
		return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "send application/json in UTF-8").with("Accept", "application/json")
	}
	return nil
}

func bodyError(err error) error {
	if tooLarge := asError[*http.MaxBytesError](err); tooLarge != nil {
		return refuse(http.StatusRequestEntityTooLarge, "content_too_large", "the request body is larger than this call takes")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(http.StatusRequestTimeout, "body_timeout", "the request body did not arrive in time; send it again")
	}
	return &strict.Error{Reason: "the body ended too early"}
}

// writeJSON sends an answer; a status without content has no body.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	if status == http.StatusNoContent || status == http.StatusNotModified {
		w.WriteHeader(status)
		return nil
	}
	write := func() ([]byte, error) { return encoded(v) }
	if own, ok := v.(texter); ok {
		write = own.text
	}
	text, err := write()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // The client is gone: nobody is left to tell.
	return nil
}

// texter is an answer that writes its own JSON.
type texter interface{ text() ([]byte, error) }

// encoded is JSON without escaping what only HTML needs escaped.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// money is an amount on the wire (2-contracts §1).
type money struct {
	Amount   string `json:"amount" example:"0.120000000" doc:"Decimal with at most nine places."`
	Currency string `json:"currency" minLength:"3" maxLength:"3" example:"USD"`
}

func moneyOf(a pawl.Amount, currency string) money { return money{a.String(), currency} }

// isSet is a time where it is set, for members that may be left out.
func isSet(t pawl.Time) *pawl.Time {
	if !t.IsSet() {
		return nil
	}
	return &t
}

// plainText reports whether a text is short and without control characters, as
// names and notes must be.
func plainText(s string, most int) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}
