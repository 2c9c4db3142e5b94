package webhook

import (
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxIDLength   = 255
	maxSignatures = 16 // of one list header (O-029); rotation needs two
	// maxTimestamp has eleven digits: seconds until the year 5138. Milliseconds
	// have had twelve and more since 1973, so a wrong unit is told apart (O-031).
	maxTimestamp       = 99_999_999_999
	maxTimestampDigits = 11
)

// header returns the one line of that name. A name is compared without regard to
// case even in a header map that was not filled by net/http.
func header(h http.Header, name string) (string, error) {
	value, lines := "", 0
	for key, all := range h {
		if len(key) == len(name) && http.CanonicalHeaderKey(key) == name && len(all) > 0 {
			value, lines = all[0], lines+len(all)
		}
	}
	switch lines {
	case 0:
		return "", refuseHeader(ReasonMissingHeader, name, "the header is absent")
	case 1:
		return value, nil
	}
	return "", refuseHeader(ReasonMalformedHeader, name, "the header occurs more than once")
}

// parseTimestamp accepts one spelling of each second, so that the text received
// is the text that was signed (SW-30).
func parseTimestamp(s string) (time.Time, string) {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		return time.Time{}, "whole Unix seconds in decimal digits are needed"
	}
	if s[0] == '0' {
		return time.Time{}, "leading zeros are not allowed"
	}
	if len(s) > maxTimestampDigits {
		return time.Time{}, "too many digits: Unix seconds are needed, not milliseconds"
	}
	seconds, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, "whole Unix seconds in decimal digits are needed"
	}
	return time.Unix(seconds, 0), ""
}

// read returns the timestamp in both forms, fresh at now.
func (rule timestampRule) read(h http.Header, now time.Time) (string, time.Time, error) {
	if rule.header == "" {
		return "", time.Time{}, nil
	}
	text, err := header(h, rule.header)
	if err == nil && rule.element != "" {
		text, err = rule.listed(text)
	}
	if err != nil {
		return "", time.Time{}, err
	}
	at, problem := parseTimestamp(text)
	if problem != "" {
		return "", time.Time{}, refuseHeader(ReasonMalformedTimestamp, rule.header, problem)
	}
	if err := rule.fresh(rule.header, at, now); err != nil {
		return "", time.Time{}, err
	}
	return text, at, nil
}

// elementSeparator stands between the elements of a header that lists the
// timestamp and the signatures.
const elementSeparator = ","

// listed finds the one timestamp in a header that lists signatures too. Two could
// be read in two ways.
func (rule timestampRule) listed(list string) (text string, err error) {
	found := 0
	for element := range strings.SplitSeq(list, elementSeparator) {
		if value, ok := strings.CutPrefix(element, rule.element); ok {
			text = value
			found++
		}
	}
	if found != 1 {
		return "", refuseHeader(ReasonMalformedHeader, rule.header, "the header must hold one "+rule.element)
	}
	return text, nil
}

// fresh refuses what is outside the window.
func (rule timestampRule) fresh(header string, at, now time.Time) error {
	age := now.Sub(at)
	if rule.window == 0 {
		return nil
	}
	if age > rule.window {
		return refuseHeader(ReasonStaleTimestamp, header, "more than "+rule.window.String()+" behind this clock")
	}
	if age < -rule.window && !rule.past {
		return refuseHeader(ReasonFutureTimestamp, header, "more than "+rule.window.String()+" ahead of this clock")
	}
	return nil
}

// tokens returns what the header lists.
func (rule signatureRule) tokens(h http.Header) ([]string, error) {
	value, err := header(h, rule.header)
	if err != nil {
		return nil, err
	}
	tokens := []string{value}
	if rule.separator != "" {
		tokens = strings.SplitN(value, rule.separator, maxSignatures+1)
	}
	if len(tokens) > maxSignatures {
		return nil, refuseHeader(ReasonMalformedHeader, rule.header, "the header holds more than "+strconv.Itoa(maxSignatures)+" signatures")
	}
	return tokens, nil
}

// ways gives the rule and then its others.
func (rule tokenRule) ways() iter.Seq[tokenRule] {
	return func(yield func(tokenRule) bool) {
		if !yield(rule) {
			return
		}
		for _, other := range rule.others {
			if !yield(other) {
				return
			}
		}
	}
}

// candidates returns the signatures among the tokens that can be those of a key
// with this rule. None is not an error here: it must look like a signature that
// does not match. False: there are more than may be looked at.
func (rule tokenRule) candidates(tokens []string) (found [][]byte, ok bool) {
	for _, token := range tokens {
		encoded, ok := strings.CutPrefix(token, rule.prefix)
		if !ok {
			continue
		}
		if signature, ok := rule.encoding.decode(encoded); ok {
			found = append(found, signature)
		}
	}
	return found, rule.algorithm.most == 0 || len(found) <= rule.algorithm.most
}

// validReceivedID accepts visible ASCII without the full stop. With a full stop in
// the id one signed text could be cut into id, timestamp and body in two ways
// (SW-05).
func validReceivedID(id string) bool {
	return visible(id) && !strings.Contains(id, ".")
}

// validOwnID accepts [A-Za-z0-9_-], the characters of the ids that we make (R49).
func validOwnID(id string) bool {
	return visible(id) && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

func visible(id string) bool {
	return id != "" && len(id) <= maxIDLength &&
		!strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' })
}
