package web

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"
)

// AskForCertificates has clients be asked for a certificate in the handshake. They may show none,
// and one of any issuer: who it is for is settled by its fingerprint, and TLS itself has the client
// prove that the key is theirs.
func AskForCertificates(config *tls.Config) *tls.Config {
	asking := config.Clone()
	asking.ClientAuth = tls.RequestClientCert

	return asking
}

// ClientCertificates are where a request's client certificate is looked for.
type ClientCertificates struct {
	// Header is the field in which a trusted proxy passes on what a client showed to it; empty for
	// none. Such a proxy sets it, or takes it away, in each request.
	Header  string
	Proxies Proxies
}

// Of returns the certificate that the client of a request showed, or nil. Where a trusted proxy
// names certificates, its own is no client's.
func (c ClientCertificates) Of(r *http.Request) *x509.Certificate {
	if a, ok := peer(r); c.Header != "" && ok && c.Proxies.Trust(a) {
		fields := r.Header.Values(c.Header)
		if len(fields) != 1 {
			return nil
		}

		return parsePassed(fields[0])
	}

	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}

	return r.TLS.PeerCertificates[0]
}

// parsePassed reads a certificate as proxies pass it on: between colons in base64 (RFC 9440), or in
// PEM with its special characters escaped, as nginx does. What is neither is none.
func parsePassed(text string) *x509.Certificate {
	text = strings.TrimSpace(text)
	inner, begins := strings.CutPrefix(text, ":")
	inner, ends := strings.CutSuffix(inner, ":")

	if begins && ends {
		der, err := base64.StdEncoding.DecodeString(inner)
		if err != nil {
			return nil
		}

		return parseDER(der)
	}

	unescaped, err := url.PathUnescape(text)
	if err != nil {
		return nil
	}

	block, _ := pem.Decode([]byte(unescaped))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}

	return parseDER(block.Bytes)
}

func parseDER(der []byte) *x509.Certificate {
	found, err := x509.ParseCertificate(der)
	if err != nil {
		return nil
	}

	return found
}

// Fingerprint is the SHA-256 of a certificate in hexadecimal digits.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)

	return hex.EncodeToString(sum[:])
}
