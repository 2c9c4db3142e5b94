package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// guard dials for one policy and one scheme.
type guard struct {
	policy  *Policy
	plain   bool
	connect time.Duration
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// DialContext looks a name up once, judges all answers, of which one forbidden
// refuses the name (SF-02), and dials the addresses that were judged, so that
// no second look-up comes between (SF-01). Its errors are *Refused and *Error.
func (g *guard) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := splitAddress(address)
	if err != nil {
		return nil, &Error{Cause: CauseRequest, Detail: "no host and port to dial"}
	}
	ctx, cancel := context.WithTimeout(ctx, g.connect)
	defer cancel()
	found, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		if !g.policy.permits(netip.AddrPortFrom(a, port), g.plain) {
			return nil, refuseDestination(host, g.plain)
		}
	}
	for i, a := range found {
		var conn net.Conn
		conn, err = g.dialOne(ctx, netip.AddrPortFrom(a.Unmap(), port), len(found)-i)
		if err == nil {
			return &wire{Conn: conn}, nil
		}
		var refused *Refused
		if errors.As(err, &refused) {
			return nil, refuseDestination(host, g.plain)
		}
	}
	return nil, dialFailure(host, err)
}

func (g *guard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	found, err := g.resolve(ctx, host)
	if err != nil {
		return nil, lookupFailure(host, err)
	}
	if len(found) == 0 {
		return nil, &Error{Cause: CauseDNS, Detail: "the name has no address", Host: host}
	}
	return found, nil
}

// minConnect is the least time that an address gets before the next is tried.
const minConnect = 2 * time.Second

// dialOne gives each of the addresses left an equal share of the time.
func (g *guard) dialOne(ctx context.Context, to netip.AddrPort, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		share := max(time.Until(deadline)/time.Duration(left), minConnect)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	return g.dial(ctx, "tcp", to.String())
}

// control judges the address of the socket itself, just before it connects.
func (g *guard) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") || !g.policy.permits(to, g.plain) {
		return &Refused{Reason: "address of the socket"}
	}
	return nil
}

func splitAddress(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port: %w", err)
	}
	return host, uint16(n), nil
}

func lookupFailure(host string, err error) error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Cause: CauseCanceled, Detail: "given up", Host: host}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Error{Cause: CauseDNS, Detail: "the name was not found", Host: host}
	default:
		return &Error{Cause: CauseDNS, Detail: "the name could not be looked up", Host: host}
	}
}

func dialFailure(host string, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Cause: CauseCanceled, Detail: "given up", Host: host}
	case isTimeout(err):
		return &Error{Cause: CauseConnect, Detail: "no connection in time", Host: host}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Error{Cause: CauseConnect, Detail: "nothing listens at this port: the host refused the connection", Host: host}
	default:
		return &Error{Cause: CauseConnect, Detail: "no connection", Host: host}
	}
}
