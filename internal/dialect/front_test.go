package dialect

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlhq/pawl"
)

// Which model a name of a media-v2 caller means: a configured name first, else
// upstream and model, whose own name may hold slashes.
func TestResolve(t *testing.T) {
	s := Settings{Models: map[string]string{"kling": "studio/kling-2", "studio/old": "studio/new", "deep": "fal/fal-ai/flux"}}
	for name, want := range map[string][2]string{
		"kling": {"studio", "kling-2"}, "studio/old": {"studio", "new"}, "deep": {"fal", "fal-ai/flux"},
		"studio/kling-2": {"studio", "kling-2"}, "fal/fal-ai/flux": {"fal", "fal-ai/flux"}, "a/ b": {"a", " b"},
		"Kling": {}, "": {}, "/": {}, "/m": {}, "u/": {},
	} {
		upstream, model, err := s.resolve(name)
		if upstream != want[0] || model != want[1] || (err == nil) != (want != [2]string{}) {
			t.Errorf("%q: %q %q %v", name, upstream, model, err)
		}
	}
}

// What a bare client leaves out is filled in, and what a caller says stays
// (7-rules R44).
func TestFill(t *testing.T) {
	none, up, both := Settings{}, Settings{Upstream: "up"}, Settings{Upstream: "up", Model: "m"}
	empty := json.RawMessage(`{}`)
	full := json.RawMessage(`{"a":1}`)
	for _, c := range []struct {
		name     string
		settings Settings
		in, want taskRequest
		fault    string
	}{
		{"nothing configured, all said", none, taskRequest{"a", "b", full, "u"}, taskRequest{"a", "b", full, "u"}, ""},
		{"nothing configured, nothing said", none, taskRequest{}, taskRequest{}, "/upstream: is missing"},
		{"nothing configured, a model", none, taskRequest{Model: "b"}, taskRequest{}, "/upstream: is missing"},
		{"nothing configured, an upstream", none, taskRequest{Upstream: "a"}, taskRequest{}, "/model: is missing"},
		{"nothing configured, both in one", none, taskRequest{"", "a/b/c", full, ""}, taskRequest{"a", "b/c", full, ""}, ""},
		{"upstream configured, nothing said", up, taskRequest{}, taskRequest{}, "/model: is missing"},
		{"upstream configured, a model with a slash", up, taskRequest{"", "a/b", full, ""}, taskRequest{"up", "a/b", full, ""}, ""},
		{"both configured, nothing said", both, taskRequest{}, taskRequest{"up", "m", empty, ""}, ""},
		{"both configured, an address", both, taskRequest{CallbackURL: "u"}, taskRequest{"up", "m", empty, "u"}, ""},
		{"both configured, another model", both, taskRequest{"", "n", full, ""}, taskRequest{"up", "n", full, ""}, ""},
		{"both configured, another upstream", both, taskRequest{"a", "", full, ""}, taskRequest{}, "/model: is missing"},
		{"both configured, all said otherwise", both, taskRequest{"a", "b", nil, ""}, taskRequest{"a", "b", nil, ""}, ""},
	} {
		in := c.in
		err := c.settings.fill(&in)
		if c.fault != "" {
			if err == nil || err.Error() != c.fault {
				t.Errorf("%s: %v, want %s", c.name, err, c.fault)
			}
			continue
		}
		if err != nil || in.Upstream != c.want.Upstream || in.Model != c.want.Model || string(in.Input) != string(c.want.Input) || in.CallbackURL != c.want.CallbackURL {
			t.Errorf("%s: %+v %v", c.name, in, err)
		}
	}
}

// A request counts as anonymous only if it comes from this machine's own
// programs: not through a proxy, not from a page in a browser, and not by a name
// that a DNS server leads here.
func TestNameless(t *testing.T) {
	s := Settings{Anonymous: pawl.NewID(2, 7)}
	for _, c := range []struct {
		method, host string
		header       []string
		counts       bool
	}{
		{"POST", "127.0.0.1:8080", nil, true},
		{"POST", "127.3.2.1", nil, true},
		{"POST", "[::1]:8080", nil, true},
		{"POST", "localhost:8080", nil, true},
		{"GET", "LocalHost", nil, true},
		{"POST", "127.0.0.1:8080", []string{"Origin", "http://127.0.0.1:8080"}, true},
		{"POST", "127.0.0.1:8080", []string{"Sec-Fetch-Site", "same-origin"}, true},
		{"POST", "127.0.0.1:8080", []string{"Origin", "https://evil.example"}, false},
		{"POST", "127.0.0.1:8080", []string{"Origin", "null"}, false},
		{"POST", "127.0.0.1:8080", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"POST", "localhost.evil.example", nil, false},
		{"POST", "rebound.evil.example:8080", nil, false},
		{"GET", "rebound.evil.example:8080", nil, false},
		{"POST", "192.0.2.1:8080", nil, false},
		{"POST", "", nil, false},
		{"POST", "127.0.0.1:8080", []string{"X-Forwarded-For", ""}, false},
		{"POST", "127.0.0.1:8080", []string{"Forwarded", "for=192.0.2.1"}, false},
		{"POST", "127.0.0.1:8080", []string{"Via", "1.1 p"}, false},
		{"POST", "127.0.0.1:8080", []string{"X-Real-IP", "192.0.2.1"}, false},
		{"POST", "127.0.0.1:8080", []string{"X-Forwarded-Host", "pawl.example.com"}, false},
		{"POST", "127.0.0.1:8080", []string{"X-Forwarded-Proto", "https"}, false},
		{"POST", "127.0.0.1:8080", []string{"X-Forwarded-Port", "443"}, false},
		{"POST", "127.0.0.1:8080", []string{"X-Forwarded-Whatever", ""}, false},
		{"POST", "127.0.0.1:8080", []string{"X-Forwarder", "1"}, true},
	} {
		r := httptest.NewRequest(c.method, "/tasks", nil)
		r.Host = c.host
		if len(c.header) > 0 {
			r.Header.Set(c.header[0], c.header[1])
		}
		if got := !s.nameless(r).IsZero(); got != c.counts {
			t.Errorf("%s %q %v: %t", c.method, c.host, c.header, got)
		}
		if without := new(Settings); !without.nameless(r).IsZero() {
			t.Error("counts where nothing is configured")
		}
	}
}

// Which requests are for which front, and that nothing near them is.
func TestServes(t *testing.T) {
	f := New(nil, Settings{})
	for path, want := range map[string]*front{
		"/api/v1": f.media, "/api/v1/": f.media, "/api/v1/jobs/createTask": f.media, "/tasks": f.tasks, "/tasks/": f.tasks, "/tasks/x": f.tasks,
		"/api/v10": nil, "/api": nil, "/tasksx": nil, "/v1/tasks": nil, "/v1/operations": nil, "/": nil,
	} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if f.of(r) != want || f.Serves(r) != (want != nil) {
			t.Errorf("%s", path)
		}
	}
}

// A handler that panics is answered in the dialect's form.
func TestPanicked(t *testing.T) {
	f := New(nil, Settings{})
	for path, want := range map[string]string{
		"/api/v1/jobs/createTask": `{"code":500,"msg":"the request failed by a fault of ours","data":null,"request_id":""}`,
		"/tasks":                  `{"error":"the request failed by a fault of ours"}`,
	} {
		w := httptest.NewRecorder()
		f.Panicked(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != 500 || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}
