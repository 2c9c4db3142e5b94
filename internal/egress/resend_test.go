package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// answerEach reads whole requests from every connection and writes what answer
// gives for the n-th; an empty answer closes the connection.
func answerEach(l net.Listener, answer func(n int, r *http.Request) string) {
	var n atomic.Int64
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					return
				}
				text := answer(int(n.Add(1)), r)
				if text == "" {
					return
				}
				io.WriteString(conn, text)
			}
		}()
	}
}

// killer answers the first request and closes the kept connection under each
// later one, after reading it whole. It counts the POSTs after the first.
type killer struct {
	mu    sync.Mutex
	posts []string // idempotency keys as they came
}

func (k *killer) answer(n int, r *http.Request) string {
	if n == 1 {
		return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.posts = append(k.posts, r.Header.Get("Idempotency-Key")+r.Header.Get("X-Idempotency-Key"))
	if len(k.posts) > 1 {
		return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	}
	return ""
}

// Field case O-008. The control shows that the transport does resend without
// the option, so that the test would notice if the server were at fault.
func TestCreatesAreSentOnce(t *testing.T) {
	for _, tc := range []struct {
		header, body string
		noResend     bool
		posts        int
	}{
		{"Idempotency-Key", "create", false, 2},
		{"Idempotency-Key", "create", true, 1},
		{"X-Idempotency-Key", "create", true, 1},
		{"Idempotency-Key", "", false, 2},
		{"Idempotency-Key", "", true, 1},
		{"X-Idempotency-Key", "", true, 1},
	} {
		t.Run(fmt.Sprintf("%s %q %v", tc.header, tc.body, tc.noResend), func(t *testing.T) {
			l, k := listen(t), &killer{}
			go answerEach(l, k.answer)
			c := loopback(t, Options{})
			link := "http://" + l.Addr().String() + "/create"
			if _, err := c.Do(t.Context(), request(t, "POST", link, "warm"), Limits{}); err != nil {
				t.Fatal(err)
			}
			r := request(t, "POST", link, tc.body)
			r.Header.Set(tc.header, "k1")
			got, err := c.Do(t.Context(), r, Limits{NoResend: tc.noResend})
			k.mu.Lock()
			defer k.mu.Unlock()
			if len(k.posts) != tc.posts || k.posts[0] != "k1" {
				t.Fatalf("the server saw %q, want %d", k.posts, tc.posts)
			}
			if !tc.noResend {
				if err != nil || got.Status != 200 {
					t.Errorf("control: %+v %v", got, err)
				}
				return
			}
			wantError(t, err, CauseClosed, true)
			if r.Header.Get(tc.header) != "k1" {
				t.Error("the caller's request was changed")
			}
		})
	}
}

// A connection that the server has closed while it was idle: whatever the
// transport does, the server sees one POST, and "nothing written" is claimed
// only if it saw none.
func TestIdleConnectionClosedBeforeTheSend(t *testing.T) {
	for range 30 {
		l := listen(t)
		var posts atomic.Int64
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err == nil {
					io.Copy(io.Discard, r.Body)
					if r.URL.Path == "/create" {
						posts.Add(1)
					}
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
				conn.Close() // right behind the answer, without saying so
			}
		}()
		c := loopback(t, Options{})
		if _, err := c.Do(t.Context(), request(t, "POST", "http://"+l.Addr().String()+"/warm", "x"), Limits{}); err != nil {
			t.Fatal(err)
		}
		r := request(t, "POST", "http://"+l.Addr().String()+"/create", "x")
		r.Header.Set("Idempotency-Key", "k1")
		_, err := c.Do(t.Context(), r, Limits{NoResend: true})
		e, _ := err.(*Error)
		switch n := posts.Load(); {
		case err == nil && n != 1:
			t.Fatalf("answered, but %d POSTs", n)
		case err != nil && n > 1:
			t.Fatalf("%v, but %d POSTs", err, n)
		case err != nil && n == 1 && !e.MaybeWritten:
			t.Fatalf("%v, but the server has it", err)
		}
	}
}

// What the trail says for each order of events, on a connection of one request
// at a time.
func TestMaybeWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		write, head bool
		want        bool
	}{
		"got, dead before the head":         {false, false, false},
		"part of a head, or TLS's farewell": {true, false, false},
		"head in the buffer, nothing sent":  {false, true, false},
		"head and bytes":                    {true, true, true},
	} {
		client, server := net.Pipe()
		go io.Copy(io.Discard, server)
		w := &wire{Conn: client}
		w.Write([]byte("an earlier request"))
		tr := &trail{got: []use{{wire: w, from: w.count()}}, headed: tc.head}
		if tc.write {
			w.Write([]byte("x"))
		}
		if got := tr.maybeWritten(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if _, err := w.Write([]byte("late")); err == nil {
			t.Errorf("%s: a write after the decision", name)
		}
		client.Close()
		server.Close()
	}
	if (&trail{}).maybeWritten() {
		t.Error("no connection, but maybe written")
	}
	if !(&trail{got: []use{{}}}).maybeWritten() {
		t.Error("a shared connection must count as written")
	}
}

// A request that waits for one of the host's connections has written nothing.
func TestConnectionsPerHostAreCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{handle: http.HandlerFunc(hang)}
		c := NewClient(policy(t, "10.0.0.0/8"), Options{Dial: p.dial, MaxConnsHost: 1})
		defer c.Close()
		go c.Do(t.Context(), request(t, "POST", "http://10.0.0.1/", "x"), Limits{Timeout: time.Minute})
		synctest.Wait()
		_, err := c.Do(t.Context(), request(t, "POST", "http://10.0.0.1/", "x"), Limits{Timeout: time.Second, NoResend: true})
		wantError(t, err, CauseTimeout, false)
		if len(p.dialled) != 1 {
			t.Errorf("dialled %v", p.dialled)
		}
		time.Sleep(2 * time.Minute)
	})
}

func TestNonsenseAnswersMayBeWritten(t *testing.T) {
	for _, answer := range []string{"", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 banana\r\n\r\n"} {
		l := listen(t)
		go answerEach(l, func(int, *http.Request) string { return answer })
		_, err := loopback(t, Options{}).Do(t.Context(), request(t, "POST", "http://"+l.Addr().String()+"/canary", "x"), Limits{NoResend: true})
		e, ok := err.(*Error)
		if !ok || !e.MaybeWritten || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "SSH") {
			t.Errorf("%q: %v", answer, err)
		}
	}
}
