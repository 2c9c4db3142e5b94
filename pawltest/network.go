package pawltest

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
)

// network is one inside a bubble: its connections are pipes, which wait durably
// where sockets do not.
type network struct {
	mu        sync.Mutex
	port      int
	listeners map[string]*listener
}

func newNetwork() *network { return &network{port: 1024, listeners: make(map[string]*listener)} }

// listen gives an address a listener; port 0 is drawn.
func (n *network) listen(_, address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	if at.Port == 0 {
		n.port++
		at.Port = n.port
	}
	l := &listener{addr: at, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[at.String()] = l
	return l, nil
}

func (n *network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if l == nil {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return l.addr }
