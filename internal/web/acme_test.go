package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
)

// authority is one that gives certificates to whoever answers at a port of the loopback: every
// name leads there.
type authority struct {
	directory string
	own       string // PEM file of what its own certificate is by
	roots     *x509.CertPool
	orders    atomic.Int64 // that it was asked for
}

// newAuthority starts one that looks at the port of a listener.
func newAuthority(t *testing.T, port int) *authority {
	for name, value := range map[string]string{
		"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0",
	} {
		t.Setenv(name, value)
	}
	quiet := log.New(io.Discard, "", 0)

	names, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	resolver := &dns.Server{Listener: names, Handler: dns.HandlerFunc(answerLoopback)}
	go resolver.ActivateAndServe()
	t.Cleanup(func() { resolver.Shutdown() })

	profiles := map[string]ca.Profile{"default": {Description: "a certificate of five years"}}
	kept := db.NewMemoryStore()
	issuer := ca.New(quiet, kept, "", "ecdsa", 0, 1, profiles)
	looks := va.New(quiet, port, port, false, names.Addr().String(), kept)
	front := wfe.New(quiet, kept, looks, issuer, []string{"authority.example"}, false, false, 0, 0)

	a := &authority{roots: x509.NewCertPool(), own: filepath.Join(t.TempDir(), "own.pem")}
	handler := front.Handler()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/order-plz") {
			a.orders.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)

	a.directory = server.URL + wfe.DirectoryPath
	a.roots.AddCert(issuer.GetRootCert(0).Cert)

	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(a.own, text, 0o600); err != nil {
		t.Fatal(err)
	}

	return a
}

// answerLoopback answers that a name leads to the loopback, by IPv4 alone.
func answerLoopback(w dns.ResponseWriter, asked *dns.Msg) {
	answer := (&dns.Msg{}).SetReply(asked)
	for _, q := range asked.Question {
		if q.Qtype == dns.TypeA {
			head := dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}
			answer.Answer = append(answer.Answer, &dns.A{Hdr: head, A: net.IPv4(127, 0, 0, 1)})
		}
	}

	w.WriteMsg(answer)
}

// serveACME answers with certificates of the authority's until the test ends.
func serveACME(t *testing.T, l net.Listener, settings ACME) (stop func()) {
	t.Helper()
	config, err := settings.TLS()
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	server := &Server{TLS: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()

	return func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// askHost asks the listener once under the name.
func askHost(host string, l net.Listener, roots *x509.CertPool) (serial string, err error) {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
		},
	}

	res, err := (&http.Client{Transport: transport}).Get("https://" + host + "/")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()

	return res.TLS.PeerCertificates[0].SerialNumber.String(), nil
}

// Certificates are asked for by the names that are allowed, one each, kept over a restart, and
// asked for under no other name. Where there is none, the log says so, once a minute.
func TestACME(t *testing.T) {
	listen := func(address string) net.Listener {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}

	l := listen("127.0.0.1:0")
	a := newAuthority(t, l.Addr().(*net.TCPAddr).Port)

	var text syncBuffer
	settings := ACME{
		Hosts:     []string{"flexd.example.com", "second.example.com"},
		Mail:      "ada@example.com",
		Cache:     filepath.Join(t.TempDir(), "certificates"),
		Directory: a.directory,
		Root:      a.own,
		Log:       slog.New(slog.NewTextHandler(&text, nil)),
	}
	stop := serveACME(t, l, settings)

	serial := map[string]string{}
	for _, host := range settings.Hosts {
		for range 2 {
			got, err := askHost(host, l, a.roots)
			if err != nil {
				t.Fatalf("%s: %v; the log says %s", host, err, text.String())
			}

			if before := serial[host]; before != "" && before != got {
				t.Errorf("%s has another certificate on the second request", host)
			}
			serial[host] = got
		}
	}

	if _, err := askHost("elsewhere.example.com", l, a.roots); err == nil {
		t.Error("a certificate was asked for under a name that is not ours")
	}
	if int(a.orders.Load()) != len(settings.Hosts) {
		t.Errorf("the authority was asked for %d certificates, not %d", a.orders.Load(), len(settings.Hosts))
	}
	if text.String() != "" {
		t.Errorf("the log says %s", text.String())
	}

	address := l.Addr().String()
	stop()
	l = listen(address)
	defer serveACME(t, l, settings)()

	got, err := askHost("flexd.example.com", l, a.roots)
	if err != nil || got != serial["flexd.example.com"] || int(a.orders.Load()) != len(settings.Hosts) {
		t.Errorf("after a restart the certificate is %s (%v), and was %s; %d orders", got, err, serial["flexd.example.com"], a.orders.Load())
	}
}

// An authority that cannot be reached leaves its name without a certificate, which the log says
// once.
func TestACME_Unreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	nobody := httptest.NewTLSServer(http.NotFoundHandler())
	directory := nobody.URL
	nobody.Close()

	var text syncBuffer
	defer serveACME(t, l, ACME{
		Hosts:     []string{"flexd.example.com"},
		Cache:     t.TempDir(),
		Directory: directory,
		Log:       slog.New(slog.NewTextHandler(&text, nil)),
	})()

	for range 3 {
		if _, err := askHost("flexd.example.com", l, nil); err == nil {
			t.Fatal("there is a certificate from nobody")
		}
	}
	if _, err := askHost("elsewhere.example.com", l, nil); err == nil {
		t.Error("there is a certificate for any name")
	}

	if n := strings.Count(text.String(), "there is no certificate"); n != 1 {
		t.Errorf("the log says %d times that there is none: %s", n, text.String())
	}
}

// TestACME_Settings holds what is refused before anything is served.
func TestACME_Settings(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(none, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}

	many := make([]string, ACMEHostsMax+1)
	for i := range many {
		many[i] = fmt.Sprintf("h%d.example.com", i)
	}

	good := []string{"flexd.example.com"}
	for name, test := range map[string]struct {
		settings ACME
		says     string
	}{
		"no host":         {ACME{Cache: "c"}, "1 to 16 names, not 0"},
		"a host too many": {ACME{Hosts: many, Cache: "c"}, "not 17"},
		"a bare name":     {ACME{Hosts: []string{"flexd"}, Cache: "c"}, "such as flexd.example.com"},
		"a port":          {ACME{Hosts: []string{"flexd.example.com:443"}, Cache: "c"}, "such as flexd.example.com"},
		"a star":          {ACME{Hosts: []string{"*.example.com"}, Cache: "c"}, "such as flexd.example.com"},
		"capitals":        {ACME{Hosts: []string{"Flexd.example.com"}, Cache: "c"}, "such as flexd.example.com"},
		"an address":      {ACME{Hosts: []string{"192.0.2.7"}, Cache: "c"}, "such as flexd.example.com"},
		"a dot behind":    {ACME{Hosts: []string{"flexd.example.com."}, Cache: "c"}, "such as flexd.example.com"},
		"no folder":       {ACME{Hosts: good}, "a folder"},
		"no root":         {ACME{Hosts: good, Cache: t.TempDir(), Root: none}, "no certificate in PEM"},
		"no root's file":  {ACME{Hosts: good, Cache: t.TempDir(), Root: none + "x"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.settings.TLS()
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, which does not say %q", err, test.says)
			}
		})
	}

	edge := ACME{Hosts: many[:ACMEHostsMax], Cache: t.TempDir()}
	if _, err := edge.TLS(); err != nil {
		t.Error(err)
	}
}
