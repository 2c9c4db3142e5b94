package strict

import (
	"net"
	"net/netip"
	"strings"
)

// Loopback reports whether a host, with a port or without, as in a header Host,
// names this machine itself: it is localhost or a loopback address. A name that
// some DNS server leads here is none.
func Loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
