package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Error says in an operator's words why an exchange failed.
type Error struct {
	What    string
	Refused bool // the guard did not let it out
	err     error
}

func (e *Error) Error() string { return e.What }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// explain puts what went wrong with a host in words.
func explain(err error, host string, limit time.Duration) *Error {
	e := &Error{err: err}
	var (
		dns         *net.DNSError
		op          *net.OpError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		guard       *refusal
	)

	switch {
	case errors.As(err, &guard):
		e.Refused, e.What = true, fmt.Sprintf("%s is not reached: %v", host, guard.error)
	case errors.Is(err, context.Canceled):
		e.What = "the attempt was stopped from our side"
	case errors.As(err, &dns) && dns.IsNotFound:
		e.What = fmt.Sprintf("there is no host named %s", dns.Name)
	case errors.As(err, &dns):
		e.What = fmt.Sprintf("the name %s cannot be resolved: %s", dns.Name, dns.Err)
	case errors.As(err, &op) && op.Op == "dial" && timedOut(err):
		e.What = fmt.Sprintf("%s did not take the connection within %v", host, ConnectTime)
	case strings.Contains(err.Error(), "TLS handshake timeout"):
		e.What = fmt.Sprintf("%s did not agree on TLS within %v", host, HandshakeTime)
	case timedOut(err):
		e.What = fmt.Sprintf("%s did not answer within %v", host, limit)
	case errors.Is(err, syscall.ECONNREFUSED):
		e.What = fmt.Sprintf("%s refused the connection: nothing listens there", host)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		e.What = fmt.Sprintf("there is no route to %s", host)
	case errors.As(err, &certificate):
		e.What = fmt.Sprintf("the certificate of %s is not valid: %s", host, certificateFault(certificate))
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		e.What = fmt.Sprintf("%s does not speak TLS on this port", host)
	case errors.As(err, &alert):
		e.What = fmt.Sprintf("%s broke off TLS: %v", host, alert)
	case strings.Contains(err.Error(), "server response headers exceeded"):
		e.What = fmt.Sprintf("%s answered with more than %d bytes of header", host, HeaderMax)
	case strings.Contains(err.Error(), "malformed HTTP"):
		e.What = fmt.Sprintf("%s does not answer in HTTP", host)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), strings.Contains(err.Error(), "server closed"),
		strings.Contains(err.Error(), "readLoopPeekFail"): // something came before we had asked
		e.What = fmt.Sprintf("%s closed the connection before it had answered", host)
	default:
		e.What = fmt.Sprintf("%s: %v", host, rootOf(err))
	}

	return e
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func certificateFault(err *tls.CertificateVerificationError) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError

	switch {
	case errors.As(err, &unknown):
		return "no authority that we know has signed it"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "it has expired, or is not valid yet"
	}

	return strings.TrimPrefix(err.Err.Error(), "x509: ")
}

// rootOf returns the innermost error, without the layers' prefixes.
func rootOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
