package canary_test

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// watch looks for values in what was written. It is safe for concurrent use.
type watch struct {
	*testing.T

	mu     sync.Mutex
	values map[class][]string
	// texts are what was written before the end, by sink; values that become
	// known later are looked for in them too.
	texts map[sink]map[string]bool
}

func newWatch(t *testing.T) *watch {
	w := &watch{T: t, values: make(map[class][]string), texts: make(map[sink]map[string]bool)}
	for c, values := range fixed {
		w.add(c, values...)
	}
	return w
}

// add makes values of a class looked for.
func (w *watch) add(c class, values ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range values {
		if len(v) < 12 {
			w.Errorf("a value of %q is too short to be told from chance", c)
		}
		if !slices.Contains(w.values[c], v) {
			w.values[c] = append(w.values[c], v)
		}
	}
}

// look keeps a text for the end.
func (w *watch) look(s sink, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.texts[s] == nil {
		w.texts[s] = make(map[string]bool)
	}
	w.texts[s][text] = true
}

// judge holds everything that was written against the table. demand says which
// classes must have been seen where.
func (w *watch) judge(demand map[class][]sink) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[class]map[sink]bool)
	for s, texts := range w.texts {
		for text := range texts {
			for _, form := range forms(text) {
				w.search(s, form, seen)
			}
		}
	}
	for c, sinks := range demand {
		for _, s := range sinks {
			if !seen[c][s] {
				w.Errorf("the %s was not seen in %q: its path was not walked", c, s)
			}
		}
	}
}

func (w *watch) search(s sink, text string, seen map[class]map[sink]bool) {
	for c, values := range w.values {
		for _, v := range values {
			at := strings.Index(text, v)
			if at < 0 {
				continue
			}
			if !slices.Contains(may[c], s) && !(s == atRest && slices.Contains(kept, c)) && !seen[c][s] {
				w.Errorf("LEAK: the %s is in %q:\n%s", c, s, text[max(0, at-120):min(len(text), at+len(v)+60)])
			}
			if seen[c] == nil {
				seen[c] = make(map[sink]bool)
			}
			seen[c][s] = true
		}
	}
}

var (
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{24,}={0,2}`)
	hexRun    = regexp.MustCompile(`(?i)(?:[0-9a-f]{2}){12,}`)
)

// forms are a text and what it says once encodings are undone.
func forms(text string) []string {
	all := []string{text}
	if plain := strings.ReplaceAll(text, `\`, ""); plain != text {
		all = append(all, plain)
	}
	// Pages write more characters as references than people see.
	if plain := html.UnescapeString(text); plain != text {
		all = append(all, plain)
	}
	if plain, err := url.QueryUnescape(text); err == nil && plain != text {
		all = append(all, plain)
	}
	var decoded strings.Builder
	for _, run := range base64Run.FindAllString(text, -1) {
		run = strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(run)
		if raw, err := base64.RawStdEncoding.DecodeString(run); err == nil {
			decoded.Write(append(raw, '\n'))
		}
	}
	for _, run := range hexRun.FindAllString(text, -1) {
		if raw, err := hex.DecodeString(run); err == nil {
			decoded.Write(append(raw, '\n'))
		}
	}
	if decoded.Len() > 0 {
		all = append(all, decoded.String())
	}
	return all
}

// The table itself must be able to fail.
func TestWatchFinds(t *testing.T) {
	value := "S3KRIT-value-of-a-test"
	for _, text := range []string{
		value, "before " + value + " after", strings.ReplaceAll(value, "-", "&#45;"), url.QueryEscape("a/" + value), `{\"a\":\"` + value + `\"}`,
		base64.StdEncoding.EncodeToString([]byte(`{"a":"` + value + `"}`)), base64.RawURLEncoding.EncodeToString([]byte(value)),
		"x" + hex.EncodeToString([]byte(value)),
	} {
		if !slices.ContainsFunc(forms(text), func(f string) bool { return strings.Contains(f, value) }) {
			t.Errorf("not found in %q", text)
		}
	}
}
