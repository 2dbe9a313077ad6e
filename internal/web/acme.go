package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// ACMEHostsMax is for how many names certificates are asked for. Each is one of its own.
const ACMEHostsMax = 16

// acmeTimeout bounds one request to the authority.
const acmeTimeout = 30 * time.Second

// acmeComplainEvery is how often the log says of a name that it has no certificate.
const acmeComplainEvery = time.Minute

// ACME is how certificates are asked for from an authority that gives them by itself
// (RFC 8555), by the challenge tls-alpn-01 (RFC 8737): the authority connects to port 443 of
// each name, which has to lead to this listener. A certificate is asked for when the first
// client names its host, and renewed 30 days before its end, or when a third of a shorter
// life is left.
type ACME struct {
	Hosts     []string     // names that clients reach this server by
	Mail      string       // whom the authority may write to; empty for nobody
	Cache     string       // folder of the certificates and of the key of the account; made if needed
	Directory string       // URL of the authority's directory; empty for Let's Encrypt
	Root      string       // PEM file of whom that URL's own certificate is by; empty for those that the system trusts
	Log       *slog.Logger // nil for the default
}

// TLS returns how to serve with certificates of the authority's. It asks for none yet.
func (a ACME) TLS() (*tls.Config, error) {
	if err := a.check(); err != nil {
		return nil, err
	}

	asking, err := a.client()
	if err != nil {
		return nil, err
	}

	// Whoever runs this accepts the authority's terms: the flag's help says so.
	manager := &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      autocert.DirCache(a.Cache),
		HostPolicy: autocert.HostWhitelist(a.Hosts...),
		Client:     asking,
		Email:      a.Mail,
	}
	logged := &acmeLog{
		get:   manager.GetCertificate,
		hosts: a.Hosts,
		log:   a.Log,
		said:  map[string]time.Time{},
	}

	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: logged.certificate,
		NextProtos:     []string{"http/1.1", acme.ALPNProto},
	}, nil
}

// check fails if the names cannot be those of certificates.
func (a ACME) check() error {
	if len(a.Hosts) == 0 || len(a.Hosts) > ACMEHostsMax {
		return fmt.Errorf(
			"certificates are asked for 1 to %d names, not %d",
			ACMEHostsMax,
			len(a.Hosts),
		)
	}

	for _, host := range a.Hosts {
		if !isCertificateName(host) {
			return fmt.Errorf(
				"%q is no name for a certificate: give one such as flexd.example.com",
				host,
			)
		}
	}

	if a.Cache == "" {
		return errors.New("certificates need a folder to be kept in")
	}

	return os.MkdirAll(a.Cache, 0o700)
}

// isCertificateName reports whether a certificate is asked for the name when a client gives it: an address, or a name that ends with a
// dot, never matches what clients give.
func isCertificateName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}

	if host != strings.ToLower(host) || strings.ContainsAny(host, ":/* ") {
		return false
	}

	return host == strings.Trim(host, ".") && strings.Contains(host, ".")
}

// client returns who asks the authority.
func (a ACME) client() (*acme.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if a.Root != "" {
		roots, err := readRoots(a.Root)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{
			MinVersion: tls.VersionTLS12,
			RootCAs:    roots,
		}
	}

	directory := a.Directory
	if directory == "" {
		directory = autocert.DefaultACMEDirectory
	}

	return &acme.Client{
		DirectoryURL: directory,
		HTTPClient: &http.Client{
			Transport: transport,
			Timeout:   acmeTimeout,
		},
		UserAgent: "flexd",
	}, nil
}

// readRoots reads the certificates of a PEM file.
func readRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}

	return roots, nil
}

// acmeLog says in the log when one of the names has no certificate. Clients that ask for other
// names are not worth a line: anybody may.
type acmeLog struct {
	get   func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	hosts []string
	log   *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time // by host
}

// certificate returns the certificate of the name that a client asks for.
func (l *acmeLog) certificate(
	hello *tls.ClientHelloInfo,
) (*tls.Certificate, error) {
	c, err := l.get(hello)
	if err != nil && slices.Contains(l.hosts, hello.ServerName) {
		l.complain(hello.Context(), hello.ServerName, err)
	}

	return c, err
}

// complain writes a line, once a minute for each host.
func (l *acmeLog) complain(ctx context.Context, host string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	now := time.Now()
	if now.Sub(l.said[host]) < acmeComplainEvery {
		return
	}
	l.said[host] = now

	log := l.log
	if log == nil {
		log = slog.Default()
	}
	log.ErrorContext(
		ctx,
		"there is no certificate: its authority must reach port 443 of the host, and it must lead here",
		"host",
		host,
		"err",
		err,
	)
}
