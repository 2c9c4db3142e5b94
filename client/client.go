package client

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options say how a server is reached. The zero value is that of a program on
// the machine of a server with usual settings: what is not set comes from the
// environment, then from the defaults named here.
type Options struct {
	// Server is the address of the API; $PAWL_SERVER, else
	// http://127.0.0.1:8080.
	Server string
	// Key is the API key; $PAWL_KEY.
	Key Secret
	// Tenant narrows the view of a key with the scope admin to one tenant.
	Tenant string
	// HTTP makes the requests. The default has no overall time limit, since each
	// try has its own, and follows no redirect: the key is for Server alone. One
	// that is given is copied, and follows none either.
	HTTP *http.Client
	// Attempts is how often one call is tried at most, the first try included; 6
	// if zero.
	Attempts int
	// Backoff is the wait before the second try, doubled before each further one
	// up to MaxBackoff, and lengthened by a Retry-After; 200 ms and 15 s if zero.
	// Waits vary at random, so that many clients do not come back at once.
	Backoff, MaxBackoff time.Duration
	// Timeout bounds one try, beside the time that a call asks the server to wait;
	// 30 s if zero.
	Timeout time.Duration
}

// Secret is an API key or a signing secret. It prints as "[redacted]"; convert
// it to string to use it.
type Secret string

const redacted = "[redacted]"

// String hides the secret.
func (s Secret) String() string { return redacted }

// GoString hides the secret.
func (s Secret) GoString() string { return redacted }

// Format hides the secret, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Client talks to one server under one API key. Make one with [New].
type Client struct {
	server string
	o      Options
}

// New makes a client. It sends nothing yet; the error is about the options.
func New(o Options) (*Client, error) {
	o.Server = cmp.Or(o.Server, os.Getenv("PAWL_SERVER"), "http://127.0.0.1:8080")
	o.Key = cmp.Or(o.Key, Secret(os.Getenv("PAWL_KEY")))
	u, err := url.Parse(o.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("client: the server is not an address such as https://pawl.example.com")
	}
	if o.Key == "" || strings.ContainsFunc(string(o.Key), func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("client: no API key, or one with characters that no key has: set Options.Key or $PAWL_KEY")
	}
	o.Attempts = cmp.Or(max(o.Attempts, 0), 6)
	o.Backoff = cmp.Or(max(o.Backoff, 0), 200*time.Millisecond)
	o.MaxBackoff = cmp.Or(max(o.MaxBackoff, 0), 15*time.Second)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 30*time.Second)
	inner := http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 32,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
	}}
	if o.HTTP != nil {
		inner = *o.HTTP
	}
	inner.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	o.HTTP = &inner
	return &Client{server: strings.TrimRight(o.Server, "/"), o: o}, nil
}

// NewKey draws an Idempotency-Key. Write it down before a [Submission] is sent,
// and a program that dies on the way can go on where it was.
func NewKey() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // Never fails (crypto/rand).
	return "go-" + hex.EncodeToString(raw[:])
}

// String names the server and nothing else.
func (c *Client) String() string { return "client of " + c.server }

// GoString is [Client.String].
func (c *Client) GoString() string { return c.String() }
