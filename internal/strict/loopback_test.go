package strict_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/strict"
)

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.8.7": true, "::1": true, "[::1]": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.": false, "pawl.localhost": false, "localhost.example.com": false, "10.0.0.1": false, "0.0.0.0": false, "::": false,
		"128.0.0.1": false, "2130706433": false, "127.1": false, "127.0.0.1:80": true, "[::1]:80": true, "localhost:80": true, "10.0.0.1:80": false, "::ffff:10.0.0.1": false,
	} {
		if got := strict.Loopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// FuzzLoopback: what counts as this machine is localhost or an address that
// package net calls a loopback one.
func FuzzLoopback(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:1", "[::1]:1", "::1", "[::ffff:127.0.0.1]", "localhost", "localhost:", "127.1", "0x7f000001", "2130706433", "127.0.0.1.", "[::1%lo]:1", "a:b:c", "127.0.0.1:1:2", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if !strict.Loopback(host) {
			return
		}
		name := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			name = h
		}
		if strings.EqualFold(name, "localhost") {
			return
		}
		bare := strings.Trim(name, "[]")
		if zone := strings.IndexByte(bare, '%'); zone >= 0 {
			bare = bare[:zone]
		}
		if ip := net.ParseIP(bare); ip == nil || !ip.IsLoopback() {
			t.Fatalf("%q counts as this machine; %v", host, ip)
		}
		if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err != nil {
			t.Fatalf("%q: %v", host, err)
		}
	})
}
