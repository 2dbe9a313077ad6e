package web

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateEvery is how often the files of a certificate are looked at while it is used.
const certificateEvery = time.Second

// TLS returns how to serve with the certificate of two PEM files, which are read again when
// they change. Files that cannot be read, or do not fit each other, are an error here; later
// the certificate of before stays, and the log says so. HTTP/1.1 alone is offered: a limit
// of connections would not bound the requests of HTTP/2.
func TLS(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	if log == nil {
		log = slog.Default()
	}

	files := &certificateFiles{
		cert: certFile,
		key:  keyFile,
		log:  log,
	}

	if _, err := files.get(nil); err != nil {
		return nil, err
	}

	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: files.get,
		NextProtos:     []string{"http/1.1"},
	}, nil
}

// certificateFiles is a certificate that may be renewed while it is used.
type certificateFiles struct {
	cert string
	key  string
	log  *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	changed time.Time // when the file of the current certificate was written
	current *tls.Certificate
}

// get returns the certificate. New files that do not fit each other are tried again later.
func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	now := time.Now()
	if f.current != nil && now.Sub(f.looked) < certificateEvery {
		return f.current, nil
	}

	f.looked = now
	info, err := os.Stat(f.cert)
	if err == nil && f.current != nil && info.ModTime().Equal(f.changed) {
		return f.current, nil
	}

	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil && f.current == nil {
		return nil, err
	}

	if err != nil {
		f.log.Error(
			"a changed certificate cannot be used: the one of before is",
			"file",
			f.cert,
			"until",
			f.current.Leaf.NotAfter,
			"err",
			err,
		)

		return f.current, nil
	}

	f.current = &pair
	if info != nil {
		f.changed = info.ModTime()
	}

	return f.current, nil
}
