package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/pawlhq/pawl/internal/strict"
)

const (
	// maxAnswer bounds an answer of the server.
	maxAnswer = 64 << 20
	// maxWhy bounds a reason, as the server does.
	maxWhy = 1000
	// maxKeyFile bounds a file with an API key.
	maxKeyFile = 4 << 10
)

// client talks to one server under one API key.
type client struct {
	server string
	key    string
	// why is the reason for all that is done, empty for none.
	why  string
	http *http.Client
}

// answer is what a server said to a call that it carried out.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// connect finds the server and the key: flags, then the environment, then what
// "pawl serve" uses when nothing is said. The key file is only read for a
// server on this machine, so that it never goes anywhere else.
func (s *session) connect() (*client, error) {
	server := firstOf(s.flags.Server, s.getenv("PAWL_SERVER"), defaultServer)
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, usage("--server or PAWL_SERVER is not an address such as %s", defaultServer)
	}
	key := firstOf(s.flags.Key, s.getenv("PAWL_KEY"))
	if key == "" && strict.Loopback(u.Hostname()) {
		key = keyFile()
	}
	if key == "" {
		return nil, usage("no API key: set PAWL_KEY or give --key (the first start of \"pawl serve\" writes one to admin.key in its data folder)")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, usage("the API key has white space or other characters that no key has: check how it was copied")
	}
	if strings.ContainsFunc(s.flags.Why, unicode.IsControl) || len(s.flags.Why) > maxWhy {
		return nil, usage("--why is one line of at most %d bytes", maxWhy)
	}
	return &client{server: strings.TrimRight(server, "/"), key: key, why: s.flags.Why, http: newHTTPClient(s.flags.Patience)}, nil
}

// newHTTPClient never follows a redirect: the key is for the named server.
func newHTTPClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 30 * time.Second, MaxIdleConns: 4,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// keyFile is the admin key that a server started in this folder has written,
// "" where there is none to be read.
func keyFile() string {
	f, err := os.Open(defaultKeyFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// call makes one request. Its errors are an [unreachableError], a [refusal], or
// the context's own. A body is sent as JSON.
func (c *client) call(ctx context.Context, method, path string, query url.Values, body []byte, header ...string) (*answer, error) {
	a, err := c.exchange(ctx, method, path, query, body, header...)
	if err == nil && (a.status < 200 || a.status > 299) {
		return nil, a.refusal()
	}
	return a, err
}

// exchange is call with an answer of any status.
func (c *client) exchange(ctx context.Context, method, path string, query url.Values, body []byte, header ...string) (*answer, error) {
	address := c.server + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, usage("the server's address or the id cannot be used in a request")
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "pawl/"+version().Version)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.why != "" {
		r.Header.Set("Pawl-Reason", c.why)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("the answer of %s is larger than %d MiB", c.server, maxAnswer>>20)
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: text}, nil
}

// unreachable leaves an interruption by the user what it is.
func (c *client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return &unreachableError{server: c.server, err: err}
}

// unreachableError is a call of which nobody knows whether it arrived.
type unreachableError struct {
	server string
	err    error
}

// Error names the server and what to do.
func (e *unreachableError) Error() string {
	return fmt.Sprintf("%s did not answer: %v; is \"pawl serve\" running there? (--server or PAWL_SERVER names another one)", e.server, e.err)
}

// Unwrap is the cause.
func (e *unreachableError) Unwrap() error { return e.err }

// refusal is an answer other than 2xx; the members are those of a problem
// (RFC 9457) as the API writes it.
type refusal struct {
	status    int
	wait      string
	Reason    string `json:"reason"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance"`
	Operation string `json:"operation_id"`
}

func (a *answer) refusal() error {
	r := &refusal{status: a.status, wait: a.header.Get("Retry-After")}
	if !strings.Contains(a.header.Get("Content-Type"), "json") || json.Unmarshal(a.body, r) != nil || r.Title == "" {
		r.Title = http.StatusText(a.status)
		r.Detail = "the answer is not one of Pawl's API; check the address of the server (the API is at listen, not at admin_listen)"
	}
	if r.Instance == "" {
		r.Instance = a.header.Get("X-Request-Id")
	}
	return r
}

// Error is one sentence: what, why, and how to name it to support.
func (r *refusal) Error() string {
	text := firstOf(r.Reason, fmt.Sprintf("status %d", r.status)) + ": " + firstOf(r.Detail, r.Title)
	if r.Operation != "" {
		text += ", operation " + r.Operation
	}
	if r.Instance != "" {
		text += " (request " + strings.TrimPrefix(r.Instance, "urn:pawl:request:") + ")"
	}
	return text
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
