package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// loopback is a client that may reach servers of this test only.
func loopback(t *testing.T, o Options) *Client {
	t.Helper()
	c := NewClient(policy(t, "127.0.0.0/8", "::1/128"), o)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// hang reads the request, without which a server does not see its client leave,
// and never answers.
func hang(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func request(t *testing.T, method, link, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, link, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func wantRefused(t *testing.T, err error) *Refused {
	t.Helper()
	var refused *Refused
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want *Refused", err)
	}
	return refused
}

func wantError(t *testing.T, err error, cause Cause, maybeWritten bool) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Cause != cause || e.MaybeWritten != maybeWritten {
		t.Fatalf("got %#v, want cause %s, maybe written %v", err, cause, maybeWritten)
	}
}

// names resolves every name to the next of the given answers, the last for ever.
func names(answers ...[]string) func(context.Context, string) ([]netip.Addr, error) {
	var asked atomic.Int64
	return func(context.Context, string) ([]netip.Addr, error) {
		n := min(int(asked.Add(1)), len(answers))
		var out []netip.Addr
		for _, a := range answers[n-1] {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
}

func TestDo(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if enc := r.Header.Get("Accept-Encoding"); enc != "" {
			t.Errorf("Accept-Encoding %q sent", enc)
		}
		w.Header().Set("X-Host", r.Host)
		http.SetCookie(w, &http.Cookie{Name: "c", Value: "1"})
		if r.Header.Get("Cookie") != "" {
			t.Error("a cookie was kept")
		}
		w.WriteHeader(http.StatusCreated)
		w.Write(append([]byte("got "), body...))
	})
	c := loopback(t, Options{})
	for range 2 {
		r := request(t, "POST", s.URL+"/x", "hello")
		r.Host = "elsewhere.example.com"
		got, err := c.Do(t.Context(), r, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != 201 || string(got.Body) != "got hello" || got.Truncated || got.Cut != nil || got.Duration <= 0 {
			t.Errorf("got %+v", got)
		}
		if h := got.Header.Get("X-Host"); "http://"+h != s.URL {
			t.Errorf("host sent: %s", h)
		}
	}
}

func TestRedirectsAreAnswers(t *testing.T) {
	var other atomic.Int64
	target := serve(t, func(http.ResponseWriter, *http.Request) { other.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, status) })
		got, err := loopback(t, Options{}).Do(t.Context(), request(t, "POST", s.URL, "x"), Limits{})
		if err != nil || got.Status != status || got.Header.Get("Location") != target.URL {
			t.Errorf("%d: got %+v %v", status, got, err)
		}
	}
	if other.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestProxyFromEnvironmentIsIgnored(t *testing.T) {
	var proxied atomic.Int64
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { proxied.Add(1) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	c := NewClient(policy(t, "10.0.0.0/8"), Options{
		Resolve: names([]string{"10.0.0.9"}),
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			if address != "10.0.0.9:80" {
				t.Errorf("dialled %s", address)
			}
			return nil, errors.New("no network here")
		},
	})
	_, err := c.Do(t.Context(), request(t, "GET", "http://service.example.com/", ""), Limits{})
	wantError(t, err, CauseConnect, false)
	if c.plain.Proxy != nil || c.secure.Proxy != nil || proxied.Load() != 0 {
		t.Error("a proxy is used")
	}
}

func TestOversizeAnswerIsCut(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 100_001)) })
	for limit, truncated := range map[int64]bool{100_000: true, 100_001: false, 100_002: false, 1: true} {
		got, err := loopback(t, Options{}).Do(t.Context(), request(t, "GET", s.URL, ""), Limits{MaxResponse: limit})
		if err != nil || got.Truncated != truncated || got.Cut != nil || int64(len(got.Body)) != min(limit, 100_001) {
			t.Errorf("limit %d: %d bytes, truncated %v, %v %v", limit, len(got.Body), got.Truncated, got.Cut, err)
		}
	}
}

func TestOversizeHeaderFails(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Long", strings.Repeat("a", 64<<10)) })
	_, err := loopback(t, Options{}).Do(t.Context(), request(t, "POST", s.URL, "x"), Limits{})
	wantError(t, err, CauseProtocol, true)
}

func TestNothingIsDecompressed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write([]byte("not touched"))
	})
	got, err := loopback(t, Options{}).Do(t.Context(), request(t, "GET", s.URL, ""), Limits{})
	if err != nil || string(got.Body) != "not touched" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestStreamIsBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("0123456789")) })
	got, err := loopback(t, Options{}).Open(t.Context(), request(t, "GET", s.URL, ""), Limits{MaxResponse: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	b, err := io.ReadAll(got)
	if string(b) != "0123" || !errors.Is(err, ErrTooLarge) || got.ContentLength != 10 {
		t.Errorf("%q %v, length %d", b, err, got.ContentLength)
	}
}

func TestUnsolicitedBytesTouchNoOtherRequest(t *testing.T) {
	l := listen(t)
	go answerEach(l, func(n int, _ *http.Request) string {
		if n == 1 {
			return "HTTP/1.1 204 No Content\r\n\r\noops"
		}
		return "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"
	})
	c := loopback(t, Options{})
	for _, want := range []int{204, 200} {
		got, err := c.Do(t.Context(), request(t, "POST", "http://"+l.Addr().String(), "x"), Limits{})
		if err != nil || got.Status != want {
			t.Fatalf("got %+v %v, want %d", got, err, want)
		}
		// A request that is sent at the same moment may still meet the connection, and
		// is then one whose outcome is unknown, as after any cut answer.
		time.Sleep(50 * time.Millisecond)
	}
}

func TestErrorsHoldNoLink(t *testing.T) {
	closed := listen(t)
	closed.Close()
	slow := serve(t, hang)
	dropping := serve(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	c := loopback(t, Options{Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.8.7:53", IsNotFound: true}
	}})
	for _, base := range []string{"http://" + closed.Addr().String(), slow.URL, dropping.URL, "http://missing.example.com", "https://" + slow.Listener.Addr().String()} {
		_, err := c.Do(t.Context(), request(t, "POST", base+"/canary?canary=1", "canary"), Limits{Timeout: 200_000_000})
		if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "10.9.8.7") {
			t.Errorf("%s: %v", base, err)
		}
		if u := errors.Unwrap(err); u != nil && u != context.DeadlineExceeded {
			t.Errorf("%s: wraps %T", base, u)
		}
	}
}
