package capture

import (
	"encoding/base64"
	"mime"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// FuzzFileToken: the only token that proves anything is the one that is made.
func FuzzFileToken(f *testing.F) {
	links := NewLinks("https://pawl.example", time.Minute, []byte("key"))
	a := ledger.Artifact{ID: pawl.NewID(1, 2), Operation: pawl.NewID(3, 4), Tenant: "t"}
	for _, seed := range []string{links.token(a, 1), links.token(a, 1<<36), "", strings.Repeat("0", 68), strings.Repeat("z", 68), strings.Repeat("+", 68)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		id, until, ok := links.parse(token)
		if !ok {
			return
		}
		a.ID = id
		if proven := links.proves(token, a); proven != (until >= 0 && token == links.token(a, until)) {
			t.Errorf("%q: proven %v", token, proven)
		}
	})
}

// FuzzFileHeaders: what a server says of a file is taken in the forms of the
// specifications alone, and its name fits into a folder.
func FuzzFileHeaders(f *testing.F) {
	for _, seed := range []string{
		"bytes 5-9/10", "bytes 5-9/*", "bytes */10", "bytes 0-0/1", `attachment; filename="a/b.mp4"`, `inline; filename*=UTF-8''%e2%82%ac`, "text/html; charset=utf-8",
		"sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:", "SHA-256=ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", `attachment; filename=".. "`,
	} {
		f.Add(seed)
	}
	whole := regexp.MustCompile(`^\s*bytes (\d+)-[^/]*/(\*|\d+)\s*$`)
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := contentRange(text)
		from, total := r.from, r.total
		if m := whole.FindStringSubmatch(text); ok && (m == nil || strconv.FormatInt(from, 10) != strings.TrimLeft(m[1], "0") && from != 0 || total >= 0 && total <= r.to || r.to < from) {
			t.Errorf("%q: %d of %d", text, from, total)
		}
		if name := filename(text); name != "" && (name != filepath.Base(name) || name == "." || name == ".." || strings.ContainsAny(name, "\x00\r\n/\\\"<>") || len(name) > maxFilename) {
			t.Errorf("%q: %q", text, name)
		}
		if kind := mediaType(text); kind != "" {
			if again, _, err := mime.ParseMediaType(kind); err != nil || strings.ContainsAny(kind, "\r\n") {
				t.Errorf("%q: %q %q %v", text, kind, again, err)
			}
		}
		sum := declared(http.Header{"Digest": {text}})
		if sum != nil && (len(sum) != 32 || !strings.Contains(text, base64.StdEncoding.EncodeToString(sum))) {
			t.Errorf("%q: %x", text, sum)
		}
	})
}
