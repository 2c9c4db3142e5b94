package egress

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxURL bounds the bytes of a URL. Signed links of object stores reach 2,000.
const maxURL = 8 << 10

// ParseURL reads a URL that requests are to go to and refuses whatever can be
// known to be forbidden without asking DNS (2-contracts §1, endpoints; SF-10 to
// SF-12): another scheme than https and http, userinfo, a fragment, hosts that
// two parsers could read differently, forbidden literal addresses and metadata
// names. Every port is permitted to https; plain http goes to named ranges
// only. The result has a lower-case host without trailing dot, addresses in
// their shortest form and no default port. The error is a *Refused.
//
// A URL that passes is judged again whenever it is dialled.
func (p *Policy) ParseURL(raw string) (*url.URL, error) {
	u, err := split(raw)
	if err != nil {
		return nil, err
	}
	host, err := cleanHost(u)
	if err != nil {
		return nil, err
	}
	port, err := cleanPort(u)
	if err != nil {
		return nil, err
	}
	plain := u.Scheme == "http"
	if a, err := netip.ParseAddr(host); err == nil {
		if !p.permits(netip.AddrPortFrom(a, port), plain) {
			return nil, refuseDestination(host, plain)
		}
	} else if metadataNames[host] || p.unreachable(host, plain) {
		return nil, refuseDestination(host, plain)
	}
	u.Host = joinHost(u.Scheme, host, port)
	return u, nil
}

// unreachable reports whether a name can lead nowhere that is permitted,
// whatever DNS says: names under localhost are loopback (RFC 6761 §6.3), and
// plain http needs a named range.
func (p *Policy) unreachable(host string, plain bool) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if plain && len(p.allow) == 0 {
		return true
	}
	if host != "localhost" && !strings.HasSuffix(host, ".localhost") {
		return false
	}
	for _, prefix := range p.allow {
		for _, loopback := range loopbacks {
			if prefix.Overlaps(loopback) {
				return false
			}
		}
	}
	return true
}

var loopbacks = prefixes("127.0.0.0/8", "::1/128")

// split parses a URL and refuses the parts that none may have.
func split(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, &Refused{Reason: "the URL is longer than 8192 bytes"}
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, &Refused{Reason: "not a URL"} // the cause would quote it
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, &Refused{Reason: "the scheme must be https, or http to a range of egress.allow"}
	case u.Opaque != "" || u.Host == "":
		return nil, &Refused{Reason: "the URL names no host"}
	case u.User != nil:
		return nil, &Refused{Reason: "a URL with a user name or password"}
	case strings.Contains(raw, "#"):
		return nil, &Refused{Reason: "a URL with a fragment"}
	}
	return u, nil
}

// cleanHost gives the one spelling of the host: an address, or an ASCII name.
// A name whose last label is a number is an IPv4 address in a legacy spelling
// to some parsers and resolvers ("127.1", "0x7f.1", "2130706433"), so it must
// be one in dotted form.
func cleanHost(u *url.URL) (string, error) {
	host := strings.ToLower(u.Hostname())
	if strings.HasPrefix(u.Host, "[") {
		a, err := netip.ParseAddr(host)
		if err != nil || !a.Is6() || a.Zone() != "" {
			return "", &Refused{Reason: "not an IPv6 address, or one with a zone"}
		}
		return a.Unmap().String(), nil
	}
	host = strings.TrimSuffix(host, ".")
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return "", &Refused{Reason: "the host is not a name of letters, digits and hyphens (international names in their xn-- form)"}
		}
	}
	if len(host) > 253 {
		return "", &Refused{Reason: "the host is longer than 253 characters"}
	}
	if isNumber(labels[len(labels)-1]) {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is4() {
			return "", &Refused{Reason: "not an IPv4 address in dotted form"}
		}
	}
	return host, nil
}

// isLabel takes the underscore too, which names of container networks hold.
func isLabel(label string) bool {
	for i := range len(label) {
		b := label[i]
		if (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '-' && b != '_' {
			return false
		}
	}
	return label != "" && len(label) <= 63
}

func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func cleanPort(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		return defaultPort(u.Scheme), nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, &Refused{Reason: "the port is not between 1 and 65535"}
	}
	return uint16(port), nil
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

func joinHost(scheme, host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == defaultPort(scheme) {
		return host
	}
	return host + ":" + strconv.Itoa(int(port))
}
