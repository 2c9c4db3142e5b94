package intake

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// maxHeaders bounds what is kept of a request's headers, in bytes.
const maxHeaders = 8 << 10

// keptHeaders are the headers that are stored with an event: none that is a
// credential or a signature, and not more than a bounded amount. Proxies add
// the address that was called, whose token is a credential too.
func keptHeaders(h http.Header) string {
	kept := make(map[string]string, len(h))
	size := 0
	for name, values := range h {
		if secret(name) {
			continue
		}
		value := strings.Join(values, ", ")
		if !plain(value) {
			value = telemetry.Redact(value)
		}
		if size += len(name) + len(value); size > maxHeaders {
			break
		}
		kept[strings.ToLower(name)] = value
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return ""
	}
	return string(text)
}

// plain reports whether a value is too short and too simple to hold an address
// or a credential, as most are; the others are looked at closely.
func plain(value string) bool {
	if len(value) > 24 {
		return false
	}
	for i := range len(value) {
		c := value[i]
		if c == ':' || c == '_' || c == '@' || c == '?' || c == '%' || c < ' ' || c > '~' || c == '/' && i == 0 {
			return false
		}
	}
	return true
}

func secret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range [...]string{"authorization", "cookie", "signature", "secret", "token", "key", "hmac", "password"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
