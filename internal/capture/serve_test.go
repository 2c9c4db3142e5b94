package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// shop gives out what a rig has captured.
func (g *rig) shop(ttl time.Duration) (Links, http.Handler) {
	links := NewLinks("https://pawl.example/", ttl, []byte("ledger key"))
	return links, Server{Links: links, Files: g.options.Files, Reader: g.driver, Log: slog.New(slog.NewTextHandler(g.log, nil))}
}

func ask(h http.Handler, method, url string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A file is given to whoever has a link of ours, as something to be saved and
// never to be run, whole or in ranges.
func TestFileByLink(t *testing.T) {
	content := "<script>alert(1)</script>"
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Disposition", `attachment; filename="../../bericht für \"März\".html"`)
		_, _ = w.Write([]byte(content))
	})
	g := newRig(t, allowed)
	a := g.capture(url, 1)
	links, shop := g.shop(15 * time.Minute)
	link, until := links.URL(a, time.Now())
	if left := time.Until(until); left < 14*time.Minute || left > 15*time.Minute || !strings.HasPrefix(link, "https://pawl.example/files/") {
		t.Fatalf("%s until %v", link, until)
	}
	got := ask(shop, http.MethodGet, link)
	sum := sha256.Sum256([]byte(content))
	for name, want := range map[string]string{
		"Content-Type": "text/html", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Length": "25", "Accept-Ranges": "bytes",
		"Content-Security-Policy": "default-src 'none'; sandbox", "ETag": `"` + hex.EncodeToString(sum[:]) + `"`, "Referrer-Policy": "no-referrer",
		"Content-Disposition": "attachment; filename*=utf-8''bericht%20f%C3%BCr%20_M%C3%A4rz_.html",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	if text := body(t, got); got.StatusCode != 200 || text != content {
		t.Errorf("%d %q", got.StatusCode, text)
	}
	if part := ask(shop, http.MethodGet, link, "Range", "bytes=8-12"); part.StatusCode != 206 || body(t, part) != "alert" {
		t.Errorf("range: %d", part.StatusCode)
	}
	if part := ask(shop, http.MethodGet, link, "Range", "bytes=8-12", "If-Range", `"other"`); part.StatusCode != 200 {
		t.Errorf("range of another file: %d", part.StatusCode)
	}
	if head := ask(shop, http.MethodHead, link); head.StatusCode != 200 || body(t, head) != "" || head.ContentLength != 25 {
		t.Errorf("HEAD: %d, %d bytes", head.StatusCode, head.ContentLength)
	}
	if post := ask(shop, http.MethodPost, link); post.StatusCode != 405 || post.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", post.StatusCode)
	}
}

// A link that has ended is 410, as is one whose file is gone; a link that we did
// not make is 404, whatever it names (1-product G2).
func TestLinksEnd(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("abc")) })
	g := newRig(t, allowed)
	a, other := g.capture(url+"/a", 1), g.capture(url+"/b", 1)
	links, shop := g.shop(time.Minute)
	status := func(link string) int { return ask(shop, http.MethodGet, link).StatusCode }
	good, until := links.URL(a, time.Now())
	if got := status(good); got != 200 {
		t.Fatalf("%d", got)
	}
	ended, _ := links.URL(a, time.Now().Add(-time.Minute))
	if got := status(ended); got != 410 {
		t.Errorf("ended: %d", got)
	}
	for i := len("https://pawl.example/files/"); i < len(good); i++ {
		for _, c := range "0a" {
			if wrong := good[:i] + string(c) + good[i+1:]; wrong != good && status(wrong) != 404 {
				t.Errorf("byte %d changed: %d", i, status(wrong))
			}
		}
	}
	mine, yours := a, a
	mine.Operation, yours.Tenant = other.Operation, "other"
	for what, forged := range map[string]string{
		"another operation's": links.base + FilesPath + links.token(mine, until.Unix()),
		"another tenant's":    links.base + FilesPath + links.token(yours, until.Unix()),
		"another ledger's": func() string {
			l, _ := NewLinks("https://pawl.example", time.Minute, []byte("other")).URL(a, time.Now())
			return l
		}(),
		"nothing":               "https://pawl.example/files/",
		"longer":                good + "0",
		"a folder":              "https://pawl.example/files/../" + a.Key(),
		"an unknown artifact's": func() string { l, _ := links.URL(ledger.Artifact{ID: pawl.NewID(1, 1)}, time.Now()); return l }(),
	} {
		if got := status(forged); got != 404 && what != "an unknown artifact's" || got == 200 {
			t.Errorf("%s: %d", what, got)
		}
	}
	g.options.Files.remove(t.Context(), a.Key())
	if got := status(good); got != 410 {
		t.Errorf("a file that is gone: %d", got)
	}
	if text := fmt.Sprint(links) + fmt.Sprintf("%+v %#v", links, shop) + g.log.String(); strings.Contains(text, strings.TrimPrefix(good, "https://pawl.example/files/")) || strings.Contains(text, "ledger key") {
		t.Errorf("printed: %s", text)
	}
}

// A result that is held again, or never was released, is given to nobody, not
// even by a good link.
func TestHeldFileIsGivenToNobody(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("abc")) })
	g := newRig(t, allowed)
	g.hold = true
	a := g.capture(url, 1)
	if a.State != pawl.ArtifactCaptured {
		t.Fatal(a.State)
	}
	links, shop := g.shop(time.Minute)
	link, _ := links.URL(a, time.Now())
	if got := ask(shop, http.MethodGet, link).StatusCode; got != 410 {
		t.Errorf("%d", got)
	}
	g.do(ledger.Release{Header: head(), Operation: a.Operation})
	if got := ask(shop, http.MethodGet, link).StatusCode; got != 200 {
		t.Errorf("released: %d", got)
	}
}

// The type is the server's word, or what the beginning looks like where it has
// none; the name is the server's, else made of the id and the type.
func TestTypesAndNames(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + text(600)
	for _, tc := range []struct{ kind, disposition, content, wantKind, wantName string }{
		{"video/mp4", "", "x", "video/mp4", "ID.mp4"},
		{"", "", png, "image/png", "ID.png"},
		{"application/octet-stream", "", png, "image/png", "ID.png"},
		{"no type", "", "abc", "text/plain; charset=utf-8", "ID.txt"},
		{"model/gltf-binary", "", "x", "model/gltf-binary", "ID"},
		{"Text/HTML; Charset=UTF-8", `inline; filename=a.html`, "x", "text/html; charset=UTF-8", "a.html"},
		{"video/mp4", `attachment; filename="C:\\evil\\..\\x.mp4"`, "x", "video/mp4", "x.mp4"},
		{"video/mp4", `attachment; filename=".."`, "x", "video/mp4", "ID.mp4"},
		{"video/mp4", `attachment; filename="` + text(300) + `"`, "x", "video/mp4", "ID.mp4"},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{tc.kind}
			w.Header().Set("Content-Disposition", tc.disposition)
			_, _ = w.Write([]byte(tc.content))
		})
		a := newRig(t, allowed).capture(url, 1)
		want := strings.Replace(tc.wantName, "ID", a.ID.Text(pawl.PrefixArtifact), 1)
		if a.ContentType != tc.wantKind || NameOf(a) != want {
			t.Errorf("%q %q: %q %q", tc.kind, tc.disposition, a.ContentType, NameOf(a))
		}
	}
}
