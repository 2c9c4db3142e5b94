package api

import (
	"net/http"
	"strconv"
	"strings"
)

// ifMatch reads If-Match (RFC 9110 §13.1.1): the version that the ledger must
// find, or zero where any will do. Comparison is strong, so a weak tag never
// matches.
func ifMatch(lines []string, version int64) (int64, error) {
	if len(lines) == 0 {
		return 0, nil
	}
	current := `"` + strconv.FormatInt(version, 10) + `"`
	for tag := range tags(lines) {
		if tag == "*" || tag == current {
			return version, nil
		}
	}
	return 0, refuse(http.StatusPreconditionFailed, "version", "it was changed since; read it again and repeat with its new ETag")
}

// matchesWeakly reports whether If-None-Match names the tag (RFC 9110
// §13.1.2).
func matchesWeakly(lines []string, etag string) bool {
	for tag := range tags(lines) {
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}

// tags yields the members of a list of entity tags. Ours are numbers, so a tag
// that holds a comma, which is cut in two here, is none of ours either way.
func tags(lines []string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for tag := range strings.SplitSeq(line, ",") {
				if !yield(strings.Trim(tag, " \t")) {
					return
				}
			}
		}
	}
}
