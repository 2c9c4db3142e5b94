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
		value := telemetry.Redact(strings.Join(values, ", "))
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

func secret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range [...]string{"authorization", "cookie", "signature", "secret", "token", "key", "hmac", "password"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
