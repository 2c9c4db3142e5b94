package postgres

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
)

// cut says what a proxy does to the next commit.
type cut int32

const (
	// pass lets it through.
	pass cut = iota
	// loseAnswer forwards it and closes the connection, so that nobody learns
	// what became of it.
	loseAnswer
	// loseRequest closes the connection before it.
	loseRequest
	// late closes the connection, and forwards it a little later all the same, as
	// something between the two may do.
	late
)

// proxy stands between a driver and its server.
type proxy struct {
	listener net.Listener
	target   string
	next     atomic.Int32
	cuts     atomic.Int32
	// held are the closed connections of which something comes late.
	held chan func()
}

// through starts a proxy and gives the URL of the database through it.
func through(t testing.TB, database string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: u.Host, held: make(chan func(), 64)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			_ = server.Close()
			return
		}
		// The bind of the commit's statement and nothing else is that short.
		if !p.isCommit(buf[:n]) {
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		switch cut(p.next.Swap(int32(pass))) {
		case pass:
			_, _ = server.Write(buf[:n])
			continue
		case loseAnswer:
			_ = client.Close()
			_, _ = server.Write(buf[:n])
			_ = server.Close()
		case loseRequest:
			_ = server.Close()
		case late:
			rest := bytes.Clone(buf[:n])
			p.held <- func() {
				_, _ = server.Write(rest)
				_ = server.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, server)
				_ = server.Close()
			}
		}
		p.cuts.Add(1)
		return
	}
}

// isCommit reports whether what a client sends is the commit of a batch: the
// driver's statements are named after their text, so it is sent unnamed first.
func (p *proxy) isCommit(sent []byte) bool {
	return bytes.Contains(sent, []byte(commitName)) || bytes.Contains(sent, []byte("COMMIT\x00"))
}
