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

// authoritiesEvery is how often the file of chargers' certificate authorities is looked at.
const authoritiesEvery = time.Second

// TLS returns how chargers are served over TLS: with a certificate and, if clientCA is not
// empty, with certificates of their own that one of its authorities must have signed. All
// files are read again when they change.
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
	a.config = nil // what is changed of the configuration until the first charger comes counts
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return a.of(config), nil
	}

	return config, nil
}

// authorities are chargers' certificate authorities.
type authorities struct {
	file string

	mu     sync.Mutex
	looked time.Time
	text   []byte
	config *tls.Config // with the authorities of the text; nil if it is not made
}

// of is the configuration with the authorities that the file has now. While it cannot be read
// those before stay.
func (a *authorities) of(base *tls.Config) *tls.Config {
	a.mu.Lock()
	defer a.mu.Unlock()

	now := time.Now()
	if a.config != nil && now.Sub(a.looked) < authoritiesEvery {
		return a.config
	}

	a.looked = now
	if err := a.read(base); err != nil {
		slog.Warn(
			"chargers' certificate authorities stay as they were",
			"err",
			err,
		)
	}

	return a.config
}

// read reads the file, if it has changed. The caller holds mu, or is alone.
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

// certified reports whether a charger's certificate bears its id, as its common name or one of
// its DNS names.
func certified(r *http.Request, id string) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}

	leaf := r.TLS.VerifiedChains[0][0]

	return leaf.Subject.CommonName == id || slices.Contains(leaf.DNSNames, id)
}
