package egress

import (
	"net/netip"
	"sync"
	"testing"

	"code.dny.dev/ssrf"
	"pgregory.net/rapid"
)

func policy(t testing.TB, allow ...string) *Policy {
	t.Helper()
	var list []netip.Prefix
	for _, a := range allow {
		list = append(list, netip.MustParsePrefix(a))
	}
	p, err := NewPolicy(list...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func to(addr string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(addr), port)
}

// One address or both ends of each range of SF-04 to SF-07, and vector V7.
var mustRefuse = []string{
	"0.0.0.0", "0.0.0.1", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.64.0.1", "100.127.255.255",
	"127.0.0.1", "127.255.255.255", "169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.2.1",
	"192.88.99.1", "192.168.0.0", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
	"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::7f00:1", "::127.0.0.1", "::ffff:0:7f00:1", "ff::1", "100::1", "2001::1", "2001:1ff:ffff::", "2001:db8::1", "2002::1", "2002:7f00:1::1",
	"2002:808:808::1", "3fff::1", "3fff:fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1",
	"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.1.2.3", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::", "64:ff9b:1::1",
	"64:ff9b:1::808:808", "4000::1", "2606:4700::1111%eth0", "168.63.129.16", "100.100.100.200",
}

var mustAllow = []string{
	"8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "169.253.255.255",
	"169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
	"::ffff:8.8.8.8", "64:ff9b::808:808", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111", "3ffe::1",
}

func TestPermitsByDefault(t *testing.T) {
	p := policy(t)
	for _, a := range mustRefuse {
		if p.permits(to(a, 443), false) {
			t.Errorf("%s is permitted", a)
		}
	}
	for _, a := range mustAllow {
		if !p.permits(to(a, 443), false) {
			t.Errorf("%s is refused", a)
		}
		if p.permits(to(a, 80), true) {
			t.Errorf("%s is permitted by plain http", a)
		}
	}
	if p.permits(netip.AddrPort{}, false) {
		t.Error("no address is permitted")
	}
}

func TestNamedRanges(t *testing.T) {
	p := policy(t, "127.0.0.0/8", "::1/128", "10.1.0.0/16", "::ffff:192.168.7.0/120")
	for _, a := range []string{"127.0.0.1", "::ffff:127.0.0.1", "::1", "10.1.2.3", "192.168.7.9", "64:ff9b::a01:203"} {
		if !p.permits(to(a, 80), true) || !p.permits(to(a, 443), false) {
			t.Errorf("%s is refused", a)
		}
	}
	for _, a := range []string{"10.2.0.1", "192.168.8.1", "::2", "8.8.8.8", "0.0.0.0", "::"} {
		if p.permits(to(a, 80), true) {
			t.Errorf("%s is permitted by plain http", a)
		}
	}
}

// A reload may open other ranges while addresses are judged; this is for the race
// detector.
func TestRangesAreNamedWhileURLsAreRead(t *testing.T) {
	p := policy(t, "10.0.0.0/8")
	var reloads sync.WaitGroup
	reloads.Go(func() {
		for range 100 {
			if err := p.Allow(netip.MustParsePrefix("127.0.0.0/8")); err != nil {
				t.Error(err)
			}
		}
	})
	for range 100 {
		if _, err := p.ParseURL("http://example.com/"); err != nil {
			t.Error(err)
		}
	}
	reloads.Wait()
	if _, err := p.ParseURL("http://localhost/"); err != nil {
		t.Error(err)
	}
}

// Everything allowed still leaves the metadata addresses closed, in every
// spelling that some translator would carry there.
func TestMetadataNever(t *testing.T) {
	p := policy(t, "0.0.0.0/0", "::/0")
	for _, a := range []string{
		"169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe",
		"2002:a9fe:a9fe::1", "::a9fe:a9fe", "::ffff:0:a9fe:a9fe", "169.254.170.2",
	} {
		for _, plain := range []bool{true, false} {
			if p.permits(to(a, 80), plain) {
				t.Errorf("%s is permitted, plain %v", a, plain)
			}
		}
	}
	if !p.permits(to("169.254.1.1", 80), true) || !p.permits(to("10.0.0.1", 80), true) {
		t.Error("a named range is refused")
	}
}

func TestOwnListenersNever(t *testing.T) {
	p := policy(t, "0.0.0.0/0", "::/0")
	p.Forbid(to("127.0.0.1", 8080), to("0.0.0.0", 8081), to("::", 8082), to("::ffff:127.0.0.3", 8083))
	for _, tc := range []struct {
		addr string
		port uint16
		ok   bool
	}{
		{"127.0.0.1", 8080, false},
		{"::ffff:127.0.0.1", 8080, false},
		{"64:ff9b::7f00:1", 8080, false},
		{"127.0.0.1", 9000, true},
		{"127.0.0.2", 8080, true},
		{"127.0.0.2", 8081, false},
		{"::1", 8081, false},
		{"8.8.8.8", 8081, true},
		{"127.9.9.9", 8082, false},
		{"127.0.0.3", 8083, false},
		{"0.0.0.0", 9000, false},
	} {
		if got := p.permits(to(tc.addr, tc.port), true); got != tc.ok {
			t.Errorf("%s port %d: permitted %v", tc.addr, tc.port, got)
		}
	}
}

func TestNewPolicyRefuses(t *testing.T) {
	if _, err := NewPolicy(netip.Prefix{}); err == nil {
		t.Error("an empty range is taken")
	}
	if _, err := NewPolicy(netip.MustParsePrefix("::ffff:0:0/90")); err == nil {
		t.Error("a mapped range wider than IPv4 is taken")
	}
}

// Whatever another guard's lists refuse, ours refuses, but for three services
// that IANA marks as reachable from everywhere.
func TestCoversTheListsOfAnotherGuard(t *testing.T) {
	reachable := prefixes("192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", "2620:4f:8000::/48")
	p := policy(t)
	rapid.Check(t, func(r *rapid.T) {
		denied := rapid.SampledFrom(append(append([]netip.Prefix{}, ssrf.IPv4DeniedPrefixes...), ssrf.IPv6DeniedPrefixes...)).Draw(r, "range")
		a := drawFrom(r, denied)
		if p.permits(netip.AddrPortFrom(a, 443), false) && !within(reachable, a) {
			t.Errorf("%v of %v is permitted", a, denied)
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		a := netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(r, "address")))
		if p.permits(netip.AddrPortFrom(a, 443), false) && !ssrf.IPv6GlobalUnicast.Contains(a) && !ssrf.IPv6NAT64Prefix.Contains(a) && !a.Is4In6() {
			t.Errorf("%v is permitted", a)
		}
	})
}

// drawFrom draws an address of a range.
func drawFrom(r *rapid.T, p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	noise := rapid.SliceOfN(rapid.Byte(), len(b), len(b)).Draw(r, "noise")
	for i := range b {
		for bit := range 8 {
			if i*8+bit >= p.Bits() {
				b[i] |= noise[i] & (0x80 >> bit)
			}
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
