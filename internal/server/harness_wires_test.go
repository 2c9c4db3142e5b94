package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/store"
)

// disk is the ledger's driver with a switch.
type disk struct {
	store.Driver
	state   atomic.Int32
	refused atomic.Int32
	// loads counts readings of single rows.
	loads atomic.Int64
	// slow is how long a batch waits before it is written, late how long its
	// answer takes after that.
	slow, late atomic.Int64
}

const (
	works = iota
	// full: a batch is refused before anything is written.
	full
	// dead: as full, for ever.
	dead
	// hidden: a batch takes effect, and the commit says that it failed.
	hidden
)

func (d *disk) under(real store.Driver) store.Driver {
	d.Driver = real
	return d
}

// Update implements [store.Driver].
func (d *disk) Update(ctx context.Context, batch pawl.ID, fn func(store.Tx) error) error {
	time.Sleep(time.Duration(d.slow.Load()))
	defer func() { time.Sleep(time.Duration(d.late.Load())) }()
	switch d.state.Load() {
	case works:
		return d.Driver.Update(ctx, batch, fn)
	case hidden:
		if err := d.Driver.Update(ctx, batch, fn); err != nil {
			return err
		}
		return &store.CommitError{Err: fmt.Errorf("no answer from the disk")}
	}
	d.refused.Add(1)
	return fmt.Errorf("the disk is full")
}

// pipes is a network inside a bubble.
type pipes struct {
	// dialling is called before each connection, nil for nothing.
	dialling  func(ctx context.Context, address string)
	mu        sync.Mutex
	port      int
	listeners map[string]*pipeListener
}

func newPipes() *pipes { return &pipes{port: 1024, listeners: make(map[string]*pipeListener)} }

func (p *pipes) listen(string, string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.port++
	l := &pipeListener{
		addr:  &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1).To4(), Port: p.port},
		conns: make(chan net.Conn), closed: make(chan struct{}),
	}
	p.listeners[l.addr.String()] = l
	return l, nil
}

func (p *pipes) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.mu.Lock()
	l, dialling := p.listeners[address], p.dialling
	p.mu.Unlock()
	if dialling != nil {
		dialling(ctx, address)
	}
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

type pipeListener struct {
	addr   *net.TCPAddr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements [net.Listener].
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *pipeListener) Addr() net.Addr { return l.addr }
