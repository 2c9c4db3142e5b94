package strict

import (
	"strconv"
	"strings"
	"time"
)

// PreferWait reads how long a client is willing to wait from the lines of its
// Prefer header (RFC 7240 §4.3): whole seconds. As the RFC asks, everything that
// is not understood is ignored, and of a preference that is given twice the
// first one counts.
func PreferWait(lines []string) (time.Duration, bool) {
	for _, line := range lines {
		for _, preference := range split(line, ',') {
			name, value, valued := strings.Cut(split(preference, ';')[0], "=")
			if !strings.EqualFold(strings.Trim(name, " \t"), "wait") {
				continue
			}
			value = strings.Trim(value, " \t")
			if strings.HasPrefix(value, `"`) {
				value, valued = unquoteString(value)
			}
			if !valued || value == "" || strings.Trim(value, "0123456789") != "" {
				return 0, false
			}
			// Of more digits than a number holds, the largest number is left.
			seconds, _ := strconv.ParseInt(value, 10, 32)
			return time.Duration(seconds) * time.Second, true
		}
	}
	return 0, false
}

// split cuts a text at a separator that stands outside of quoted strings.
func split(text string, at byte) (parts []string) {
	quoted, start := false, 0
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == at && !quoted:
			parts, start = append(parts, text[start:i]), i+1
		}
	}
	return append(parts, text[start:])
}
