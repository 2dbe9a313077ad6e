package egress

import (
	"cmp"
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
	var guard *refusal
	if errors.As(err, &guard) {
		return &Error{
			err:     err,
			Refused: true,
			What:    fmt.Sprintf("%s is not reached: %v", host, guard.error),
		}
	}

	if errors.Is(err, context.Canceled) {
		return &Error{
			err:  err,
			What: "the attempt was stopped from our side",
		}
	}

	// The first that knows the fault names it. A later one may know a part of it only.
	what := cmp.Or(
		nameFault(err),
		timeFault(err, host, limit),
		routeFault(err, host),
		tlsFault(err, host),
		answerFault(err, host),
		fmt.Sprintf("%s: %v", host, rootOf(err)),
	)

	return &Error{err: err, What: what}
}

// nameFault says why the host's name was not resolved, if that is what failed.
func nameFault(err error) string {
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		return ""
	}
	if dns.IsNotFound {
		return fmt.Sprintf("there is no host named %s", dns.Name)
	}

	return fmt.Sprintf("the name %s cannot be resolved: %s", dns.Name, dns.Err)
}

// timeFault says which step took too long, if one did.
func timeFault(err error, host string, limit time.Duration) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && timedOut(err) {
		return fmt.Sprintf(
			"%s did not take the connection within %v",
			host,
			ConnectTime,
		)
	}

	if strings.Contains(err.Error(), "TLS handshake timeout") {
		return fmt.Sprintf(
			"%s did not agree on TLS within %v",
			host,
			HandshakeTime,
		)
	}

	if timedOut(err) {
		return fmt.Sprintf("%s did not answer within %v", host, limit)
	}

	return ""
}

// routeFault says why there is no connection to the host, if there is none.
func routeFault(err error, host string) string {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Sprintf(
			"%s refused the connection: nothing listens there",
			host,
		)
	}
	if errors.Is(err, syscall.EHOSTUNREACH) ||
		errors.Is(err, syscall.ENETUNREACH) {
		return fmt.Sprintf("there is no route to %s", host)
	}

	return ""
}

// tlsFault says what of TLS the host and flexd do not agree on, if anything.
func tlsFault(err error, host string) string {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
	)

	if errors.As(err, &certificate) {
		return fmt.Sprintf(
			"the certificate of %s is not valid: %s",
			host,
			certificateFault(certificate),
		)
	}

	if errors.As(err, &record) || strings.Contains(err.Error(), "HTTP response to HTTPS client") {
		return fmt.Sprintf("%s does not speak TLS on this port", host)
	}

	if errors.As(err, &alert) {
		return fmt.Sprintf("%s broke off TLS: %v", host, alert)
	}

	return ""
}

// answerFault says what is wrong with the host's answer, if anything.
func answerFault(err error, host string) string {
	text := err.Error()
	if strings.Contains(text, "server response headers exceeded") {
		return fmt.Sprintf(
			"%s answered with more than %d bytes of header",
			host,
			HeaderMax,
		)
	}

	if strings.Contains(text, "malformed HTTP") {
		return fmt.Sprintf("%s does not answer in HTTP", host)
	}

	if closed(err) {
		return fmt.Sprintf(
			"%s closed the connection before it had answered",
			host,
		)
	}

	return ""
}

// closed reports whether the host closed the connection. The last text is for a host that
// sent something before it was asked.
func closed(err error) bool {
	for _, end := range []error{
		io.EOF,
		io.ErrUnexpectedEOF,
		syscall.ECONNRESET,
		syscall.EPIPE,
		net.ErrClosed,
	} {
		if errors.Is(err, end) {
			return true
		}
	}

	text := err.Error()

	return strings.Contains(text, "server closed") ||
		strings.Contains(text, "readLoopPeekFail")
}

func timedOut(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func certificateFault(err *tls.CertificateVerificationError) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError

	if errors.As(err, &unknown) {
		return "no authority that we know has signed it"
	}

	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
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
