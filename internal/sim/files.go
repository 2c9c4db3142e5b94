package sim

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// linkLife is how long the link to a result works. Real time.
const linkLife = time.Hour

// fileLines is how many lines a result file has.
const fileLines = 2000

// link is a signed link to the task's result file: whoever has it has the file,
// until it ends.
func (t *task) link(until time.Time) string {
	end := strconv.FormatInt(until.Unix(), 10)
	return t.base + "/artifacts/" + t.id + "?Expires=" + end + "&Signature=" + url.QueryEscape(t.sign(end))
}

// sign makes the signature of a link; a simulator's guard nothing.
func (t *task) sign(end string) string { return derive(uint64(t.script.N), t.id+" "+end) }

// file is what the task has made: a text that names it on each of its lines.
func (t *task) file() string {
	var b strings.Builder
	for n := range fileLines {
		fmt.Fprintf(&b, "result of %s, line %d\n", t.id, n+1)
	}
	return b.String()
}

// artifact serves the result file of a succeeded task to whoever has a link that
// has not ended. It has an ETag and takes ranges; the first transfer of every
// third task's file is cut in the middle.
func (s *Server) artifact(w http.ResponseWriter, r *http.Request) {
	for _, d := range Dialects() {
		t, ok := s.book.find(d, pathTask(r))
		if !ok || t.current(time.Now()).result == "" {
			continue
		}
		end, err := strconv.ParseInt(r.URL.Query().Get("Expires"), 10, 64)
		if err != nil || t.script.Result == LinkGone || r.URL.Query().Get("Signature") != t.sign(strconv.FormatInt(end, 10)) || time.Now().Unix() >= end {
			http.Error(w, "AccessDenied", http.StatusForbidden)
			return
		}
		text := t.file()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("ETag", `"`+t.id+`"`)
		w.Header().Set("Content-Disposition", `attachment; filename="result.txt"`)
		if t.fetched() == 1 && t.script.N%3 == 2 {
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			_, _ = w.Write([]byte(text[:len(text)/2]))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
		return
	}
	http.NotFound(w, r)
}

// fetched counts a transfer of the file.
func (t *task) fetched() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fetches++
	return t.fetches
}
