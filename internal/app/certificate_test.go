package app_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
	"flexd/internal/web"
)

// certified makes a certificate that holds until the instant, signed by its own key.
func certified(t *testing.T, number int64, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	about := &x509.Certificate{
		SerialNumber: big.NewInt(number),
		Subject:      pkix.Name{CommonName: "acme"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    until.Add(-48 * time.Hour),
		NotAfter:     until,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}

	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// ownTLS is how a server answers with a certificate of its own, asking clients for theirs.
func ownTLS(t *testing.T) *tls.Config {
	t.Helper()
	mine := certified(t, 1, time.Now().Add(24*time.Hour))
	key, err := x509.MarshalPKCS8PrivateKey(mine.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	files := [2]string{filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")}
	for i, block := range []*pem.Block{
		{Type: "CERTIFICATE", Bytes: mine.Certificate[0]},
		{Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(files[i], pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	config, err := web.TLS(files[0], files[1], nil)
	if err != nil {
		t.Fatal(err)
	}

	return web.AskForCertificates(config)
}

// serving has flexd answer on the database until the test ends, and returns where.
func serving(t *testing.T, database string, s app.Settings) (*app.App, string) {
	t.Helper()
	s.Database, s.Keys, s.Environment = database, storetest.Keys(t), flex.Sandbox
	s.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	h, err := app.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, l) }()

	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		h.Close()
	})

	return h, l.Addr().String()
}

// showing is a client that shows a certificate, if there is one, and takes any server's.
func showing(t *testing.T, c *tls.Certificate) *http.Client {
	config := &tls.Config{InsecureSkipVerify: true}
	if c != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)

	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// asked sends a request with a token and returns the status and what it says.
func asked(t *testing.T, c *http.Client, where, token string, fields ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, where+"/entities/site", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}

	return sent(t, c, r)
}

func sent(t *testing.T, c *http.Client, r *http.Request) (int, string) {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}

	return resp.StatusCode, string(body)
}

// A credential that is bound to certificates is of use over a connection that shows one of them
// alone, at the login and afterwards; two at once while one is renewed.
func TestServe_ClientCertificates(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		h, at := serving(t, database, app.Settings{TLS: ownTLS(t)})
		org, password, err := h.Access.AddOrg(t.Context(), "acme", "acme", "")
		if err != nil {
			t.Fatal(err)
		}

		tomorrow := time.Now().Add(24 * time.Hour)
		older, newer, other := certified(t, 2, tomorrow), certified(t, 3, tomorrow), certified(t, 4, tomorrow)
		expired := certified(t, 5, time.Now().Add(-time.Hour))

		bind := func(cs ...tls.Certificate) {
			t.Helper()
			var prints []string
			for _, c := range cs {
				prints = append(prints, web.Fingerprint(c.Leaf))
			}
			if err := h.Access.BindCredential(t.Context(), org.ID, "acme", prints); err != nil {
				t.Fatal(err)
			}
		}

		login := func(c *http.Client) (int, string) {
			t.Helper()
			form := url.Values{"username": {"acme"}, "password": {password.Reveal()}}
			r, err := http.NewRequest(http.MethodPost, "https://"+at+"/auth/token-form", strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")

			return sent(t, c, r)
		}

		issued, err := h.Access.Login(t.Context(), "acme", password, "test")
		if err != nil {
			t.Fatal(err)
		}
		token, none := issued.Token.Reveal(), showing(t, nil)

		check := func(what string, c *http.Client, want int, says string) {
			t.Helper()
			status, said := asked(t, c, "https://"+at, token)
			if status != want || !strings.Contains(said, says) {
				t.Errorf("%s: %d %s, want %d %q", what, status, said, want, says)
			}
			if status, said := login(c); status != want || !strings.Contains(said, says) {
				t.Errorf("login, %s: %d %s, want %d %q", what, status, said, want, says)
			}
		}

		check("bound to none, without a certificate", none, 200, "")
		check("bound to none, with one", showing(t, &other), 200, "")
		bind(older, expired)
		check("without a certificate", none, 401, "this request showed none")
		check("with another's certificate", showing(t, &other), 401, web.Fingerprint(other.Leaf))
		check("with an expired certificate", showing(t, &expired), 401, "show one that holds now")
		check("with its certificate", showing(t, &older), 200, "")

		// a connection that stays open is judged at each request
		kept := showing(t, &older)
		check("before it is renewed", kept, 200, "")
		bind(older, newer)
		check("while it is renewed, with the older", kept, 200, "")
		check("while it is renewed, with the newer", showing(t, &newer), 200, "")
		bind(newer)
		check("once it is renewed, with the older", kept, 401, "have the one with the SHA-256 fingerprint")
		check("once it is renewed, with the newer", showing(t, &newer), 200, "")

		// the header is no certificate where none was named
		passed := ":" + base64.StdEncoding.EncodeToString(newer.Certificate[0]) + ":"
		if status, said := asked(t, none, "https://"+at, token, "Client-Cert", passed); status != 401 {
			t.Errorf("with a header that nobody asked for: %d %s", status, said)
		}

		bind()
		check("bound to none again", none, 200, "")
	})
}

// What a proxy says of a client's certificate is believed of a trusted one alone, and where it
// says two things nothing is.
func TestServe_ClientCertificateHeader(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		mine := certified(t, 2, time.Now().Add(24*time.Hour))
		settings := app.Settings{
			CertificateHeader: "Client-Cert",
			TrustedProxies:    []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			TLS:               ownTLS(t),
		}
		h, trusting := serving(t, database, settings)
		settings.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		_, doubting := serving(t, database, settings)

		org, password, err := h.Access.AddOrg(t.Context(), "acme", "acme", "")
		if err != nil {
			t.Fatal(err)
		}
		issued, err := h.Access.Login(t.Context(), "acme", password, "test")
		if err != nil {
			t.Fatal(err)
		}
		err = h.Access.BindCredential(t.Context(), org.ID, "acme", []string{web.Fingerprint(mine.Leaf)})
		if err != nil {
			t.Fatal(err)
		}

		token, none, own := issued.Token.Reveal(), showing(t, nil), showing(t, &mine)
		standard := ":" + base64.StdEncoding.EncodeToString(mine.Certificate[0]) + ":"
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: mine.Certificate[0]})
		nginx := url.PathEscape(string(text))

		for _, tt := range []struct {
			what   string
			client *http.Client
			at     string
			want   int
			fields []string
		}{
			{"a trusted proxy, as in RFC 9440", none, trusting, 200, []string{"Client-Cert", standard}},
			{"a trusted proxy, as by nginx", none, trusting, 200, []string{"Client-Cert", nginx}},
			{"a trusted proxy, without a header", none, trusting, 401, nil},
			{"a trusted proxy, two headers", none, trusting, 401, []string{"Client-Cert", standard, "Client-Cert", standard}},
			{"a trusted proxy, another header", none, trusting, 401, []string{"X-Client-Cert", standard}},
			{"a trusted proxy, cut short", none, trusting, 401, []string{"Client-Cert", standard[:80] + ":"}},
			{"a trusted proxy's own certificate", own, trusting, 401, nil},
			{"another proxy", none, doubting, 401, []string{"Client-Cert", standard}},
			{"another proxy that says so", none, doubting, 401, []string{"Client-Cert", standard, "X-Forwarded-For", "127.0.0.1"}},
			{"no proxy", own, doubting, 200, nil},
		} {
			status, said := asked(t, tt.client, "https://"+tt.at, token, tt.fields...)
			if status != tt.want {
				t.Errorf("%s: %d %s, want %d", tt.what, status, said, tt.want)
			}
		}
	})
}
