package egress

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

func TestParseURLTakes(t *testing.T) {
	p := policy(t, "127.0.0.0/8", "::1/128")
	for in, want := range map[string]string{
		"https://Example.COM./a/../b?q=1":      "https://example.com/a/../b?q=1",
		"https://example.com:443/":             "https://example.com/",
		"https://example.com:0443/":            "https://example.com/",
		"https://example.com:":                 "https://example.com",
		"https://example.com:8443/x":           "https://example.com:8443/x",
		"https://xn--bcher-kva.example/":       "https://xn--bcher-kva.example/",
		"https://8.8.8.8/":                     "https://8.8.8.8/",
		"https://[2606:4700:4700:0::1111]:99/": "https://[2606:4700:4700::1111]:99/",
		"https://[::ffff:8.8.8.8]/":            "https://8.8.8.8/",
		"https://[64:ff9b::808:808]/":          "https://[64:ff9b::808:808]/",
		"http://127.0.0.1:9/x":                 "http://127.0.0.1:9/x",
		"HTTP://[::1]:80/x":                    "http://[::1]/x",
		"http://localhost:3000/":               "http://localhost:3000/",
		"http://my_service:3000/a%2Fb":         "http://my_service:3000/a%2Fb",
		"https://1e100.net/":                   "https://1e100.net/",
		"https://127.0.0.1.nip.io/":            "https://127.0.0.1.nip.io/",
	} {
		u, err := p.ParseURL(in)
		if err != nil || u.String() != want {
			t.Errorf("%s: got %v %v, want %s", in, u, err, want)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	p := policy(t, "10.0.0.0/8")
	p.Forbid(netip.MustParseAddrPort("10.0.0.1:8080"))
	for _, in := range []string{
		"", "example.com", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "https:example.com", "https://", "https:///x", "unix:/x",
		"https://user@example.com/", "https://user:pw@example.com/", "https://@example.com/", "https://example.com@127.0.0.1/",
		"https://example.com/#f", "https://example.com/#", " https://example.com/", "https://exa mple.com/", "https://example.com\\@127.0.0.1/", "https://example.com\n/",
		"https://127.1/", "https://0177.0.0.1/", "https://2130706433/", "https://0x7f.1/", "https://0x7f000001/", "https://127.0.0.01/", "https://1.2.3.4.5/", "https://256.1.1.1/",
		"https://127.0.0.1./", "https://8.8.8.08/", "https://1.2.3.0x4/", "https://example.0x/", "https://example.1/",
		"https://①27.0.0.1/", "https://127。0。0。1/", "https://bücher.example/", "https://%31%32%37.0.0.1/", "https://ex%61mple.com/",
		"https://a..b/", "https://.a/", "https://./", "https://../", "https://" + strings.Repeat("a", 64) + ".com/", "https://" + strings.Repeat("a.", 126) + "abc/",
		"https://example.com:0/", "https://example.com:70000/", "https://example.com:-1/", "https://example.com:a/",
		"https://127.0.0.1/", "https://0.0.0.0/", "https://169.254.169.254/", "https://192.168.1.1/", "https://[::1]/", "https://[::]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::ffff:a9fe:a9fe]/",
		"https://[64:ff9b::a9fe:a9fe]/", "https://[::1%25lo]/", "https://[fe80::1%25eth0]/", "https://[2606:4700::1%25eth0]/", "https://[127.0.0.1]/", "https://[example.com]/", "https://[::1/",
		"https://localhost/", "https://LOCALHOST./", "https://foo.localhost/", "https://metadata.google.internal/", "https://METADATA.google.internal./", "http://metadata/",
		"http://8.8.8.8/", "http://11.0.0.1/", "http://10.0.0.1:8080/", "https://10.0.0.1:8080/", "http://[::ffff:10.0.0.1]:8080/",
		"https://example.com/" + strings.Repeat("a", 8<<10),
	} {
		u, err := p.ParseURL(in)
		var refused *Refused
		if !errors.As(err, &refused) {
			t.Errorf("%.60q: got %v %v, want *Refused", in, u, err)
		}
	}
	if _, err := p.ParseURL("http://10.0.0.1:8081/"); err != nil {
		t.Error(err)
	}
	if _, err := policy(t).ParseURL("http://example.com/"); err == nil {
		t.Error("plain http is taken though no range is named")
	}
	if _, err := policy(t).ParseURL("https://example.com/"); err != nil {
		t.Error(err)
	}
}

func TestParseURLErrorsHoldNoLink(t *testing.T) {
	for _, in := range []string{"https://u:canary@example.com/", "https://127.0.0.1/canary?canary=1", "https://exa\x7fmple.com/canary", "https://example.com/%zz?canary", "https://example.com/?a#canary"} {
		if _, err := policy(t).ParseURL(in); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// What is taken is taken again, unchanged, and names a destination that the
// policy permits or a name.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"https://example.com/a?b#c", "http://127.1/", "https://[::ffff:1.2.3.4]:443/", "https://a.b.:08/%2F", "HTTPS://1.1.1.1"} {
		f.Add(seed)
	}
	p := policy(f, "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := p.ParseURL(raw)
		if err != nil {
			return
		}
		again, err := p.ParseURL(u.String())
		if len(u.String()) <= maxURL && (err != nil || again.Host != u.Host || again.Scheme != u.Scheme) {
			t.Fatalf("%q: %v, then %v %v", raw, u, again, err)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && !p.permits(netip.AddrPortFrom(a, 443), u.Scheme == "http") {
			t.Fatalf("%q: %v taken", raw, u)
		}
		if u.User != nil || u.Fragment != "" || strings.ToLower(u.Host) != u.Host {
			t.Fatalf("%q: %v", raw, u)
		}
		// What package http would ask for is what was judged.
		r, err := http.NewRequest(http.MethodGet, u.String(), http.NoBody)
		if err != nil || r.URL.Host != u.Host || r.Host != u.Host || r.URL.Scheme != u.Scheme {
			t.Fatalf("%q is judged as %v and asked for as %v, %v", raw, u, r, err)
		}
		// Readers of old spellings find an address in a name that ends in a number.
		labels := strings.Split(u.Hostname(), ".")
		if _, err := strconv.ParseUint(labels[len(labels)-1], 0, 64); err == nil {
			if _, err := netip.ParseAddr(u.Hostname()); err != nil {
				t.Fatalf("%q: the name %s may be read as an address", raw, u.Hostname())
			}
		}
	})
}

// FuzzSplitAddress: the port is a number of 16 bits, and host and port are
// those that package net joins to the same.
func FuzzSplitAddress(f *testing.F) {
	for _, seed := range []string{"example.com:443", "[::1]:0443", "127.0.0.1:65536", "a:-1", ":80", "a:https", "[fe80::1%eth0]:1", "a:+1", "::1:80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		host, port, err := splitAddress(address)
		if err != nil {
			return
		}
		theirs, text, err := net.SplitHostPort(address)
		if err != nil || theirs != host || strings.TrimLeft(text, "0") != strings.TrimLeft(strconv.Itoa(int(port)), "0") {
			t.Fatalf("%q is split into %q and %d; package net says %q, %q, %v", address, host, port, theirs, text, err)
		}
	})
}
