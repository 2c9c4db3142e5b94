package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
)

// Refused is a request that the policy forbids. Nothing was sent, and no repeat
// will be permitted: it is distinct from every failure of a network (SF-18).
type Refused struct {
	Reason string // for the person who gave the URL; tells nothing that DNS said
	Host   string // the name or literal address of the URL; empty if it has none that can be told
}

// Error renders the refusal.
func (r *Refused) Error() string {
	if r.Host == "" {
		return "egress: refused: " + r.Reason
	}
	return "egress: refused: " + r.Host + ": " + r.Reason
}

// refuseDestination is the same for every forbidden destination of a scheme, so
// that an answer of DNS cannot be guessed from it.
func refuseDestination(host string, plain bool) *Refused {
	if plain {
		return &Refused{Host: host, Reason: "plain http goes only to ranges of egress.allow: use https, or have the operator allow the range"}
	}
	return &Refused{Host: host, Reason: "this destination is not permitted: private ranges need to be in egress.allow"}
}

// Cause is the kind of a failure, one of a fixed set that fits a metric label.
type Cause string

// The causes.
const (
	CauseRequest  Cause = "request"  // the request itself cannot be sent
	CauseDNS      Cause = "dns"      // the name has no address, or no answer came
	CauseConnect  Cause = "connect"  // no connection
	CauseTLS      Cause = "tls"      // no trusted connection
	CauseTimeout  Cause = "timeout"  // the time of the attempt is used up
	CauseCanceled Cause = "canceled" // the caller gave up
	CauseClosed   Cause = "closed"   // the connection ended before the answer did
	CauseProtocol Cause = "protocol" // the answer is not HTTP, or beyond the limits
)

// Error is a request that failed. It holds no part of the URL but its host.
type Error struct {
	Cause  Cause
	Detail string // plain reason for a person, from a fixed set
	Host   string
	// MaybeWritten tells whether the server may have got the whole head of the
	// request, and so may have acted on it. While it is false no server can
	// have: it is safe to send again (1-product B2, B4). It errs towards true.
	MaybeWritten bool
}

// Error renders host, detail, and whether the request may have arrived.
func (e *Error) Error() string {
	text := "egress: " + e.Host + ": " + e.Detail
	if e.MaybeWritten {
		return text + ": the request may have arrived"
	}
	return text
}

// Unwrap gives context.DeadlineExceeded or context.Canceled for these causes,
// else nil: the causes below hold addresses and URLs.
func (e *Error) Unwrap() error {
	switch e.Cause {
	case CauseTimeout:
		return context.DeadlineExceeded
	case CauseCanceled:
		return context.Canceled
	default:
		return nil
	}
}

// failure names what went wrong after the dial, without repeating it.
func failure(host string, err error, inHandshake bool) *Error {
	cause, detail := CauseProtocol, "no valid HTTP answer"
	switch certificate := certificateFault(err); {
	case errors.Is(err, context.Canceled):
		cause, detail = CauseCanceled, "given up"
	case certificate != "":
		cause, detail = CauseTLS, certificate
	case isTimeout(err):
		cause, detail = CauseTimeout, "no complete answer in time"
	case inHandshake:
		cause, detail = CauseTLS, "no TLS session could be agreed (TLS 1.2 or newer is needed)"
	case isClosed(err):
		cause, detail = CauseClosed, "the connection was closed before the answer was complete"
	}
	return &Error{Cause: cause, Detail: detail, Host: host}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout())
}

func isClosed(err error) bool {
	var op *net.OpError
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, errSealed} {
		if errors.Is(err, closed) {
			return true
		}
	}
	// The transport has no name for a server that closed an idle connection.
	return errors.As(err, &op) || strings.Contains(err.Error(), "server closed idle connection")
}

// certificateFault tells the ways apart in which a certificate is not trusted
// (field case O-106), empty for other errors.
func certificateFault(err error) string {
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not valid yet"
	case errors.As(err, &name):
		return "the certificate is for another name"
	case errors.As(err, &authority):
		return "the certificate's authority is not known: a private authority, or an intermediate certificate that the server does not send"
	case errors.As(err, &invalid), errors.As(err, &verification):
		return "the certificate is not valid"
	case errors.As(err, &record):
		return "the server does not speak TLS at this port"
	default:
		return ""
	}
}
