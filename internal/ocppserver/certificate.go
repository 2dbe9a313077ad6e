package ocppserver

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
)

const (
	// certificateTime is how long a charger's certificate is valid.
	certificateTime = 365 * 24 * time.Hour
	// certificateSlack is how far behind a charger's clock may be when its certificate comes.
	certificateSlack = 24 * time.Hour
	// leastRSA and leastCurve are the shortest keys that are signed, in bits.
	leastRSA, leastCurve = 2048, 256
)

// actionSign is the call by which a charger asks for a certificate.
const actionSign = "SignCertificate"

// noISO15118 is why a station's questions about a car's certificates are refused.
const noISO15118 = "ISO 15118 is not served"

// stationType is the only type of certificate of OCPP 2.0.1 that is signed here.
const stationType = "ChargingStationCertificate"

// Words of OCPP 2.0.1 for why something is refused.
const (
	reasonCSR       = "InvalidCSR"
	reasonDisabled  = "NotEnabled"
	reasonParameter = "UnsupportedParam"
	reasonRequest   = "UnsupportedRequest"
)

// What is said about certificates. The types are of OCPP 2.0.1, the ids of 2.1.
type (
	signCertificate struct {
		Request string `json:"csr"`
		Type    string `json:"certificateType"`
		ID      *int   `json:"requestId"`
	}
	certificateSigned struct {
		Chain string `json:"certificateChain"`
		Type  string `json:"certificateType,omitempty"`
		ID    *int   `json:"requestId,omitempty"`
	}
	// refusal is why a request was refused.
	refusal struct {
		Reason string `json:"reasonCode"`
		More   string `json:"additionalInfo,omitempty"`
	}
	// stationStatusAnswer is a status with a reason, for which OCPP 1.6 has no room.
	stationStatusAnswer struct {
		Status string   `json:"status"`
		Info   *refusal `json:"statusInfo,omitempty"`
	}
	contractAnswer struct {
		stationStatusAnswer
		EXI string `json:"exiResponse"`
	}
)

// refuse answers a request that is not supported.
func refuse(status, reason, more string) stationStatusAnswer {
	return stationStatusAnswer{status, &refusal{reason, more}}
}

// Authority is the certificate authority of the chargers.
type Authority struct {
	cert *x509.Certificate
	// nil if people sign chargers' certificates
	key crypto.Signer
}

// ReadAuthority reads the authority that signs chargers' certificates: the first certificate
// in a PEM file, and its key. With an empty keyFile the key is elsewhere, and requests wait
// until people sign them.
func ReadAuthority(certFile, keyFile string) (*Authority, error) {
	if keyFile == "" {
		return &Authority{}, nil
	}

	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}

	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, flex.Fail(
			flex.Invalid,
			"%s is not a certificate authority",
			certFile,
		)
	}

	return &Authority{pair.Leaf, key}, nil
}

// sign makes a charger's certificate for the key of its request, in PEM. It bears the
// charger's id as its common name, whatever name the request has.
func (a *Authority) sign(request, id string, now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(request))
	if block == nil {
		return "", errors.New("the request is not in PEM")
	}

	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err == nil {
		err = strong(csr.PublicKey)
	}
	if err != nil {
		return "", err
	}

	until := now.Add(certificateTime)
	if a.cert.NotAfter.Before(until) {
		until = a.cert.NotAfter
	}

	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject:     pkix.Name{CommonName: id, Organization: csr.Subject.Organization},
		NotBefore:   now.Add(-certificateSlack),
		NotAfter:    until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},

		BasicConstraintsValid: true,
	}, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return "", err
	}

	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}

// strong returns why a public key is too weak to be signed.
func strong(key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < leastRSA {
			return fmt.Errorf("its key has fewer than %d bits", leastRSA)
		}

		return nil

	case *ecdsa.PublicKey:
		if k.Curve.Params().BitSize < leastCurve {
			return fmt.Errorf("its curve has fewer than %d bits", leastCurve)
		}

		return nil

	case ed25519.PublicKey:
		return nil
	}

	return errors.New("its key is neither RSA nor on an elliptic curve")
}

// takeRequest accepts a charger's request for a certificate. The worker sends the signed
// certificate. It returns nil, or why the request is refused. The caller holds mu.
func (c *charger) takeRequest(
	m signCertificate,
	payload json.RawMessage,
	now time.Time,
) *refusal {
	reason := c.signRequest(m, payload, now)
	if reason != nil {
		c.b.Log.Warn(
			"a charger's request for a certificate is refused",
			"charger",
			c.id,
			"reason",
			reason.Reason,
			"why",
			reason.More,
		)
	}

	return reason
}

func (c *charger) signRequest(
	m signCertificate,
	payload json.RawMessage,
	now time.Time,
) *refusal {
	a := c.b.Authority
	switch {
	case c.up.hasPlatform():
		return &refusal{reasonDisabled, "the charger's platform signs its certificates"}
	case a == nil || c.noPassword:
		return &refusal{reasonDisabled, "no certificates are signed here"}
	case m.Type != "" && m.Type != stationType:
		return &refusal{reasonParameter, "only " + stationType + " is signed here"}
	}

	if a.key == nil {
		c.keepReport(actionSign, payload, now)
		c.b.Log.Warn(
			"a charger asks for a certificate: sign its request, which is among its reports, and call CertificateSigned",
			"charger",
			c.id,
		)

		return nil
	}

	chain, err := a.sign(m.Request, c.id, now)
	if err != nil {
		return &refusal{reasonCSR, err.Error()}
	}

	c.certificate = &certificateSigned{Chain: chain, ID: m.ID}

	return nil
}

// sendCertificate sends a charger its signed certificate. The connection is not closed: the
// charger reconnects with the new certificate when it likes, and until the old one expires
// both are accepted.
func (c *charger) sendCertificate(ctx context.Context) error {
	c.mu.Lock()
	l := c.link
	m := c.certificate
	c.mu.Unlock()

	if l == nil || m == nil {
		return nil
	}

	sent := *m
	if l.station != nil {
		sent.Type = stationType
	}

	var s statusAnswer
	err := l.call(ctx, "CertificateSigned", sent, &s)
	if errors.Is(err, errLinkLost) {
		return errRetry
	}

	c.mu.Lock()
	if c.certificate == m { // else it has asked for another one
		c.certificate = nil
	}
	c.mu.Unlock()

	c.ifLate(err, func(_ context.Context, answer func(out any) error) error {
		var s statusAnswer
		c.certificateTaken(s, answer(&s))

		return nil
	})
	c.certificateTaken(s, err)

	return nil
}

// certificateTaken records the charger's answer to its certificate.
func (c *charger) certificateTaken(s statusAnswer, err error) {
	if err != nil || s.Status != accepted {
		c.b.Log.Warn(
			"a charger does not take its certificate",
			"charger",
			c.id,
			"status",
			s.Status,
			"err",
			err,
		)

		return
	}

	c.b.Log.Info("a charger has a new certificate", "charger", c.id)
}
