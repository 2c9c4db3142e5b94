package egress

import "net/netip"

// forbidden4 and forbidden6 are SF-04 and SF-05: the special-purpose registries
// of IANA, beside what is local by nature. IPv6 outside global, all that IANA
// has given to global unicast, is refused as well.
var (
	forbidden4 = prefixes(
		"0.0.0.0/8",       // this network
		"10.0.0.0/8",      // private
		"100.64.0.0/10",   // shared, carrier NAT
		"127.0.0.0/8",     // loopback
		"169.254.0.0/16",  // link-local
		"172.16.0.0/12",   // private
		"192.0.0.0/24",    // protocol assignments
		"192.0.2.0/24",    // documentation
		"192.88.99.0/24",  // 6to4 relays
		"192.168.0.0/16",  // private
		"198.18.0.0/15",   // benchmarking
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"224.0.0.0/4",     // multicast
		"240.0.0.0/4",     // reserved, broadcast
	)
	global6    = netip.MustParsePrefix("2000::/3")
	forbidden6 = prefixes(
		"2001::/23",     // protocol assignments, Teredo
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4
		"3fff::/20",     // documentation
	)

	// nat64 carries an IPv4 address in its low 32 bits and takes its verdict
	// (SF-06, RFC 6052 §2.1).
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// metadata are the addresses at which clouds hand out credentials, refused
// whatever is allowed (SF-10).
var metadata = addresses(
	"169.254.169.254", // most clouds
	"169.254.170.2",   // AWS, container credentials
	"169.254.170.23",  // AWS, pod identity
	"169.254.0.23",    // Tencent
	"100.100.100.200", // Alibaba
	"168.63.129.16",   // Azure
	"192.0.0.192",     // Oracle
	"fd00:ec2::254",   // AWS
	"fd00:ec2::23",    // AWS, pod identity
	"fd20:ce::254",    // Google
	"fe80::a9fe:a9fe", // OpenStack
)

// metadataNames are refused without asking DNS.
var metadataNames = map[string]bool{
	"metadata":                   true,
	"metadata.goog":              true,
	"metadata.google.internal":   true,
	"metadata.tencentyun.com":    true,
	"instance-data":              true,
	"instance-data.ec2.internal": true,
}

// embedding is an IPv6 range whose addresses contain an IPv4 address, which a
// translator or tunnel on the way would send to.
type embedding struct {
	prefix netip.Prefix
	at     int // byte offset of the IPv4 address
}

var embeddings = []embedding{
	{nat64, 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // local NAT64, RFC 8215
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4, RFC 3056
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible, RFC 4291
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated, RFC 2765
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

func addresses(texts ...string) map[netip.Addr]bool {
	out := make(map[netip.Addr]bool, len(texts))
	for _, text := range texts {
		out[netip.MustParseAddr(text)] = true
	}
	return out
}

// inner gives the IPv4 address that an IPv6 address contains, if it is of such
// a range.
func inner(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	for _, e := range embeddings {
		if e.prefix.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[e.at : e.at+4])), true
		}
	}
	return netip.Addr{}, false
}

// public reports whether an address, neither mapped nor of nat64, is one of the
// open internet.
func public(a netip.Addr) bool {
	if a.Is4() {
		return !within(forbidden4, a)
	}
	return global6.Contains(a) && !within(forbidden6, a)
}

func within(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
