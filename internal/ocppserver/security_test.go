package ocppserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/web"
)

// TestGuard_Guesses: a charger's id has a few wrong passwords at an address, and then one more
// from time to time.
func TestGuard_Guesses(t *testing.T) {
	var g guard
	now := night
	cp1 := guess{"a", "CP1"}
	for i := range narrowPace.most {
		if !g.mayGuess(cp1, false, now) {
			t.Fatalf("guess %d is not judged", i)
		}

		g.noteGuess(cp1, now)
	}

	if g.mayGuess(cp1, true, now) || g.mayGuess(cp1, false, now.Add(narrowPace.every-1)) {
		t.Error("one more is judged")
	}

	if !g.mayGuess(guess{"b", "CP1"}, false, now) || !g.mayGuess(guess{"a", "CP2"}, false, now) {
		t.Error("another address is not judged, or another charger")
	}

	now = now.Add(narrowPace.every)
	if !g.mayGuess(cp1, false, now) {
		t.Error("later, one is not judged")
	}

	g.noteGuess(cp1, now)
	if g.mayGuess(cp1, false, now) {
		t.Error("two are")
	}
}

// TestGuard_Neighbours: however many ids are guessed at from an address, a charger that showed
// its password before is judged there, and others again after a while.
func TestGuard_Neighbours(t *testing.T) {
	var g guard
	now := night
	for i := range widePace.most {
		from := guess{"a", strconv.Itoa(i)}
		if !g.mayGuess(from, false, now) {
			t.Fatalf("guess %d is not judged", i)
		}
		g.noteGuess(from, now)
	}

	next := guess{"a", "CP1"}
	if g.mayGuess(next, false, now.Add(widePace.every-1)) {
		t.Error("one more is judged")
	}
	if !g.mayGuess(next, true, now) {
		t.Error("a charger that is known is shut out by its neighbours")
	}
	if !g.mayGuess(next, false, now.Add(widePace.every)) {
		t.Error("later, one is not judged")
	}
}

// TestBridge_NeighbourWithAWrongPassword: of two chargers behind one address, one with a wrong
// password shuts the other out neither by itself nor after the bridge began anew; nor do
// strangers' guesses through a proxy that names them.
func TestBridge_NeighbourWithAWrongPassword(t *testing.T) {
	b := New(Settings{
		Passwords:      map[string]string{"CP1": "right", "CP2": "right"},
		TrustedProxies: web.Proxies{netip.MustParsePrefix("127.0.0.1/32")},
		Log:            slog.New(slog.DiscardHandler),
	})

	login := func(from, named, id, password string) int {
		r := httptest.NewRequest("GET", "/"+id, nil)
		r.RemoteAddr = net.JoinHostPort(from, "1024")
		r.Header.Set("X-Forwarded-For", named)
		r.SetBasicAuth(id, password)
		w := httptest.NewRecorder()
		if _, ok := b.admit(w, r, id); ok {
			return http.StatusOK
		}

		return w.Code
	}

	const depot = "192.0.2.1"
	for range 3 * narrowPace.most {
		login(depot, "", "CP2", "wrong")
	}
	if got := login(depot, "", "CP2", "right"); got != http.StatusTooManyRequests {
		t.Errorf("after many guesses the charger itself: %d", got)
	}
	if got := login(depot, "", "CP1", "right"); got != http.StatusOK {
		t.Errorf("its neighbour: %d", got)
	}

	for i := range 3 * widePace.most {
		login("127.0.0.1", "203.0.113.9", "X"+strconv.Itoa(i), "wrong")
	}
	if got := login("127.0.0.1", "203.0.113.9", "CP1", "right"); got != http.StatusTooManyRequests {
		t.Errorf("from the guesser's address: %d", got)
	}
	if got := login("127.0.0.1", "203.0.113.10", "CP1", "right"); got != http.StatusOK {
		t.Errorf("from another address through the same proxy: %d", got)
	}

	// a machine has a whole /64 to come from
	for i := range 3 * widePace.most {
		login(fmt.Sprintf("2001:db8:1:1::%x", i), "", "Y"+strconv.Itoa(i), "wrong")
	}
	if got := login("2001:db8:1:1:ffff::1", "", "CP1", "right"); got != http.StatusTooManyRequests {
		t.Errorf("from a further address of the guesser's network: %d", got)
	}
	if got := login("2001:db8:1:2::1", "", "CP1", "right"); got != http.StatusOK {
		t.Errorf("from another network: %d", got)
	}
}

// TestGuard_Places: without a password an address has few places, and many addresses are not
// all remembered.
func TestGuard_Places(t *testing.T) {
	var g guard
	for range strangersMax {
		if !g.enter("a", night) {
			t.Fatal("no place")
		}
	}

	if g.enter("a", night) {
		t.Error("one place too many")
	}

	g.leave("a", night)
	if !g.enter("a", night) {
		t.Error("a place that is free is not given")
	}

	for i := range 2 * addressesMax {
		g.noteGuess(guess{strconv.Itoa(i), strconv.Itoa(i)}, night)
	}

	if len(g.addresses) > addressesMax || len(g.wrong) > addressesMax || g.enter("a", night) {
		t.Errorf("%d addresses and %d ids are remembered, and not the address with connections", len(g.addresses), len(g.wrong))
	}
}

// TestBridge_Ambiguous: no charger speaks for another's connector.
func TestBridge_Ambiguous(t *testing.T) {
	b := New(Settings{Passwords: map[string]string{"CP1": "a", "CP1-2": "b", "A-1": "c"}})
	for _, x := range []struct {
		name, id string
		want     bool
	}{
		{"CP1-2", "CP1", true}, {"CP1-2", "CP1-2", true}, {"CP1-1", "CP1", false}, {"CP1", "CP1", false},
		{"A-1", "A-1", false}, {"CP1-17", "CP1-17", false}, {"CP1-2-1", "CP1-2", false},
	} {
		if got := b.ambiguous(x.name, x.id); got != x.want {
			t.Errorf("%s for %s: %v", x.name, x.id, got)
		}
	}
}

// TestBridge_PushIsBound: a push of another asset, or one older than the last, is not taken.
func TestBridge_PushIsBound(t *testing.T) {
	b := New(Settings{Log: slog.New(slog.DiscardHandler)})
	c := &charger{b: b, id: "CP1", wakeup: make(chan struct{}, 1), connectors: map[int]*connector{}}
	mine, other := flex.AssetID{1}, flex.AssetID{2}
	c.connector(1).asset = client.AssetResponse{ID: client.AssetID(mine)}
	b.claim("CP1", socket{c, 1})
	of := func(asset flex.AssetID, event byte) *pushTarget {
		p := profileOf(t, 0, 7400)
		p.ID = ocpp.ProfileID(asset)

		return &pushTarget{event: client.EventID{0, 0, 0, 0, 0, event}, profile: p}
	}

	for _, x := range []struct {
		name  string
		asset flex.AssetID
		event byte
		want  error
	}{
		{"the first", mine, 5, nil}, {"the same", mine, 5, nil}, {"another asset's", other, 6, errOtherAsset},
		{"an older one", mine, 4, errOlder}, {"a newer one", mine, 7, nil}, {"the first again", mine, 5, errOlder},
	} {
		if err := b.deliver("CP1", of(x.asset, x.event)); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestCharger_WithoutPassword: what comes without a password is not passed on.
func TestCharger_WithoutPassword(t *testing.T) {
	c := &charger{b: New(Settings{}), id: "CP1"}
	c.noteLogin(false)
	c.report(report{KWh: 1})
	if len(c.reports) != 0 {
		t.Error("a reading of a charger without a password is kept")
	}
}

// TestChargersFile: passwords are kept as hashes, may be sent as the bytes of their hex digits,
// and are read again when the file changes.
func TestChargersFile(t *testing.T) {
	const password = "00112233445566778899aabbccddeeff00112233"
	line, err := HashPassword("CP1", password)
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "chargers")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write("# a comment\n\n" + line + "\n")
	f, err := ReadChargers(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	s, ok := f.secret("CP1", night)
	raw, _ := hex.DecodeString(password)
	if !ok || !s.matches(password) || !s.matches(string(raw)) || s.matches("wrong") || s.matches("") {
		t.Errorf("the password is not judged rightly: %v", ok)
	}

	if _, ok := f.secret("CP2", night); ok {
		t.Error("an unknown charger has a password")
	}

	second, _ := HashPassword("CP2", password)
	write(line + "\n" + second + "\n")
	if _, ok := f.secret("CP2", night.Add(time.Minute)); !ok {
		t.Error("a new line is not read")
	}

	// A password is changed without a gap: both are right until the older line is taken away.
	newer, _ := HashPassword("CP1", "another password of it")

	for i, x := range []struct {
		text       string
		older, new bool
	}{{line + "\n" + newer + " floor=1.4\n" + second, true, true}, {newer + "\n" + second, false, true}} {
		write(x.text)
		l, _ := f.line("CP1", night.Add(time.Duration(2+i)*time.Minute))
		if l.secret.matches(password) != x.older || l.secret.matches("another password of it") != x.new || l.secret.matches("") {
			t.Errorf("with %q the older is right: %v, the newer: %v", x.text, l.secret.matches(password), l.secret.matches("another password of it"))
		}

		if (l.floor != nil) != (i == 0) {
			t.Errorf("with %q its floor is %v", x.text, l.floor)
		}
	}

	write("nonsense that is neither here nor there, and longer than what was there before it was written over it\n")
	if _, ok := f.secret("CP2", night.Add(9*time.Minute)); !ok {
		t.Error("a bad file took what was known")
	}

	_, l, err := parseCharger(line + " floor=1.4 phases=3")
	if err != nil || *l.floor != 1400 || l.phases != 3 {
		t.Errorf("a line with a floor and phases is %+v, %v", l, err)
	}

	for _, bad := range []string{line + " floor=x", line + " phases=2", line + " floor=-1", line + " flor=1", "CP1", "CP1 md5:00:00", "CP1 sha256:zz:00", "CP1 sha256:00:00", "C/P " + line[4:]} {
		if _, _, err := parseCharger(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}

	if _, err := HashPassword("CP1", "fifteen letters"); err == nil {
		t.Error("a short password is hashed")
	}
}

// authority makes certificates for the tests.
type authority struct {
	*testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	dir  string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{T: t, dir: t.TempDir()}
	a.key, a.cert = a.sign("authority", true)
	return a
}

func (a *authority) sign(name string, ca bool) (*ecdsa.PrivateKey, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}

	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: ca, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}

	parent, signer := a.cert, a.key
	if ca {
		parent, signer = c, key
	}

	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.Fatal(err)
	}

	signed, _ := x509.ParseCertificate(der)

	return key, signed
}

// files writes a certificate and its key.
func (a *authority) files(name string) (cert, key string) {
	k, c := a.sign(name, false)
	der, _ := x509.MarshalECPrivateKey(k)
	cert, key = filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")
	for path, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Raw}, key: {Type: "EC PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			a.Fatal(err)
		}
	}
	return cert, key
}

// TestTLS_Certified: a charger's certificate lets in the charger of its name and no other,
// and none lets in nobody.
func TestTLS_Certified(t *testing.T) {
	a := newAuthority(t)
	ca := filepath.Join(a.dir, "ca")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}

	cert, key := a.files("bridge")
	config, err := TLS(cert, key, ca)
	if err != nil {
		t.Fatal(err)
	}

	b := New(Settings{Password: "shared", Log: slog.New(slog.DiscardHandler)})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !b.proves(r.URL.Path[1:], r) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))

	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)

	mine, mineKey := a.files("CP1")
	pair, err := tls.LoadX509KeyPair(mine, mineKey)
	if err != nil {
		t.Fatal(err)
	}

	get := func(id string, certificates ...tls.Certificate) int {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}}
		defer c.CloseIdleConnections()
		resp, err := c.Get(s.URL + "/" + id)
		if err != nil {
			return 0
		}

		resp.Body.Close()

		return resp.StatusCode
	}

	if own, other, none := get("CP1", pair), get("CP2", pair), get("CP1"); own != 200 || other != 401 || none != 0 {
		t.Errorf("the charger's own %d, another's %d, none %d", own, other, none)
	}

	if _, err := TLS(cert, mineKey, ""); err == nil {
		t.Error("a certificate without its key is taken")
	}
}

// TestTLS_Rotation: a new certificate is shown to the next charger, who was there stays, and
// while the files do not go together the one before is shown.
func TestTLS_Rotation(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.files("bridge")
	config, err := TLS(cert, key, "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()

	dial := func() (*tls.Conn, string) {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c, c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}

	echo := func(c *tls.Conn) {
		t.Helper()
		b := []byte("x")
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
	}

	replace := func(from, to string) {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	old, name := dial()
	if echo(old); name != "bridge" {
		t.Fatalf("the certificate is of %s", name)
	}
	newCert, newKey := a.files("newer-bridge")
	replace(newCert, cert)
	if _, name := dial(); name != "bridge" {
		t.Errorf("with half of the files the certificate is of %s", name)
	}

	replace(newKey, key)
	deadline := time.Now().Add(time.Minute)
	for _, name := dial(); name != "newer-bridge"; _, name = dial() {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is never shown")
		}
		time.Sleep(100 * time.Millisecond)
	}
	echo(old)
}

// TestTLS_Authorities: an authority that is added to the file lets its chargers in without a
// restart, and one that is taken out keeps them out. A file that cannot be read changes
// nothing.
func TestTLS_Authorities(t *testing.T) {
	old, next := newAuthority(t), newAuthority(t)
	ca := filepath.Join(old.dir, "ca")
	write := func(all ...*authority) {
		var text []byte
		for _, a := range all {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
		}
		if err := os.WriteFile(ca, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write(old)
	cert, key := old.files("bridge")
	config, err := TLS(cert, key, ca)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = config
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)

	admits := func(a *authority) bool {
		cert, key := a.files("CP1")
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}}
		defer c.CloseIdleConnections()
		resp, err := c.Get(s.URL)
		if err == nil {
			resp.Body.Close()
		}

		return err == nil
	}

	wants := func(what string, oldOne, nextOne bool) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for admits(old) != oldOne || admits(next) != nextOne {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the older one is admitted: %v, the next one: %v", what, admits(old), admits(next))
			}
			time.Sleep(100 * time.Millisecond)
		}
	}

	wants("at first", true, false)
	write(old, next)
	wants("with both", true, true)
	write(next)
	wants("with the next one alone", false, true)

	a := &authorities{file: ca}
	before := a.configFor(config)
	write()
	a.checkedAt = time.Time{}
	if after := a.configFor(config); after != before || after.ClientCAs == nil {
		t.Error("an empty file took away who was known")
	}
}

// TestCharger_StateUnwritable: a state that could not be written is written as soon as it can
// be, though nothing changed since.
func TestCharger_StateUnwritable(t *testing.T) {
	b := New(Settings{State: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	c := &charger{b: b, id: "CP1", connectors: map[int]*connector{}}
	c.up = newUpstream(t.Context(), c)
	c.connector(1).asset = client.AssetResponse{ID: client.AssetID{1}}

	inTheWay := b.statePath(c.id) + ".new"
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	c.saveState()
	if _, err := os.Stat(b.statePath(c.id)); err == nil {
		t.Fatal("nothing was in the way")
	}

	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	c.saveState()
	if _, err := os.Stat(b.statePath(c.id)); err != nil {
		t.Error(err)
	}
}
