package ledger

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParsePolicy(t *testing.T) {
	same := func(change func(*Policy)) Policy {
		p := DefaultPolicy()
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		scheme, text string
		want         Policy
	}{
		"none":           {"standard-webhooks", "", DefaultPolicy()},
		"of the dialect": {"body-timestamp", "", BodyTimestampPolicy()},
		"timeout":        {"standard-webhooks", `{"timeout":"5s"}`, same(func(p *Policy) { p.Timeout = 5 * time.Second })},
		"age":            {"standard-webhooks", `{"max_age":"1h"}`, same(func(p *Policy) { p.MaxAge = time.Hour })},
		"fewer attempts": {"standard-webhooks", `{"attempts":2}`, same(func(p *Policy) { p.Schedule = []time.Duration{0, 5 * time.Second} })},
		"own schedule": {"standard-webhooks", `{"schedule":["1s","1m"]}`,
			same(func(p *Policy) { p.Schedule = []time.Duration{time.Second, time.Minute} })},
		"the last wait repeats": {"standard-webhooks", `{"schedule":["0s","2s"],"attempts":4}`,
			same(func(p *Policy) { p.Schedule = []time.Duration{0, 2 * time.Second, 2 * time.Second, 2 * time.Second} })},
	} {
		got, err := ParsePolicy(c.scheme, c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	many := `{"schedule":[` + strings.Repeat(`"1s",`, 50) + `"1s"]}`
	for _, text := range []string{
		"null x", "[]", `{"attempts":51}`, `{"attempts":-1}`, `{"timeout":"0s"}`, `{"timeout":"61s"}`, `{"timeout":"5"}`, `{"timeout":5}`,
		`{"max_age":"721h"}`, `{"schedule":["169h"]}`, `{"schedule":["-1s"]}`, `{"retries":1}`, `{} {}`, many,
	} {
		if p, err := ParsePolicy("standard-webhooks", text); err == nil {
			t.Errorf("%s gives %+v", text, p)
		}
	}
	for _, text := range []string{`{"attempts":50}`, `{"timeout":"1s"}`, `{"timeout":"1m"}`, `{"max_age":"720h"}`, `{"schedule":["168h"]}`} {
		if _, err := ParsePolicy("standard-webhooks", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What an endpoint keeps is read back as what was asked for.
func FuzzParsePolicy(f *testing.F) {
	f.Add(`{"attempts":3,"timeout":"5s","max_age":"1h","schedule":["0s","1m"]}`)
	f.Add(`{}`)
	f.Add(``)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy("standard-webhooks", text)
		if err != nil {
			return
		}
		if len(p.Schedule) < 1 || len(p.Schedule) > 50 || p.Timeout < time.Second || p.Timeout > time.Minute || p.MaxAge > 720*time.Hour {
			t.Errorf("%q is out of bounds: %+v", text, p)
		}
		written := PolicyJSON{Attempts: len(p.Schedule), Timeout: p.Timeout.String(), MaxAge: p.MaxAge.String()}
		for _, wait := range p.Schedule {
			written.Schedule = append(written.Schedule, wait.String())
		}
		again, err := ParsePolicy("standard-webhooks", written.Text())
		if diff := cmp.Diff(p, again); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	})
}

// FuzzSealed: a sealed secret has one spelling, and its parts are those that
// were joined.
func FuzzSealed(f *testing.F) {
	f.Add("sealed:1:k:AAAA", "k", []byte("box"))
	f.Add("sealed:1:k:AAA\n", "", []byte{})
	f.Add("sealed:1:", "a:b", []byte{0})
	f.Add("sealed:2:k:AAAA", "k", []byte(nil))
	f.Add("sealed:1:k:AB", "k", []byte(nil))
	f.Fuzz(func(t *testing.T, text, key string, box []byte) {
		if name, inner, ok := Sealed(text).Parts(); ok && inner != nil && NewSealed(name, inner) != Sealed(text) || !ok && (name != "" || inner != nil) {
			t.Errorf("%q is of key %q, box %x, %v", text, name, inner, ok)
		}
		name, inner, ok := NewSealed(key, box).Parts()
		if !strings.Contains(key, ":") && (!ok || name != key || !bytes.Equal(inner, box)) {
			t.Errorf("key %q, box %x: read as %q, %x, %v", key, box, name, inner, ok)
		}
	})
}
