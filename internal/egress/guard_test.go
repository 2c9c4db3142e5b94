package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes serves HTTP over net.Pipe at any address, and notes what was dialled.
type pipes struct {
	dialled []string
	handle  http.Handler
}

func (p *pipes) dial(_ context.Context, _, address string) (net.Conn, error) {
	p.dialled = append(p.dialled, address)
	client, server := net.Pipe()
	go http.Serve(&oneConn{conn: server}, p.handle)
	return client, nil
}

// oneConn is a listener of one connection.
type oneConn struct{ conn net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, io.EOF
	}
	c := l.conn
	l.conn = nil
	return c, nil
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func TestOneForbiddenAnswerRefusesTheName(t *testing.T) {
	for _, answers := range [][]string{
		{"8.8.8.8", "169.254.169.254"}, {"10.0.0.1"}, {"2606:4700::1", "fd00::1"}, {"8.8.8.8", "64:ff9b::a00:1"}, {"100.64.0.1"}, {"0.0.0.0"}, {"198.18.0.1"}, {"fe80::1%eth0"},
	} {
		p := &pipes{}
		c := NewClient(policy(t), Options{Resolve: names(answers), Dial: p.dial})
		_, err := c.Do(t.Context(), request(t, "POST", "https://hook.example.com/a", "x"), Limits{})
		refused := wantRefused(t, err)
		if len(p.dialled) != 0 {
			t.Errorf("%v: dialled %v", answers, p.dialled)
		}
		if refused.Host != "hook.example.com" || strings.ContainsAny(refused.Reason, "0123456789") {
			t.Errorf("%v: the reason tells too much: %v", answers, err)
		}
	}
}

func TestRebinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{handle: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") })}
		c := NewClient(policy(t, "10.0.0.0/8"), Options{Resolve: names([]string{"10.0.0.1"}, []string{"169.254.169.254"}), Dial: p.dial})
		defer c.Close()
		got, err := c.Do(t.Context(), request(t, "GET", "http://hook.example.com/", ""), Limits{})
		if err != nil || got.Status != 200 {
			t.Fatalf("%+v %v", got, err)
		}
		_, err = c.Do(t.Context(), request(t, "GET", "http://hook.example.com/", ""), Limits{})
		wantRefused(t, err)
		if len(p.dialled) != 1 || p.dialled[0] != "10.0.0.1:80" {
			t.Errorf("dialled %v", p.dialled)
		}
	})
}

// The socket is judged too, should anything come between judgement and dial.
func TestControlJudgesTheSocket(t *testing.T) {
	g := &guard{policy: policy(t)}
	for _, a := range []string{"127.0.0.1:443", "[::1]:443", "[::ffff:10.0.0.1]:443", "169.254.169.254:443", "[fe80::1%eth0]:443", "nonsense"} {
		if err := g.control(t.Context(), "tcp4", a, nil); err == nil {
			t.Errorf("%s passes", a)
		}
	}
	if err := g.control(t.Context(), "tcp4", "8.8.8.8:443", nil); err != nil {
		t.Error(err)
	}
	if err := g.control(t.Context(), "udp4", "8.8.8.8:443", nil); err == nil {
		t.Error("udp passes")
	}
	// A real socket, to a listener that is ours.
	l := listen(t)
	own := policy(t, "127.0.0.0/8")
	own.Forbid(netip.MustParseAddrPort(l.Addr().String()))
	d := &net.Dialer{ControlContext: (&guard{policy: own, plain: true}).control}
	_, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	wantRefused(t, err)
}

func TestMetadataAndOwnListenersDespiteAllow(t *testing.T) {
	p := policy(t, "0.0.0.0/0", "::/0")
	p.Forbid(netip.MustParseAddrPort("0.0.0.0:8080"))
	for _, answer := range []string{"169.254.169.254", "127.0.0.1", "::1", "127.0.0.9"} {
		c := NewClient(p, Options{Resolve: names([]string{answer}), Dial: (&pipes{}).dial})
		_, err := c.Do(t.Context(), request(t, "GET", "http://hook.example.com:8080/", ""), Limits{})
		wantRefused(t, err)
	}
}

func TestPlainHTTPNeedsANamedRange(t *testing.T) {
	p := &pipes{}
	c := NewClient(policy(t, "10.0.0.0/8"), Options{Resolve: names([]string{"8.8.8.8"}), Dial: p.dial})
	_, err := c.Do(t.Context(), request(t, "GET", "http://hook.example.com/", ""), Limits{})
	wantRefused(t, err)
	if len(p.dialled) != 0 {
		t.Errorf("dialled %v", p.dialled)
	}
}

func TestNextAddressIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{handle: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		c := NewClient(policy(t, "10.0.0.0/8", "fd00::/8"), Options{
			Resolve: names([]string{"fd00::1", "10.0.0.1"}),
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasPrefix(address, "[") {
					<-ctx.Done() // a black hole
					return nil, ctx.Err()
				}
				return p.dial(ctx, network, address)
			},
		})
		defer c.Close()
		start := time.Now()
		got, err := c.Do(t.Context(), request(t, "GET", "http://hook.example.com/", ""), Limits{})
		if err != nil || got.Status != 200 {
			t.Fatalf("%+v %v", got, err)
		}
		if waited := time.Since(start); waited != DefaultConnect/2 {
			t.Errorf("the first address had %v", waited)
		}
	})
}

func TestDialFailuresAreNothingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blackHole := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		fail := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("unreachable") }
		noName := func(context.Context, string) ([]netip.Addr, error) { return nil, &net.DNSError{IsNotFound: true} }
		for _, tc := range []struct {
			o       Options
			timeout time.Duration
			cause   Cause
		}{
			{Options{Resolve: names([]string{"10.0.0.1"}), Dial: blackHole}, time.Minute, CauseConnect},
			{Options{Resolve: names([]string{"10.0.0.1"}), Dial: blackHole}, time.Second, CauseTimeout},
			{Options{Resolve: names([]string{"10.0.0.1"}), Dial: fail}, time.Minute, CauseConnect},
			{Options{Resolve: noName}, time.Minute, CauseDNS},
			{Options{Resolve: names(nil)}, time.Minute, CauseDNS},
		} {
			_, err := NewClient(policy(t, "10.0.0.0/8"), tc.o).Do(t.Context(), request(t, "POST", "http://hook.example.com/", "x"), Limits{Timeout: tc.timeout, NoResend: true})
			wantError(t, err, tc.cause, false)
		}
		time.Sleep(time.Minute) // in the bubble: lets the dials that go on in the background end
	})
}

func TestOneBudgetForEveryPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{handle: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/head" {
				hang(w, r)
				return
			}
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(500)
			for range 1000 { // one byte a second
				w.Write([]byte("."))
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(time.Second):
				}
			}
		})}
		c := NewClient(policy(t, "10.0.0.0/8"), Options{Dial: p.dial})
		defer c.Close()
		start := time.Now()
		_, err := c.Do(t.Context(), request(t, "POST", "http://10.0.0.1/head", "x"), Limits{Timeout: 3 * time.Second})
		wantError(t, err, CauseTimeout, true)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		got, err := c.Do(t.Context(), request(t, "POST", "http://10.0.0.1/body", "x"), Limits{Timeout: 3*time.Second + time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != 500 || string(got.Body) != "...." || !got.Truncated || got.Cut == nil || got.Cut.Cause != CauseTimeout || got.Duration != 3*time.Second+time.Millisecond {
			t.Errorf("%+v, %q", got, got.Body)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Do(ctx, request(t, "POST", "http://10.0.0.1/head", "x"), Limits{})
		wantError(t, err, CauseCanceled, true)
	})
}
