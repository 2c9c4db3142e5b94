package egress

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Policy says which addresses requests may go to: the open internet by https,
// and what the operator has named (2-contracts §6, egress.allow) by http as
// well. Pawl's own listeners and metadata addresses are never reached, whatever
// is named. A Policy is safe for concurrent use.
type Policy struct {
	mu    sync.RWMutex
	allow []netip.Prefix
	own   []netip.AddrPort
}

// NewPolicy makes a policy that opens the named ranges. A range written in
// IPv4-mapped form means the IPv4 range.
func NewPolicy(allow ...netip.Prefix) (*Policy, error) {
	p := &Policy{}
	return p, p.Allow(allow...)
}

// Allow opens the named ranges in place of those that were open. Connections
// that exist are not touched: [Client.Close] drops the idle ones.
func (p *Policy) Allow(ranges ...netip.Prefix) error {
	allow := make([]netip.Prefix, 0, len(ranges))
	for _, prefix := range ranges {
		if !prefix.IsValid() {
			return fmt.Errorf("egress.allow: %v: not an address range such as 10.0.0.0/8", prefix)
		}
		if a := prefix.Addr(); a.Is4In6() {
			if prefix.Bits() < 96 {
				return fmt.Errorf("egress.allow: %v: wider than IPv4: name IPv4 and IPv6 ranges apart", prefix)
			}
			prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
		}
		allow = append(allow, prefix.Masked())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow = allow
	return nil
}

// named reports whether the operator has opened an address.
func (p *Policy) named(a netip.Addr) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return within(p.allow, a)
}

// Forbid closes Pawl's own listeners, once they are bound. An unspecified
// address (0.0.0.0, ::) stands for every address of this machine.
func (p *Policy) Forbid(listeners ...netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range listeners {
		p.own = append(p.own, netip.AddrPortFrom(l.Addr().Unmap().WithZone(""), l.Port()))
	}
}

// permits judges an address that is about to be dialled, or that a URL names.
// plain is for http, which needs a named range.
func (p *Policy) permits(to netip.AddrPort, plain bool) bool {
	a := to.Addr().Unmap()
	if !a.IsValid() || a.Zone() != "" || a.IsUnspecified() || p.never(a, to.Port()) {
		return false
	}
	if nat64.Contains(a) {
		a, _ = inner(a)
		if a.IsUnspecified() {
			return false
		}
	}
	return p.named(a) || (!plain && public(a))
}

// never reports whether an address, or the IPv4 address inside it, is closed
// for good.
func (p *Policy) never(a netip.Addr, port uint16) bool {
	if metadata[a] || p.isOwn(a, port) {
		return true
	}
	v4, ok := inner(a)
	return ok && (metadata[v4] || p.isOwn(v4, port))
}

func (p *Policy) isOwn(a netip.Addr, port uint16) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, own := range p.own {
		if own.Port() == port && (own.Addr() == a || (own.Addr().IsUnspecified() && isLocal(a))) {
			return true
		}
	}
	return false
}

// isLocal reports whether this machine answers at an address. It asks the
// system each time, since interfaces come and go; it is asked only for the port
// of an own listener. If the system does not answer, every address is local.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, i := range interfaces {
		if n, ok := i.(*net.IPNet); ok {
			if local, ok := netip.AddrFromSlice(n.IP); ok && local.Unmap() == a {
				return true
			}
		}
	}
	return false
}
