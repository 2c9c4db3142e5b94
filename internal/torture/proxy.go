package torture

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// proxy passes TCP connections on, to the first of its targets that takes one.
// It can close them, delay what clients send, or let none through. It is safe
// for concurrent use.
type proxy struct {
	listener net.Listener
	// targets are where to go, asked for each connection.
	targets func() []string

	mu    sync.Mutex
	open  map[net.Conn]bool
	away  bool
	delay time.Duration
	ended sync.WaitGroup
}

// newProxy takes an address; [proxy.start] begins to pass connections on.
func newProxy(targets func() []string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &proxy{listener: l, targets: targets, open: make(map[net.Conn]bool)}, nil
}

func (p *proxy) start() { p.ended.Go(p.accept) }

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.ended.Go(func() { p.pass(c) })
	}
}

// pass joins a connection to one of the targets until either side ends.
func (p *proxy) pass(client net.Conn) {
	defer p.forget(client)
	if !p.note(client) {
		return
	}
	server := p.dial()
	if server == nil {
		return
	}
	defer p.forget(server)
	if !p.note(server) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_, _ = io.Copy(late{server, p}, client)
	_ = server.Close()
	back.Wait()
}

func (p *proxy) dial() net.Conn {
	for _, target := range p.targets() {
		if c, err := net.DialTimeout("tcp", target, 2*time.Second); err == nil {
			return c
		}
	}
	return nil
}

// note remembers a connection, to be cut; false where none may pass.
func (p *proxy) note(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.away {
		p.open[c] = true
	}
	return !p.away
}

func (p *proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// cut closes all connections and says how many; new ones are passed on.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		// Reset, as by a machine that went away: nothing more is sent.
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	return len(p.open) / 2
}

// block closes all connections, and new ones at once, until it is lifted.
func (p *proxy) block(on bool) {
	p.mu.Lock()
	p.away = on
	p.mu.Unlock()
	if on {
		p.cut()
	}
}

// slow delays each piece that a client sends; 0 ends it.
func (p *proxy) slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

func (p *proxy) close() error {
	err := p.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	p.block(true)
	p.ended.Wait()
	return err
}

// late writes after the proxy's delay.
type late struct {
	to io.Writer
	p  *proxy
}

// Write implements [io.Writer].
func (l late) Write(b []byte) (int, error) {
	l.p.mu.Lock()
	delay := l.p.delay
	l.p.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	return l.to.Write(b)
}
