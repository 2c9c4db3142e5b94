package dialect

import (
	"net"
	"net/netip"
	"strings"
)

// loopback reports whether a Host header names this machine itself. A name that
// some DNS server leads here does not.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}
