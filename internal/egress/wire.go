package egress

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
)

// errSealed answers writes on a connection whose request was given up.
var errSealed = errors.New("egress: the connection is sealed")

// wire is a dialled connection that knows how many bytes were handed to it, and
// can be closed for writing in one step with asking for that number.
type wire struct {
	net.Conn

	mu      sync.Mutex
	written int64
	sealed  bool
}

// Write counts before it writes: a byte that may have left has left.
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	if w.sealed {
		w.mu.Unlock()
		return 0, errSealed
	}
	w.written += int64(len(b))
	w.mu.Unlock()
	return w.Conn.Write(b)
}

func (w *wire) count() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written
}

func (w *wire) seal() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sealed = true
	return w.written
}

// trail follows one request through the transport, to tell afterwards whether a
// server may have got it. Its hooks run in goroutines of the transport.
type trail struct {
	mu          sync.Mutex
	got         []use
	headed      bool // the whole head has been handed to some connection
	inHandshake bool // a TLS handshake failed
}

// use is a connection given to the request, and its count at that moment.
type use struct {
	wire *wire // nil if it is shared or not ours: then nothing can be excluded
	from int64
}

func (t *trail) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			t.mu.Lock()
			defer t.mu.Unlock()
			u := use{wire: exclusive(info.Conn)}
			if u.wire != nil {
				u.from = u.wire.count()
			}
			t.got = append(t.got, u)
		},
		WroteHeaders: func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.headed = true
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.inHandshake = err != nil
		},
	}
}

// exclusive finds the wire below a connection that carries one request at a
// time; HTTP/2 connections are shared.
func exclusive(c net.Conn) *wire {
	if t, ok := c.(*tls.Conn); ok {
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		c = t.NetConn()
	}
	w, _ := c.(*wire)
	return w
}

// maybeWritten decides after a failure. The connections are sealed first, since
// the transport may still be about to write when a timeout has come: what is
// not written then never will be. A server cannot act on a request without the
// end of its head, so without that nothing counts as written; bytes alone prove
// nothing, because TLS writes a farewell of its own.
func (t *trail) maybeWritten() bool {
	t.mu.Lock()
	got := t.got
	t.mu.Unlock()
	written := false
	for _, u := range got {
		if u.wire == nil {
			return true
		}
		written = u.wire.seal() != u.from || written
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return written && t.headed
}

func (t *trail) handshakeFailed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inHandshake
}
