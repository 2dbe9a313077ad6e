package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"

	"flexd/internal/access"
	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
	"flexd/internal/web"
)

// askClients sets the source of clients' certificates.
func (s *serve) askClients(to *app.Settings) error {
	if s.ClientCertificates && to.TLS == nil {
		return flex.Fail(
			flex.Invalid,
			"--client-certificates asks for them over TLS: give --tls-cert and --tls-key, or --acme-host; "+
				"where a proxy ends TLS, give --client-certificate-header",
		)
	}

	if s.ClientCertificateHeader != "" && len(s.TrustedProxies) == 0 {
		return flex.Fail(
			flex.Invalid,
			"--client-certificate-header is believed of trusted proxies alone: name them with --trusted-proxies",
		)
	}

	to.CertificateHeader = s.ClientCertificateHeader
	if s.ClientCertificates {
		to.TLS = web.AskForCertificates(to.TLS)
	}

	return nil
}

type credentialBind struct {
	store
	Username     string   `arg:"" help:"Name of the credential."`
	Certificates []string `arg:"" optional:"" name:"certificate" help:"PEM file of a certificate, or its SHA-256 fingerprint: all of them, up to 8."`
	None         bool     `help:"End the binding: the credential can be used without a certificate again."`
}

// Help is printed below the command's own line.
func (o *credentialBind) Help() string {
	return `To renew a certificate without interruption, bind the credential to the old and the new one, change the clients over, and then bind it to the new one only. ` +
		`Any issuer will do, but the certificate must be valid at the time of use. Example:

  flexd credential bind acme-readings old.pem new.pem`
}

// Run replaces the certificates.
func (o *credentialBind) Run(ctx context.Context) error {
	if o.None == (len(o.Certificates) > 0) {
		return flex.Fail(flex.Invalid, "give certificates, or else --none")
	}

	fingerprints, err := fingerprintsOf(o.Certificates)
	if err != nil {
		return err
	}

	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	var owner flex.OrgID
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		c, err := all.CredentialNamed(ctx, o.Username)
		owner = c.Org
		return err
	})
	if err != nil {
		return err
	}

	a := flex.AuditEntry{
		Who:     commandLine,
		Act:     "bind credential",
		Org:     owner,
		Subject: o.Username,
		Detail:  access.BoundTo(fingerprints),
	}

	return h.Access.Act(ctx, a, func() error {
		return h.Access.BindCredential(ctx, owner, o.Username, fingerprints)
	})
}

// fingerprintsOf reads certificates, each a file or a fingerprint.
func fingerprintsOf(texts []string) ([]string, error) {
	var (
		fingerprints []string
		err          error
	)

	for _, text := range texts {
		digits, wrong := access.ParseFingerprint(text)
		if wrong != nil {
			digits, err = fingerprintOfFile(text)
		}
		if err != nil {
			return nil, err
		}

		fingerprints = append(fingerprints, digits)
	}

	return fingerprints, nil
}

// fingerprintOfFile returns the fingerprint of the first certificate in a file, which is the
// client's own; those of its issuers may follow.
func fingerprintOfFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", flex.Fail(
			flex.Invalid,
			"%s is neither a file that can be read nor 64 hexadecimal digits: %v",
			name,
			err,
		)
	}

	block, rest := pem.Decode(text)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return "", flex.Fail(flex.Invalid, "%s has no certificate in PEM", name)
	}

	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", flex.Fail(
			flex.Invalid,
			"%s: %s",
			name,
			strings.TrimPrefix(err.Error(), "x509: "),
		)
	}

	return web.Fingerprint(c), nil
}
