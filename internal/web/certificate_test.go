package web

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// writeCertificate makes a certificate for the loopback under the number, and keeps its files.
func writeCertificate(t *testing.T, certFile, keyFile string, number int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	about := &x509.Certificate{
		SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "flexd"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}

	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	bare, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	write := func(file, kind string, der []byte) {
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write(keyFile, "PRIVATE KEY", bare)
	write(certFile, "CERTIFICATE", cert)

	// Files of two writes are told apart by their time alone.
	at := time.Now().Add(time.Duration(number) * time.Second)
	if err := os.Chtimes(certFile, at, at); err != nil {
		t.Fatal(err)
	}
}

// syncBuffer is a log that may be written and read at once.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A renewed certificate is served without a restart, a broken one is not, and the log says so.
func TestServe_TLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")

	if _, err := TLS(cert, key, nil); err == nil {
		t.Error("files that are not there are taken")
	}

	writeCertificate(t, cert, key, 1)
	var log syncBuffer
	config, err := TLS(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	server := &Server{TLS: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		SetHeaders(w.Header(), r, "default-src 'none'")
		fmt.Fprint(w, r.Proto, " ", HTTPS(r))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()

	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})

	// serial asks once over a connection of its own.
	serial := func() int64 {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // the test looks at the certificate itself
		res, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}

		defer res.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(res.Body); err != nil {
			t.Fatal(err)
		}

		if text.String() != "HTTP/1.1 true" || res.Header.Get("Strict-Transport-Security") == "" {
			t.Errorf("%s, %v", text.String(), res.Header)
		}

		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}

	if got := serial(); got != 1 {
		t.Errorf("certificate %d", got)
	}

	eventually := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}

	writeCertificate(t, cert, key, 2)
	eventually("the renewed certificate is not served", func() bool { return serial() == 2 })

	if err := os.WriteFile(cert, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}

	eventually("the log says nothing of a broken certificate", func() bool {
		return serial() == 2 && strings.Contains(log.String(), "a changed certificate cannot be used")
	})

	if plain, err := http.Get("http://" + l.Addr().String()); err == nil {
		if plain.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP is answered with %d", plain.StatusCode)
		}

		plain.Body.Close()
	}
}
