package ocppserver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"

	"flexd/internal/web"
)

// TLS returns how chargers are served over TLS: with a certificate whose files are read again
// when they change and, if clientCA is not empty, with certificates of their own that it must
// have signed.
func TLS(certFile, keyFile, clientCA string) (*tls.Config, error) {
	config, err := web.TLS(certFile, keyFile, nil)
	if err != nil || clientCA == "" {
		return config, err
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

// certified reports whether a charger's certificate bears its id, as its common name or one of
// its DNS names.
func certified(r *http.Request, id string) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}

	leaf := r.TLS.VerifiedChains[0][0]

	return leaf.Subject.CommonName == id || slices.Contains(leaf.DNSNames, id)
}
