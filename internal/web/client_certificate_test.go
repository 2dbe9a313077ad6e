package web

import (
	"encoding/base64"
	"path/filepath"
	"testing"
)

// FuzzPassedCertificate: whatever a proxy passes on is a whole certificate or none.
func FuzzPassedCertificate(f *testing.F) {
	f.Add("::")
	f.Add(":AAAA:")
	f.Add("-----BEGIN%20CERTIFICATE-----%0AAAAA%0A-----END%20CERTIFICATE-----%0A")
	f.Add("%zz")

	f.Fuzz(func(t *testing.T, text string) {
		c := parsePassed(text)
		if c == nil {
			return
		}
		if len(c.Raw) == 0 || len(Fingerprint(c)) != 64 {
			t.Errorf("%q is a certificate without bytes", text)
		}

		again := parsePassed(":" + base64.StdEncoding.EncodeToString(c.Raw) + ":")
		if again == nil || Fingerprint(again) != Fingerprint(c) {
			t.Errorf("%q is another certificate when it is passed on", text)
		}
	})
}

// A configuration that asks for certificates leaves the one that it was made of as it was.
func TestAskForCertificates(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	config, err := TLS(cert, key, nil)
	if err != nil {
		t.Fatal(err)
	}

	asking := AskForCertificates(config)
	if config.ClientAuth != 0 || asking.ClientAuth == 0 || asking.GetCertificate == nil {
		t.Error("the configurations are not those that were meant")
	}
}
