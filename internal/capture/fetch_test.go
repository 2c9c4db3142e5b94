package capture

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
)

// text is so many bytes that differ from place to place.
func text(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:n]
}

// partly answers with a file, of which it sends so many bytes before it cuts the
// connection; ranges are honoured.
func partly(w http.ResponseWriter, r *http.Request, tag, content string, sends int) {
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "video/mp4")
	http.ServeContent(&cutting{ResponseWriter: w, left: sends}, r, "", time.Time{}, strings.NewReader(content))
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(b []byte) (int, error) {
	if len(b) > c.left {
		_, _ = c.ResponseWriter.Write(b[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	return c.ResponseWriter.Write(b)
}

// Half a file is never stored: what the server declared is what must come
// (O-077).
func TestO077HalfAFileIsNone(t *testing.T) {
	content := text(80_000)
	t.Run("cut and gone on from", func(t *testing.T) {
		var ranges []string
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			ranges = append(ranges, r.Header.Get("Range")+" "+r.Header.Get("If-Range"))
			partly(w, r, `"v1"`, content, 30_000)
		})
		g := newRig(t, allowed)
		g.whole(g.capture(url, 1), content)
		want := `[  bytes=30000- "v1" bytes=60000- "v1"]`
		if got := fmt.Sprint(ranges); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	t.Run("for ever", func(t *testing.T) {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "8000000")
			_, _ = w.Write([]byte(text(3000)))
			panic(http.ErrAbortHandler)
		})
		g := newRig(t, allowed)
		a := g.capture(url, 2)
		if a.State != pawl.ArtifactPending || !strings.Contains(a.LastError, "3000 of 8000000 bytes") || a.Attempts != 2 {
			t.Errorf("%s after %d tries: %s", a.State, a.Attempts, a.LastError)
		}
	})
	sum, md := sha256.Sum256([]byte(content)), md5.Sum([]byte(content))
	for name, value := range map[string]string{
		"Repr-Digest": "sha-512=:AAAA:, sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":",
		"Digest":      "SHA-256=" + base64.StdEncoding.EncodeToString(sum[:]),
		"Content-MD5": base64.StdEncoding.EncodeToString(md[:]),
	} {
		t.Run(name, func(t *testing.T) {
			sent := content[1:]
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(name, value)
				_, _ = w.Write([]byte(sent))
				sent = content
			})
			g := newRig(t, allowed)
			op := g.succeed(url)
			g.turn()
			a := g.artifacts(op.ID)[0]
			if a.State != pawl.ArtifactPending || !strings.Contains(a.LastError, "checksum") {
				t.Fatalf("%s: %s", a.State, a.LastError)
			}
			time.Sleep(time.Until(a.DueAt.Std()))
			g.turn()
			g.whole(g.artifacts(op.ID)[0], content)
		})
	}
	t.Run("a part that was not asked for", func(t *testing.T) {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-9/80000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte(content[:10]))
		})
		g := newRig(t, allowed)
		if a := g.capture(url, 1); a.State != pawl.ArtifactPending || !strings.Contains(a.LastError, "part of something else") {
			t.Errorf("%s: %s", a.State, a.LastError)
		}
	})
}

// A whole file that is not what its server declares brought nothing: the next
// try does not come at once.
func TestMismatchBringsNothing(t *testing.T) {
	for name, head := range map[string][2]string{
		"checksum": {"Content-MD5", base64.StdEncoding.EncodeToString(make([]byte, md5.Size))},
		"encoding": {"Content-Encoding", "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set(head[0], head[1])
				w.Header().Set("ETag", `"v"`)
				_, _ = w.Write([]byte("no such thing"))
			})
			a := newRig(t, allowed).capture(url, 1)
			if a.State != pawl.ArtifactPending || !strings.Contains(a.LastError, name) || a.Tries != 1 || a.Mismatches != 1 {
				t.Errorf("%s, %d tries, %d mismatches: %s", a.State, a.Tries, a.Mismatches, a.LastError)
			}
		})
	}
}

// A file that changed meanwhile begins anew, whether the server says so with 200
// or with another tag, and one that cannot be told apart from another as well.
func TestChangedFileBeginsAnew(t *testing.T) {
	old, now := text(50_000), strings.ToUpper("x"+text(60_000))
	for name, answer := range map[string]http.HandlerFunc{
		"200": func(w http.ResponseWriter, r *http.Request) { partly(w, r, `"v2"`, now, len(now)) },
		"206 with another tag": func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-Range")
			partly(w, r, `"v2"`, now, len(now))
		},
		"416": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			partly(w, r, `"v2"`, now, len(now))
		},
		"no validator": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				t.Error("a range without a validator")
			}
			_, _ = w.Write([]byte(now))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == 1 {
					tag := `"v1"`
					if name == "no validator" {
						tag = ""
					}
					partly(w, r, tag, old, 20_000)
				}
				answer(w, r)
			})
			g := newRig(t, allowed)
			g.whole(g.capture(url, 3), now)
		})
	}
}

// answering sends one answer and, where cut is true, breaks the connection.
func answering(w http.ResponseWriter, status int, header map[string]string, body string, cut bool) {
	for name, value := range header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
	_ = http.NewResponseController(w).Flush()
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// A part goes on a file only where the validator proves that it is of the same
// one: two files are never put together (O-077).
func TestO077PartsOfTwoFiles(t *testing.T) {
	const one, two = "Mon, 30 Nov 2026 10:00:00 GMT", "Mon, 30 Nov 2026 13:00:00 GMT"
	first, second := strings.Repeat("A", 100), strings.Repeat("B", 100)
	for name, tc := range map[string]struct {
		first, part map[string]string
	}{
		"another tag":            {map[string]string{"ETag": `"a"`}, map[string]string{"ETag": `"b"`}},
		"no validator":           {map[string]string{"ETag": `"a"`}, nil},
		"another modification":   {map[string]string{"Last-Modified": one}, map[string]string{"Last-Modified": two}},
		"no modification":        {map[string]string{"Last-Modified": one}, nil},
		"a modification, no tag": {map[string]string{"ETag": `"a"`, "Last-Modified": one}, map[string]string{"Last-Modified": one}},
		// RFC 9110 §8.8.2.2: only a date that is at least a second before the answer's.
		"a modification just now":  {map[string]string{"Date": one, "Last-Modified": one}, map[string]string{"Date": two, "Last-Modified": one}},
		"a modification, no clock": {map[string]string{"Date": "", "Last-Modified": one}, map[string]string{"Date": two, "Last-Modified": one}},
		"a weak tag":               {map[string]string{"ETag": `"a"`}, map[string]string{"ETag": `W/"a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch calls++; {
				case r.Header.Get("Range") != "":
					w.Header().Set("Content-Range", "bytes 50-99/100")
					answering(w, http.StatusPartialContent, tc.part, second[50:], false)
				case calls == 1:
					w.Header().Set("Content-Length", "100")
					answering(w, http.StatusOK, tc.first, first[:50], true)
				default:
					answering(w, http.StatusOK, tc.part, second, false)
				}
			})
			g := newRig(t, allowed)
			g.whole(g.capture(url, 2), second)
		})
	}
	t.Run("a part longer than it says", func(t *testing.T) {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"a"`)
			if r.Header.Get("Range") == "" {
				answering(w, http.StatusOK, nil, first[:50], true)
			}
			w.Header().Set("Content-Range", "bytes 50-59/60")
			answering(w, http.StatusPartialContent, nil, first[:40], false)
		})
		g := newRig(t, allowed)
		if a := g.capture(url, 1); a.State != pawl.ArtifactPending || a.LastError != "a part that is longer than it says" {
			t.Errorf("%s: %s", a.State, a.LastError)
		}
	})
}

// Parts of a file whose length the server does not know are asked for until the
// server says that there are no more, or how long the file is (O-077, O-080).
func TestO077UnknownTotal(t *testing.T) {
	content := text(75)
	tag := map[string]string{"ETag": `"a"`}
	// Whole says how the server answers once all is sent.
	for name, whole := range map[string]func(w http.ResponseWriter){
		"416 with the length": func(w http.ResponseWriter) {
			answering(w, http.StatusRequestedRangeNotSatisfiable, map[string]string{"Content-Range": "bytes */75"}, "", false)
		},
		"416":     func(w http.ResponseWriter) { answering(w, http.StatusRequestedRangeNotSatisfiable, tag, "", false) },
		"a total": nil,
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				var from int
				_, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
				switch {
				case err != nil:
					answering(w, http.StatusOK, tag, content[:50], true)
				case from == 75:
					whole(w)
				default:
					to, total := min(from+10, 75), "*"
					if whole == nil && to == 75 {
						total = "75"
					}
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%s", from, to-1, total))
					answering(w, http.StatusPartialContent, tag, content[from:to], false)
				}
			})
			g := newRig(t, allowed)
			g.whole(g.capture(url, 1), content)
		})
	}
	for name, header := range map[string]map[string]string{
		"416 of a shorter file": {"Content-Range": "bytes */40"},
		"416 of another file":   {"ETag": `"b"`},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch calls++; {
				case calls == 1:
					answering(w, http.StatusOK, tag, content[:50], true)
				case r.Header.Get("Range") != "":
					answering(w, http.StatusRequestedRangeNotSatisfiable, header, "", false)
				default:
					answering(w, http.StatusOK, nil, content[:40], false)
				}
			})
			g := newRig(t, allowed)
			g.whole(g.capture(url, 2), content[:40])
		})
	}
}

// Without a length the end of the transfer encoding is the end of the file; one
// that never ends is cut at the cap; what is encoded is stored decoded (O-080).
func TestO080NoLength(t *testing.T) {
	content := text(5 << 20)
	chunked := func(w http.ResponseWriter, content string) {
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write([]byte(content))
	}
	t.Run("5 MB", func(t *testing.T) {
		g := newRig(t, allowed)
		g.whole(g.capture(serve(t, func(w http.ResponseWriter, _ *http.Request) { chunked(w, content) }), 1), content)
	})
	t.Run("endless", func(t *testing.T) {
		g := newRig(t, allowed)
		g.options.MaxSize = 1 << 20
		g.restart()
		a := g.capture(serve(t, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				chunked(w, content)
			}
		}), 1)
		if a.State != pawl.ArtifactFailed || a.LastError != "the file is larger than 1048576 bytes" {
			t.Errorf("%s: %s", a.State, a.LastError)
		}
		if g.operation(a.Operation).State != pawl.Succeeded {
			t.Error("the operation did not stay succeeded")
		}
	})
	t.Run("said to be too large", func(t *testing.T) {
		g := newRig(t, allowed)
		g.options.MaxSize = 1 << 20
		g.restart()
		a := g.capture(serve(t, func(w http.ResponseWriter, r *http.Request) { partly(w, r, `"a"`, content, len(content)) }), 1)
		if a.State != pawl.ArtifactFailed || a.LastError != "the file has 5242880 bytes, and 1048576 are the most" {
			t.Errorf("%s: %s", a.State, a.LastError)
		}
	})
	t.Run("cut in a chunk", func(t *testing.T) {
		g := newRig(t, allowed)
		a := g.capture(serve(t, func(w http.ResponseWriter, _ *http.Request) {
			chunked(w, content[:1000])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}), 1)
		if a.State != pawl.ArtifactPending || !strings.Contains(a.LastError, "1000 bytes of an unknown number") {
			t.Errorf("%s: %s", a.State, a.LastError)
		}
	})
	t.Run("gzip", func(t *testing.T) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(content))
		_ = z.Close()
		g := newRig(t, allowed)
		a := g.capture(serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(packed.Bytes())
		}), 1)
		g.whole(a, content)
		if a.ContentType != "application/json" {
			t.Errorf("%s", a.ContentType)
		}
	})
	t.Run("not gzip", func(t *testing.T) {
		g := newRig(t, allowed)
		a := g.capture(serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("plain"))
		}), 1)
		if a.State != pawl.ArtifactPending || !strings.Contains(a.LastError, "encoding") {
			t.Errorf("%s: %s", a.State, a.LastError)
		}
	})
}

// Redirects are followed five times, each through the guard, without userinfo
// and never from https to http (7-rules R31).
func TestRedirects(t *testing.T) {
	var hops int
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n := len(r.URL.Path) - 1; n < hops {
			if r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Header.Get("Referer") != "" {
				t.Error("a credential, or where we came from")
			}
			w.Header().Set("Set-Cookie", "a=b")
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("abc"))
	})
	for n, want := range map[int]pawl.ArtifactState{0: pawl.ArtifactCaptured, 5: pawl.ArtifactCaptured, 6: pawl.ArtifactFailed} {
		hops = n
		if a := newRig(t, allowed).capture(url+"/", 1); a.State != want {
			t.Errorf("%d redirects: %s: %s", n, a.State, a.LastError)
		}
	}
	leads := func(to string) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	}
	for to, why := range map[string]string{
		"http://10.0.0.1/x":             "plain http goes only to ranges of egress.allow",
		"https://10.0.0.1/x":            "this destination is not permitted",
		"https://169.254.169.254/x":     "this destination is not permitted",
		"https://[::ffff:10.0.0.1]/x":   "this destination is not permitted",
		"https://user:SEKRIT@h.example": "user",
		"ftp://h.example/x":             "http",
		"file:///etc/passwd":            "http",
	} {
		a := newRig(t, allowed).capture(leads(to), 1)
		if a.State != pawl.ArtifactFailed || !strings.HasPrefix(a.LastError, "refused: ") || !strings.Contains(a.LastError, why) || strings.Contains(a.LastError, "SEKRIT") {
			t.Errorf("%s: %s: %q", to, a.State, a.LastError)
		}
	}
}

// A result that names a private address reaches nothing.
func TestPrivateAddressIsRefused(t *testing.T) {
	called := false
	url := serve(t, func(http.ResponseWriter, *http.Request) { called = true })
	for _, link := range []string{url + "/x", strings.Replace(url, "http:", "https:", 1), "https://10.0.0.1/x", "https://localhost/x", "https://u:p@h.example/x", "http://0x7f.1/", "https://[::1"} {
		a := newRig(t).capture(link, 1)
		if a.State != pawl.ArtifactFailed || !strings.HasPrefix(a.LastError, "refused: ") {
			t.Errorf("%s: %s: %q", link, a.State, a.LastError)
		}
	}
	if called {
		t.Error("the private address was reached")
	}
}

// A redirect from https to http is not followed, wherever it leads.
func TestRedirectKeepsTLS(t *testing.T) {
	plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the plain address was reached") })
	s := httptest.NewTLSServer(http.RedirectHandler(plain, http.StatusFound))
	t.Cleanup(s.Close)
	g := newRig(t, allowed)
	g.trust(s)
	a := g.capture(s.URL, 1)
	if a.State != pawl.ArtifactFailed || a.LastError != "refused: a redirect leads from https to http" {
		t.Errorf("%s: %s", a.State, a.LastError)
	}
}

// Links are in no log, row or metric; what failed is told in other words
// (O-079).
func TestO079LinksAreNotTold(t *testing.T) {
	status := http.StatusForbidden
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="https://SEKRIT4/x"`)
		w.WriteHeader(status)
	})
	query := "/SEKRIT0.mp4?X-Amz-Signature=SEKRIT1&token=SEKRIT2#frag=SEKRIT3"
	for _, link := range []string{url + query, "https://user:SEKRIT5@10.0.0.1" + query, "http://127.0.0.1:1" + query, "http://127.0.0.1:99999" + query, url + "/\\u0000SEKRIT6%zz"} {
		for _, status = range []int{200, 302, 403, 503} {
			g := newRig(t, allowed)
			a := g.capture(link, 1)
			op := g.operation(a.Operation)
			facts, err := g.driver.OperationFacts(t.Context(), onePage)
			if err != nil {
				t.Fatal(err)
			}
			if all := fmt.Sprintf("%+v %+v %+v %s %v", a, op, facts, g.log, g.options.Files); strings.Contains(all, "SEKRIT") {
				t.Errorf("%s %d: %s", link, status, all)
			}
		}
	}
}

// A capture that was stopped in the middle is gone on from in the next life, and
// the lease of the former one does not hold it up.
func TestKilledCaptureGoesOn(t *testing.T) {
	content := text(1 << 20)
	var ranges []string
	half := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		if len(ranges) > 1 {
			partly(w, r, `"v"`, content, len(content))
			return
		}
		w.Header().Set("ETag", `"v"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write([]byte(content[:600_000]))
		_ = http.NewResponseController(w).Flush()
		close(half)
		<-r.Context().Done()
	})
	g := newRig(t, allowed)
	op := g.succeed(url)
	jobs, err := g.c.Claim(t.Context(), time.Now())
	if err != nil || len(jobs) != 1 {
		t.Fatal(len(jobs), err)
	}
	// The process that dies records nothing: its store is gone first.
	options := g.options
	options.Store = deadStore{}
	dying, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); dying.Do(ctx, jobs[0]) }()
	<-half
	path := g.c.spool.path(jobs[0].Artifact())
	for begun := time.Now(); time.Since(begun) < 5*time.Second; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(path); err == nil && info.Size() == 600_000 {
			break
		}
	}
	kill()
	<-done
	g.restart()
	if n := g.turn(); n != 0 {
		t.Fatalf("%d claims under the lease of the former life", n)
	}
	if err := g.c.FreeLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.turn()
	g.whole(g.artifacts(op.ID)[0], content)
	if got := strings.Join(ranges, ","); got != ",bytes=600000-" {
		t.Errorf("ranges %s", got)
	}
	left, err := os.ReadDir(g.options.Spool)
	if err != nil || len(left) != 0 {
		t.Errorf("%d files are left in the spool, %v", len(left), err)
	}
}
