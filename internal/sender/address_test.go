package sender

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/ledger"
)

// FuzzAddress: whatever the template and the event, scheme and host of the request
// are those that the template begins with.
func FuzzAddress(f *testing.F) {
	f.Add("https://api.example.com/v1/{/id}?q={/q}", "in_1", "x")
	f.Add("https://api.example.com/{/id}/../{/q}", "..%2f", "@b.example.com")
	f.Add("https://a@{/id}/", "b", "c")
	f.Add("http://a/{/id}#{/q}", "?", "#")
	f.Add("https://a/{/id}?q={/q}", "a b é", "ü\u2028")
	f.Add("https://a.example.com{/id}/x", ".b.example.com", "")
	f.Fuzz(func(t *testing.T, template, id, q string) {
		a, err := parseAddress(config.SourceRead{URL: template})
		if err != nil {
			return
		}
		first, err := url.Parse(a.texts[0])
		if err != nil || first.Host == "" || len(a.texts) != len(a.pointers)+1 {
			t.Fatalf("%q is taken: %v", template, err)
		}
		body, err := encodeBody(id, q)
		if err != nil {
			return
		}
		r, err := Sender{settings: config.Source{Read: &config.SourceRead{}}, current: &a}.Current(ledger.Event{}, body)
		if err != nil {
			return
		}
		if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host || r.URL.User != nil || r.URL.Fragment != "" || strings.ContainsFunc(r.URL.String(), func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q with %q and %q: %s", template, id, q, r.URL)
		}
	})
}

func encodeBody(id, q string) ([]byte, error) {
	return json.Marshal(map[string]string{"id": id, "q": q})
}
