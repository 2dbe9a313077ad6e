package ocppserver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// TLS returns how chargers are served over TLS: with a certificate whose files are read again
// when they change and, if clientCA is not empty, with certificates of their own that it must
// have signed.
func TLS(certFile, keyFile, clientCA string) (*tls.Config, error) {
	files := &certificateFiles{cert: certFile, key: keyFile}
	if _, err := files.get(nil); err != nil {
		return nil, err
	}

	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get, NextProtos: []string{"http/1.1"}}
	if clientCA == "" {
		return config, nil
	}

	text, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, err
	}

	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", clientCA)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert

	return config, nil
}

// certificateFiles is a certificate that may be renewed while it is used.
type certificateFiles struct {
	cert, key string

	mu      sync.Mutex
	looked  time.Time
	changed time.Time
	current *tls.Certificate
}

// get returns the certificate. New files that do not fit each other are tried again later.
func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	now := time.Now()
	if f.current != nil && now.Sub(f.looked) < fileEvery {
		return f.current, nil
	}

	f.looked = now
	info, err := os.Stat(f.cert)
	if err == nil && f.current != nil && info.ModTime().Equal(f.changed) {
		return f.current, nil
	}

	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		if f.current != nil {
			return f.current, nil
		}
		return nil, err
	}

	f.current = &pair
	if info != nil {
		f.changed = info.ModTime()
	}

	return f.current, nil
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
