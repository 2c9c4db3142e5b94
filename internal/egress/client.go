package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/pawlhq/pawl/internal/telemetry"
)

// Defaults of Options and Limits.
const (
	DefaultTimeout      = 15 * time.Second // of one request, from dial to last byte (7-rules §5)
	DefaultConnect      = 5 * time.Second  // of look-up and dial together
	DefaultMaxResponse  = 1 << 20          // bytes of an answer's body
	DefaultMaxConnsHost = 64               // connections to one host at a time
	maxResponseHeader   = 32 << 10         // bytes (2-contracts §1, limits)
	idleTimeout         = 30 * time.Second // below what most servers grant, so that they rarely close under a request
)

// Options make a Client. The zero value is ready for production; the functions
// are there for tests and for the simulator's wires.
type Options struct {
	Connect      time.Duration  // time for look-up, dial and, again, the TLS handshake; 0 is DefaultConnect
	MaxConnsHost int            // connections to one host at a time, further requests wait; 0 is DefaultMaxConnsHost
	RootCAs      *x509.CertPool // authorities to trust instead of the system's; checking cannot be switched off

	// Resolve gives the addresses of a name. Nil asks DNS by Go's own resolver,
	// which expands no legacy address spellings (SF-12).
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to a literal address that has been judged. Nil is a TCP
	// dialer that judges the socket's address once more.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Wire answers requests in place of a network. Their URLs are judged all the
	// same, and nothing is dialled. A request counts as written, whatever becomes
	// of it, once Wire has told the request's httptrace of a connection.
	Wire http.RoundTripper
	// Traces makes a span of each request; nil makes none.
	Traces *telemetry.Traces
}

// Client sends requests where its Policy lets them go. It keeps connections for
// reuse, its own for http and for https, so that none is reused that another
// policy or scheme has opened (SF-16). It is safe for concurrent use.
type Client struct {
	policy *Policy
	plain  *http.Transport
	secure *http.Transport
	wire   http.RoundTripper // in place of both, if set
	traces *telemetry.Traces
}

// NewClient makes a client. The policy may still learn listeners by Forbid.
func NewClient(policy *Policy, o Options) *Client {
	return &Client{
		policy: policy,
		plain:  newTransport(&guard{policy: policy, plain: true}, o),
		secure: newTransport(&guard{policy: policy}, o),
		wire:   o.Wire,
		traces: o.Traces,
	}
}

// Policy gives the client's policy.
func (c *Client) Policy() *Policy { return c.policy }

// Close closes idle connections. Requests under way are not touched.
func (c *Client) Close() {
	c.plain.CloseIdleConnections()
	c.secure.CloseIdleConnections()
}

func newTransport(g *guard, o Options) *http.Transport {
	g.connect = cmp.Or(o.Connect, DefaultConnect)
	g.resolve, g.dial = o.Resolve, o.Dial
	if g.resolve == nil {
		resolver := &net.Resolver{PreferGo: true}
		g.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return resolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if g.dial == nil {
		g.dial = (&net.Dialer{ControlContext: g.control}).DialContext
	}
	conns := cmp.Or(o.MaxConnsHost, DefaultMaxConnsHost)
	return &http.Transport{
		Proxy:                  nil, // a proxy from the environment would be all that the guard sees (SF-09)
		DialContext:            g.DialContext,
		ForceAttemptHTTP2:      true, // lost otherwise, with an own dialer (SF-16)
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    g.connect,
		DisableCompression:     true,
		MaxConnsPerHost:        conns,
		MaxIdleConnsPerHost:    conns,
		MaxIdleConns:           1024,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
}
