package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// film serves one captured file: what it does with each request for the file is
// the test's.
func film(t *testing.T, give func(w http.ResponseWriter, r *http.Request)) string {
	waited := false
	return fake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/files/x" {
			if r.Header.Get("Authorization") != "" {
				t.Error("the key went to the file's server")
			}
			give(w, r)
			return
		}
		if !waited {
			waited = true
			reply(w, http.StatusConflict, `{"title":"no","reason":"not_captured","detail":"not saved yet"}`)
			return
		}
		// The SHA-256 of "abc" is the first example of FIPS 180-2.
		reply(w, http.StatusFound, `{"artifact":{"id":"art_1","size":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},"url":"http://`+r.Host+`/files/x"}`)
	})
}

// A file is whole and the right one, or it does not get its name.
func TestArtifactGet(t *testing.T) {
	t.Chdir(t.TempDir())
	want := func(name, content string) {
		t.Helper()
		text, err := os.ReadFile(name)
		if content == "" && !os.IsNotExist(err) || string(text) != content {
			t.Errorf("%s holds %q, %v", name, text, err)
		}
	}
	calls := 0
	cut := film(t, func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Content-Length", "3")
			_, _ = io.WriteString(w, "ab")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		if r.Header.Get("Range") != "bytes=2-" || !strings.Contains(r.Header.Get("If-Range"), "ba7816bf") {
			t.Errorf("Range %q, If-Range %q", r.Header.Get("Range"), r.Header.Get("If-Range"))
		}
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, "c")
	})
	newWorld(t, cut).run("artifact", "get", "art_1", "--out", "a").want(t, ExitFailed, "", "not_captured")
	newWorld(t, cut).run("artifact", "get", "art_1", "--out", "a").want(t, ExitDone, "a: 3 bytes", "")
	want("a", "abc")
	newWorld(t, cut).run("artifact", "get", "art_1", "--out", "a").want(t, ExitFailed, "", "exists")

	other := film(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abd") })
	newWorld(t, other).run("artifact", "get", "art_1", "--out", "b", "--wait", "10s").want(t, ExitFailed, "", "what came is not the file")
	gone := film(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	r := newWorld(t, gone).run("artifact", "get", "art_1", "--out", "b", "--wait", "10s")
	r.want(t, ExitFailed, "", "status 410")
	if all := fmt.Sprint(r); strings.Contains(all, "/files/") {
		t.Errorf("the link is told: %s", all)
	}
	want("b", "")
	want("b.part", "")
	fine := film(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "abc") })
	newWorld(t, fine).run("artifact", "get", "art_1", "--out", "-", "--wait", "10s").want(t, ExitDone, "abc", "")
}
