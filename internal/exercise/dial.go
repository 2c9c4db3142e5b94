package exercise

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pawlhq/pawl/internal/egress"
)

// loopback is the only address that an exercise dials and listens on.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// dialer makes every connection of an exercise: to 127.0.0.1, and it keeps a
// list of what was asked for. It is safe for concurrent use.
type dialer struct {
	// before, if set, is called before each connection is made.
	before func(address string)

	mu      sync.Mutex
	asked   []string
	refused []string
}

// errOutside answers whoever asks for another address.
var errOutside = errors.New("exercise: dial: only 127.0.0.1 may be dialled")

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !d.note(address) {
		return nil, errOutside
	}
	if d.before != nil {
		d.before(address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// note adds an address to the list and reports whether it may be dialled.
func (d *dialer) note(address string) bool {
	to, err := netip.ParseAddrPort(address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, address)
	if err != nil || to.Addr() != loopback {
		d.refused = append(d.refused, address)
		return false
	}
	return true
}

// list is how many connections were asked for, and those outside.
func (d *dialer) list() (asked int, refused []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.asked), slices.Clone(d.refused)
}

// client is the guarded client of a node, over this dialer; no name is ever
// looked up.
func (d *dialer) client() (*egress.Client, error) {
	policy, err := egress.NewPolicy(netip.PrefixFrom(loopback, 32))
	if err != nil {
		return nil, err
	}
	return egress.NewClient(policy, egress.Options{
		Dial: d.dial,
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			d.note(host)
			return nil, errOutside
		},
	}), nil
}

// refusesConnections reports whether nobody listens at an address.
func (d *dialer) refusesConnections(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := d.dial(ctx, "tcp", address)
	if err == nil {
		return errors.Join(fmt.Errorf("%s still takes connections", address), conn.Close())
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return fmt.Errorf("%s: %w", address, err)
}
