package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.cert, _ = a.issue(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(t *testing.T, c *x509.Certificate, by *x509.Certificate) (*x509.Certificate, tls.Certificate) {
	t.Helper()
	c.SerialNumber, c.Subject = big.NewInt(1), pkix.Name{CommonName: "test"}
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(time.Hour)
	}
	key := a.key
	if by == nil {
		by = c
	} else {
		key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) serve(t *testing.T, leaf *x509.Certificate, edit func(*httptest.Server)) *httptest.Server {
	t.Helper()
	_, pair := a.issue(t, leaf, a.cert)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Proto", r.Proto)
		w.Write(b)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if edit != nil {
		edit(s)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func forLoopback() *x509.Certificate {
	return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

func TestTLSAndHTTP2(t *testing.T) {
	a := newAuthority(t)
	for _, h2 := range []bool{true, false} {
		s := a.serve(t, forLoopback(), func(s *httptest.Server) { s.EnableHTTP2 = h2 })
		c := loopback(t, Options{RootCAs: a.pool})
		for _, body := range []string{"hello", ""} {
			r := request(t, "POST", s.URL, body)
			r.Header.Set("Idempotency-Key", "k")
			got, err := c.Do(t.Context(), r, Limits{NoResend: true})
			want := "HTTP/1.1"
			if h2 {
				want = "HTTP/2.0"
			}
			if err != nil || string(got.Body) != body || got.Header.Get("X-Proto") != want {
				t.Fatalf("HTTP/2 %v: %+v %v", h2, got, err)
			}
		}
	}
}

// Field case O-106: each has its own plain reason, and nothing was written.
func TestCertificateFaults(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	expired := forLoopback()
	expired.NotBefore, expired.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, tc := range map[string]struct{ link, reason string }{
		"expired":      {a.serve(t, expired, nil).URL, "expired"},
		"another name": {a.serve(t, &x509.Certificate{DNSNames: []string{"other.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 2)}}, nil).URL, "another name"},
		"unknown":      {stranger.serve(t, forLoopback(), nil).URL, "authority is not known"},
		"old TLS":      {a.serve(t, forLoopback(), func(s *httptest.Server) { s.TLS.MinVersion, s.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }).URL, "TLS 1.2"},
		"no TLS":       {strings.Replace(plain.URL, "http:", "https:", 1), "does not speak TLS"},
	} {
		_, err := loopback(t, Options{RootCAs: a.pool}).Do(t.Context(), request(t, "POST", tc.link, "x"), Limits{NoResend: true})
		if e, ok := err.(*Error); !ok || e.Cause != CauseTLS || e.MaybeWritten || !strings.Contains(e.Detail, tc.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The server is gone in the middle of an HTTP/2 request: it may have it.
func TestHTTP2FailureMayBeWritten(t *testing.T) {
	a := newAuthority(t)
	s := a.serve(t, forLoopback(), func(s *httptest.Server) {
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	})
	_, err := loopback(t, Options{RootCAs: a.pool}).Do(t.Context(), request(t, "POST", s.URL, "x"), Limits{NoResend: true})
	if e, ok := err.(*Error); !ok || !e.MaybeWritten {
		t.Errorf("%v", err)
	}
}
