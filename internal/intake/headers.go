package intake

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/telemetry"
)

// maxHeaders bounds what is kept of a request's headers, in bytes.
const maxHeaders = 8 << 10

// keptHeaders are the headers that are stored with an event: none that is a
// credential or a signature, and not more than a bounded amount. Those that the
// source's scheme reads come first, and before them those that are kept to the
// letter: they are needed to judge the event anew, or to hand it over. Proxies
// add the address that was called, whose token is a credential too.
func keptHeaders(h http.Header, scheme []string, exact ...string) string {
	kept := make(map[string]string, len(h))
	size := 0
	for i, name := range slices.Concat(exact, scheme, slices.Sorted(maps.Keys(h))) {
		values, low := h[name], strings.ToLower(name)
		if _, twice := kept[low]; len(values) == 0 || twice || config.SecretHeader(low) {
			continue
		}
		value := strings.Join(values, ", ")
		if i >= len(exact) && !plain(value) {
			value = telemetry.Redact(value)
		}
		if size += len(name) + len(value); size > maxHeaders {
			break
		}
		kept[low] = value
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
