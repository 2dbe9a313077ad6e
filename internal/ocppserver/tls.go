package ocppserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"flexd/internal/web"
)

// authoritiesEvery is how often the file of chargers' certificate authorities is checked.
const authoritiesEvery = time.Second

// TLS returns the TLS configuration for chargers, with a server certificate. If clientCA is
// not empty, chargers must present a certificate that one of its authorities signed. All files
// are read again when they change.
func TLS(certFile, keyFile, clientCA string) (*tls.Config, error) {
	config, err := web.TLS(certFile, keyFile, nil)
	if err != nil || clientCA == "" {
		return config, err
	}

	config.ClientAuth = tls.RequireAndVerifyClientCert
	a := &authorities{file: clientCA}
	if err := a.read(config); err != nil {
		return nil, err
	}

	config.ClientCAs = a.config.ClientCAs
	a.config = nil // changes of the configuration before the first charger connects count
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return a.configFor(config), nil
	}

	return config, nil
}

// authorities are chargers' certificate authorities.
type authorities struct {
	file string

	mu        sync.Mutex
	checkedAt time.Time
	text      []byte
	config    *tls.Config // with the authorities of the text; nil if it is not made
}

// configFor returns the configuration with the authorities that the file has now. If the file
// cannot be read, the previous ones stay.
func (a *authorities) configFor(base *tls.Config) *tls.Config {
	a.mu.Lock()
	defer a.mu.Unlock()

	now := time.Now()
	if a.config != nil && now.Sub(a.checkedAt) < authoritiesEvery {
		return a.config
	}

	a.checkedAt = now
	if err := a.read(base); err != nil {
		slog.Warn(
			"chargers' certificate authorities stay as they were",
			"err",
			err,
		)
	}

	return a.config
}

// read reads the file if it has changed. The caller holds mu, or has the only reference.
func (a *authorities) read(base *tls.Config) error {
	if a.config == nil {
		a.config = base.Clone()
		a.config.GetConfigForClient = nil
	}

	text, err := os.ReadFile(a.file)
	if err != nil || bytes.Equal(text, a.text) {
		return err
	}

	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s has no certificate in PEM", a.file)
	}

	a.text = text
	a.config = a.config.Clone()
	a.config.ClientCAs = pool

	return nil
}

// hasCertificateFor reports whether a charger's certificate names its id, as the common name
// or as a DNS name.
func hasCertificateFor(r *http.Request, id string) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}

	leaf := r.TLS.VerifiedChains[0][0]

	return leaf.Subject.CommonName == id || slices.Contains(leaf.DNSNames, id)
}
