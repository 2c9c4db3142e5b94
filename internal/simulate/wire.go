package simulate

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"syscall"
	"time"
)

// call is a request of ours to somebody outside.
type call struct {
	node   *node
	method string
	path   string
	query  string
	header http.Header
	body   []byte
	// over: an answer has reached the node, or it has given up.
	over bool
}

// reply is what somebody outside answers.
type reply struct {
	status int
	header map[string]string
	body   []byte
	// delay is how long the answer takes to be made; lost: it never arrives; cut:
	// half of it does.
	delay     time.Duration
	lost, cut bool
	// learned, if set, is called when the whole answer has reached the node.
	learned func()
}

// host is somebody outside who answers requests.
type host interface {
	// reachable reports whether a connection can be made.
	reachable() bool
	// timeout is how long we wait for an answer.
	timeout() time.Duration
	// sent is told that a request is on its way, with 1, and no longer, with -1.
	sent(c *call, flying int)
	// lost reports whether a request is lost on its way.
	lost() bool
	// answer takes a request that has arrived.
	answer(c *call) reply
}

// wire is a node's way out: it stands for the network.
type wire struct{ node *node }

// RoundTrip sends a request to a host of the world and waits for its answer.
func (o wire) RoundTrip(r *http.Request) (*http.Response, error) {
	n, w := o.node, o.node.world
	to := w.host(r.URL.Hostname())
	if to == nil || !to.reachable() {
		n.sleep(w.lag())
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	c := &call{node: n, method: r.Method, path: r.URL.EscapedPath(), query: r.URL.RawQuery, header: r.Header.Clone()}
	if r.Body != nil {
		c.body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	var answer *reply
	f := w.running
	end := func(a *reply) {
		if c.over {
			return
		}
		c.over, answer = true, a
		if a != nil && !a.lost && !a.cut && a.learned != nil {
			a.learned()
		}
		f.resume()
	}
	n.after(to.timeout(), func() { end(nil) })
	if !to.lost() {
		to.sent(c, 1)
		w.after(w.lag(), func() {
			to.sent(c, -1)
			a := to.answer(c)
			n.after(w.lag()+a.delay, func() { end(&a) })
		})
	}
	w.wait()
	if answer == nil {
		return nil, context.DeadlineExceeded
	}
	if answer.lost {
		return nil, io.EOF
	}
	return answer.response(), nil
}

func (a *reply) response() *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for name, value := range a.header {
		h.Set(name, value)
	}
	var body io.Reader = bytes.NewReader(a.body)
	if a.cut {
		body = io.MultiReader(bytes.NewReader(a.body[:len(a.body)/2]), broken{})
	}
	return &http.Response{
		StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: io.NopCloser(body), ContentLength: int64(len(a.body)),
	}
}

// broken is the end of an answer that broke off.
type broken struct{}

// Read is io.Reader's.
func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// host is who answers at a name; nil for nobody.
func (w *world) host(name string) host {
	for _, p := range w.providers {
		if p.host() == name {
			return p
		}
	}
	if r, ok := w.receivers[name]; ok {
		return r
	}
	return nil
}
