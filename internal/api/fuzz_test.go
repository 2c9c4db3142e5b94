package api

import (
	"strings"
	"testing"
)

// No text but one that was sealed for the same list opens.
func FuzzPageToken(f *testing.F) {
	s := newSealer([]byte("key"))
	f.Add(s.seal([]byte("position"), "other list"), "list")
	f.Add("", "")
	f.Add("AAAA", "list")
	f.Fuzz(func(t *testing.T, token, bound string) {
		if position, ok := s.open(token, bound); ok && !(string(position) == "position" && bound == "other list") {
			t.Errorf("%q opened for %q", token, bound)
		}
		if position, ok := s.open(s.seal([]byte(token), bound), bound); !ok || string(position) != token {
			t.Errorf("what was sealed does not open: %q %v", position, ok)
		}
	})
}

// A list of tags matches a version only if it has its tag or a star.
func FuzzIfMatch(f *testing.F) {
	for _, line := range []string{`"7"`, `W/"7"`, `"6", "7"`, `*`, `7`, `"7`, `""`, `"a,"7"`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		version, err := ifMatch([]string{line}, 7)
		if err == nil && (version != 7 || !strings.Contains(line, `"7"`) && !strings.Contains(line, "*")) {
			t.Errorf("%q matches", line)
		}
	})
}

// Only the one form of a credential is read, and nothing is cut off it.
func FuzzBearer(f *testing.F) {
	good := KeyPrefix + strings.Repeat("a", 43)
	for _, line := range []string{"Bearer " + good, "bearer  " + good, "Bearer" + good, "Basic " + good, "Bearer " + good + " ", ""} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		secret, ok := bearer([]string{line})
		if ok && (!strings.HasSuffix(line, " "+secret) || !strings.HasPrefix(secret, KeyPrefix) || len(secret) < 40 || len(secret) > 512 || strings.ContainsAny(secret, " \t\r\n\x00\x7f")) {
			t.Errorf("%q gives %q", line, secret)
		}
	})
}
