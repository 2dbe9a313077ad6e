package ocppserver_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/iso15118"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/security"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/transactions"
	"github.com/lorenzodonini/ocpp-go/ocpp2.0.1/types"
	"github.com/lorenzodonini/ocpp-go/ws"

	"flexd/internal/access"
	"flexd/internal/ocppserver"
)

// issuer makes certificates for the tests, beside the bridge's own way of making them.
type issuer struct {
	*testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newIssuer(t *testing.T) *issuer {
	a := &issuer{T: t, dir: t.TempDir()}
	a.key, a.cert = a.pair("authority", nil)
	a.save("ca", a.key, a.cert)

	return a
}

func (a *issuer) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// pair makes a key and its certificate: the authority's own if nobody else's.
func (a *issuer) pair(name string, hosts []string) (*ecdsa.PrivateKey, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: hosts,
		NotBefore: evening.AddDate(-1, 0, 0), NotAfter: evening.AddDate(5, 0, 0), IsCA: hosts == nil, BasicConstraintsValid: true,
	}

	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}

	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	a.must(err)
	signed, err := x509.ParseCertificate(der)
	a.must(err)

	return key, signed
}

func (a *issuer) path(name string) string { return filepath.Join(a.dir, name) }

func (a *issuer) save(name string, key *ecdsa.PrivateKey, c *x509.Certificate) {
	der, err := x509.MarshalECPrivateKey(key)
	a.must(err)
	a.must(os.WriteFile(a.path(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o600))
	a.must(os.WriteFile(a.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
}

// request is a charger's request for a certificate, in PEM.
func (a *issuer) request(key any, name string) string {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: name, Organization: []string{"Acme"}},
	}, key)
	a.must(err)

	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// leaf is the certificate of a chain that a charger was sent, as it can be shown with its key.
func (a *issuer) leaf(key crypto.Signer, chain string) tls.Certificate {
	block, _ := pem.Decode([]byte(chain))
	if block == nil {
		a.Fatalf("the chain is %q", chain)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	a.must(err)

	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}
}

// secure has the next bridge of a bench serve over TLS by its clock, with the authority.
func (a *issuer) secure(s *bench) *ocppserver.Authority {
	key, cert := a.pair("bridge", []string{"bridge.example.com"})
	a.save("bridge", key, cert)
	config, err := ocppserver.TLS(a.path("bridge.crt"), a.path("bridge.key"), a.path("ca.crt"))
	a.must(err)
	config.Time, config.ClientAuth = s.now, tls.VerifyClientCertIfGiven
	s.tls = config
	signs, err := ocppserver.ReadAuthority(a.path("ca.crt"), a.path("ca.key"))
	a.must(err)

	return signs
}

// secureStation is a station of the library's that knows the messages about certificates.
type secureStation struct {
	*station
	signed chan string // chains that came
}

// dialSecure connects a station over TLS: with certificates, or with a password if it has none.
func dialSecure(s *bench, a *issuer, tx string, certificates ...tls.Certificate) *secureStation {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	socket := ws.NewTLSClient(&tls.Config{RootCAs: roots, Certificates: certificates, ServerName: "bridge.example.com", Time: s.now})
	if len(certificates) == 0 {
		socket.SetBasicAuth("CP1", "shared")
	}

	f := &secureStation{stationOn(s, tx, socket), make(chan string, 9)}
	f.SetSecurityHandler(f)
	f.SetISO15118Handler(f)
	f.connect()

	return f
}

func (f *secureStation) OnCertificateSigned(r *security.CertificateSignedRequest) (*security.CertificateSignedResponse, error) {
	f.signed <- r.CertificateChain
	if r.TypeOfCertificate != types.ChargingStationCert {
		f.Errorf("the type of its certificate is %q", r.TypeOfCertificate)
	}

	return security.NewCertificateSignedResponse(security.CertificateSignedStatusAccepted), nil
}

func (f *secureStation) OnInstallCertificate(*iso15118.InstallCertificateRequest) (*iso15118.InstallCertificateResponse, error) {
	return iso15118.NewInstallCertificateResponse(iso15118.CertificateStatusAccepted), nil
}

func (f *secureStation) OnDeleteCertificate(*iso15118.DeleteCertificateRequest) (*iso15118.DeleteCertificateResponse, error) {
	return iso15118.NewDeleteCertificateResponse(iso15118.DeleteCertificateStatusNotFound), nil
}

func (f *secureStation) OnGetInstalledCertificateIds(*iso15118.GetInstalledCertificateIdsRequest) (*iso15118.GetInstalledCertificateIdsResponse, error) {
	return iso15118.NewGetInstalledCertificateIdsResponse(iso15118.GetInstalledCertificateStatusNotFound), nil
}

// renew asks for a certificate for a new key, and returns what comes.
func (f *secureStation) renew(a *issuer) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	f.must(err)
	answer, err := f.SignCertificate(a.request(key, "serial number 7"))
	f.must(err)
	if answer.Status != types.GenericStatusAccepted {
		f.Fatalf("its request was answered %s %+v", answer.Status, answer.StatusInfo)
	}

	return a.leaf(key, <-f.signed)
}

// TestCertificates_Station: a station that comes with a password over TLS is given its first
// certificate, comes with that, and renews it in the middle of a transaction: its connection
// stays, and the new one lets it in while the old one still does.
func TestCertificates_Station(t *testing.T) {
	a := newIssuer(t)
	s := open(t, ocppserver.Settings{})
	s.halt()
	s.bridge(ocppserver.Settings{Authority: a.secure(s), Timing: bootless})

	first := dialSecure(s, a, "")
	old := first.renew(a)
	first.leave()
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	_, err := old.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: s.now().AddDate(0, 11, 0), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	name := old.Leaf.Subject
	if err != nil || name.CommonName != "CP1" || name.Organization[0] != "Acme" || old.Leaf.IsCA || old.Leaf.NotAfter.After(s.now().AddDate(1, 0, 1)) {
		t.Errorf("its certificate is of %v until %v, an authority: %v; %v", name, old.Leaf.NotAfter, old.Leaf.IsCA, err)
	}

	f := dialSecure(s, a, "", old)
	f.begin()
	renewed := f.renew(a)
	f.event(transactions.TransactionEventUpdated, f.now(), transactions.ChargingStateCharging, types.ReadingContextSamplePeriodic)
	if !f.IsConnected() {
		t.Error("its connection was lost over the new certificate")
	}

	for _, next := range []tls.Certificate{renewed, old} {
		again := dialSecure(s, a, f.tx, next)
		again.bound()
		again.leave()
	}
	if !s.plugged() {
		t.Error("the session ended over the new certificate")
	}
}

// TestCertificates_Refused: what cannot be signed is refused with a reason in the standard's words.
func TestCertificates_Refused(t *testing.T) {
	a := newIssuer(t)
	s := open(t, ocppserver.Settings{})
	s.halt()
	s.bridge(ocppserver.Settings{Authority: a.secure(s)})
	f := dialSecure(s, a, "")

	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	s.must(err)
	good := a.request(a.key, "CP1")
	block, _ := pem.Decode([]byte(good))
	block.Bytes[len(block.Bytes)-1] ^= 1

	for _, x := range []struct {
		name, request string
		use           types.CertificateSigningUse
		reason        string
	}{
		{"of a car", good, types.V2GCertificate, "UnsupportedParam"},
		{"not in PEM", "a request", "", "InvalidCSR"},
		{"of a weak key", a.request(weak, "CP1"), types.ChargingStationCert, "InvalidCSR"},
		{"changed on the way", string(pem.EncodeToMemory(block)), "", "InvalidCSR"},
	} {
		answer, err := f.SignCertificate(x.request, func(r *security.SignCertificateRequest) { r.CertificateType = x.use })
		s.must(err)
		if answer.Status != types.GenericStatusRejected || answer.StatusInfo == nil || answer.StatusInfo.ReasonCode != x.reason {
			t.Errorf("%s: %s %+v", x.name, answer.Status, answer.StatusInfo)
		}
	}
}

// TestCertificates_Calls: people read and change a station's certificates, by the command's
// way and in the console.
func TestCertificates_Calls(t *testing.T) {
	s := openOffice(t, ocppserver.Settings{})
	a := newIssuer(t)
	f := &secureStation{stationOn(s, "", passwordSocket()), make(chan string, 9)}
	f.SetSecurityHandler(f)
	f.SetISO15118Handler(f)
	f.connect()
	f.begin()

	office := s.app.Console.Bridge
	for _, x := range []struct{ action, body, answer string }{
		{"InstallCertificate", `{"certificateType":"CSMSRootCertificate","certificate":"x"}`, "Accepted"},
		{"GetInstalledCertificateIds", `{"certificateType":["CSMSRootCertificate"]}`, "NotFound"},
		{"DeleteCertificate", `{"certificateHashData":{"hashAlgorithm":"SHA256","issuerNameHash":"00","issuerKeyHash":"00","serialNumber":"1"}}`, "NotFound"},
		{"CertificateSigned", `{"certificateChain":"by hand","certificateType":"ChargingStationCertificate"}`, "Accepted"},
	} {
		if answer, err := office.Call(t.Context(), "CP1", x.action, []byte(x.body)); err != nil || !strings.Contains(string(answer), x.answer) {
			t.Errorf("%s was answered %s %v", x.action, answer, err)
		}
	}
	if chain := <-f.signed; chain != "by hand" {
		t.Errorf("it was sent the chain %q", chain)
	}
	s.sit("ada", access.OnDuty).wants("GET", "/assets/"+s.asset.String()+"/charger?call=InstallCertificate", nil, 200, "DeleteCertificate", "CSMSRootCertificate")

	answer, err := f.SignCertificate(a.request(a.key, "CP1"))
	s.must(err)
	if answer.Status != types.GenericStatusRejected || answer.StatusInfo.ReasonCode != "NotEnabled" {
		t.Errorf("without an authority its request was answered %s %+v", answer.Status, answer.StatusInfo)
	}
}

// TestCertificates_ChargePoint: a charge point of OCPP 1.6 is signed a certificate in the
// words of its security extension. Where people sign, its request can be read; without a
// password it is signed none.
func TestCertificates_ChargePoint(t *testing.T) {
	a := newIssuer(t)
	signs, err := ocppserver.ReadAuthority(a.path("ca.crt"), a.path("ca.key"))
	a.must(err)
	people, err := ocppserver.ReadAuthority(a.path("ca.crt"), "")
	a.must(err)
	payload, err := json.Marshal(map[string]string{"csr": a.request(a.key, "another")})
	a.must(err)

	for name, x := range map[string]struct {
		settings      ocppserver.Settings
		password      string
		answer        string
		signs, report bool
	}{
		"signed":           {ocppserver.Settings{Authority: signs}, "shared", "Accepted", true, false},
		"by people":        {ocppserver.Settings{Authority: people}, "shared", "Accepted", false, true},
		"no password":      {ocppserver.Settings{Authority: signs, NoPassword: true}, "", "Rejected", false, false},
		"without security": {ocppserver.Settings{}, "shared", "Rejected", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openOffice(t, x.settings)

			c := newSim(t, s.url, "CP1", s.now)
			c.password = x.password
			c.answers = map[string]string{"CertificateSigned": `{"status":"Accepted"}`}
			c.boot()
			if answer := string(c.must("SignCertificate", string(payload))); answer != `{"status":"`+x.answer+`"}` {
				t.Errorf("its request was answered %s", answer)
			}

			all, err := s.app.Console.Bridge.Reports(t.Context(), "CP1")
			s.must(err)
			if read := len(all) == 1 && strings.Contains(string(all[0].Body), "CERTIFICATE REQUEST"); read != x.report {
				t.Errorf("the reports are %+v", all)
			}

			if x.signs {
				s.eventually("it has its certificate", func() bool { return len(c.asked()) > 0 })
				body, _ := strings.CutPrefix(c.asked()[0], "CertificateSigned ")
				var m map[string]string
				s.must(json.Unmarshal([]byte(body), &m))
				if leaf := a.leaf(a.key, m["certificateChain"]).Leaf; len(m) != 1 || leaf.Subject.CommonName != "CP1" || leaf.CheckSignatureFrom(a.cert) != nil {
					t.Errorf("it was sent %s", body)
				}
			}
		})
	}
}

// asked is what people and the bridge asked of a charger that it answers by answers.
func (s *sim) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.called)
}

func passwordSocket() *ws.Client {
	socket := ws.NewClient()
	socket.SetBasicAuth("CP1", "shared")

	return socket
}
