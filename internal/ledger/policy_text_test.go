package ledger

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
		"retried too":      {"standard-webhooks", `{"retry":[401,422]}`, same(func(p *Policy) { p.Retry = append(p.Retry, 401, 422) })},
		"410 is an outage": {"standard-webhooks", `{"retry":[410]}`, same(func(p *Policy) { p.Retry, p.Gone = append(p.Retry, 410), []int32{} })},
		"404 is the end":   {"standard-webhooks", `{"gone":[404]}`, same(func(p *Policy) { p.Retry, p.Gone = []int32{408, 409, 425, 429}, []int32{410, 404} })},
		"501 is final": {"body-timestamp", `{"dead":[501,409]}`, func() Policy {
			p := BodyTimestampPolicy()
			p.Retry, p.Dead = []int32{404, 408, 425, 429}, []int32{501, 409}
			return p
		}()},
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
		`{"retry":[200]}`, `{"dead":[399]}`, `{"gone":[600]}`, `{"retry":[-1]}`, `{"retry":[422],"dead":[422]}`, `{"gone":[404,404]}`, `{"retry":["422"]}`, `{"retry":422}`,
		`{"dead":[` + strings.Repeat("500,", 50) + `500]}`,
	} {
		if p, err := ParsePolicy("standard-webhooks", text); err == nil {
			t.Errorf("%s gives %+v", text, p)
		}
	}
	for _, text := range []string{`{"attempts":50}`, `{"timeout":"1s"}`, `{"timeout":"1m"}`, `{"max_age":"720h"}`, `{"schedule":["168h"]}`, `{"retry":[400,599],"dead":[500],"gone":[403]}`} {
		if _, err := ParsePolicy("standard-webhooks", text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What an endpoint keeps is read back as what was asked for.
func FuzzParsePolicy(f *testing.F) {
	f.Add(`{"attempts":3,"timeout":"5s","max_age":"1h","schedule":["0s","1m"]}`)
	f.Add(`{"retry":[410],"dead":[404,501],"gone":[403]}`)
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
		standard := DefaultPolicy()
		named := func(now, before []int32) []int32 {
			return slices.DeleteFunc(slices.Clone(now), func(s int32) bool { return slices.Contains(before, s) })
		}
		written.Retry, written.Gone, written.Dead = named(p.Retry, standard.Retry), named(p.Gone, standard.Gone), named(p.Dead, nil)
		for _, s := range slices.Concat(standard.Retry, standard.Gone) {
			if !slices.Contains(slices.Concat(p.Retry, p.Gone, p.Dead), s) {
				t.Fatalf("%q: %d is in no list: %+v", text, s, p)
			}
		}
		for _, wait := range p.Schedule {
			written.Schedule = append(written.Schedule, wait.String())
		}
		again, err := ParsePolicy("standard-webhooks", written.Text())
		if diff := cmp.Diff(p, again, cmpopts.SortSlices(func(a, b int32) bool { return a < b }), cmpopts.EquateEmpty()); err != nil || diff != "" {
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

// 7-rules §5: all of the table is data per endpoint. What is not an answer from
// 400 to 599 keeps its place.
func TestPolicyMovesStatuses(t *testing.T) {
	p, err := ParsePolicy("standard-webhooks", `{"retry":[410,422],"dead":[404,501],"gone":[403,503]}`)
	if err != nil {
		t.Fatal(err)
	}
	for status, want := range map[int32][2]sentence{
		200: {delivered, delivered}, 204: {delivered, delivered}, 302: {again, again}, 100: {again, again}, 600: {again, again},
		400: {dead, dead}, 401: {dead, dead}, 408: {again, again}, 429: {again, again}, 500: {again, again},
		403: {dead, deadAndGone}, 404: {again, dead}, 410: {deadAndGone, again}, 422: {dead, again}, 501: {again, dead}, 503: {again, deadAndGone},
	} {
		if got := [2]sentence{DefaultPolicy().judge(status, Answered), p.judge(status, Answered)}; got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}
