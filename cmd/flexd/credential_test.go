package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flexd/internal/access"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// TestCredentials walks through a credential's life on the command line.
func TestCredentials(t *testing.T) {
	s := store{Database: freshDatabase(t), Environment: "sandbox"}
	run, _ := commandRunner(t)

	run((&orgAdd{cellFlags: cellFlags{store: s}, Name: "Acme", Username: "acme"}).Run, "acme")

	add := &credentialAdd{cellFlags: cellFlags{store: s}, Org: "Acme", Username: "meters", Role: []string{"metrics_write"}}
	add.Expires = "2999-01-01"
	run(add.Run, "username  meters")
	run(add.Run, "is taken")
	run((&credentialAdd{cellFlags: cellFlags{store: s}, Org: "Acme", Username: "x", Role: []string{"owner"}}).Run, `"owner" is no role`)
	run((&credentialAdd{cellFlags: cellFlags{store: s}, Org: "Nobody", Username: "x"}).Run, "Nobody")

	past := &credentialAdd{cellFlags: cellFlags{store: s}, Org: "Acme", Username: "x"}
	past.Expires = "2020-01-01"
	run(past.Run, "which is past")
	past.Expires = "soon"
	run(past.Run, "neither a date")

	run((&credentialRoll{store: s, Username: "meters"}).Run, "password  ")
	run((&credentialList{store: s, Org: "Acme"}).Run, "2999-01-01T00:00:00Z")
	run((&credentialList{store: s, Org: "Acme", JSON: true}).Run, `"expires_at": "2999-01-01T00:00:00Z"`)

	certificate := filepath.Join(t.TempDir(), "acme.pem")
	if err := os.WriteFile(certificate, []byte(clientCertificate), 0o600); err != nil {
		t.Fatal(err)
	}
	colons := "0A:" + strings.Repeat("00:", 30) + "FF"

	bind := func(want string, to ...string) {
		t.Helper()
		run(func(ctx context.Context, _ console) error {
			return (&credentialBind{store: s, Username: "meters", Certificates: to, None: len(to) == 0}).Run(ctx)
		}, want)
	}
	run(func(ctx context.Context, _ console) error {
		return (&credentialBind{store: s, Username: "meters"}).Run(ctx)
	}, "give certificates, or else --none")

	run(func(ctx context.Context, _ console) error {
		return (&credentialBind{store: s, Username: "nobody", None: true}).Run(ctx)
	}, `no credential is named "nobody"`)
	bind("neither a file", "missing.pem")
	bind("", certificate, colons)
	run((&credentialList{store: s, Org: "Acme", JSON: true}).Run, clientFingerprint)
	run((&credentialList{store: s, Org: "Acme", JSON: true}).Run, "0a"+strings.Repeat("00", 30)+"ff")
	run((&auditList{store: s, Limit: 20, JSON: true}).Run, "certificates "+clientFingerprint)
	bind("")
	run((&auditList{store: s, Limit: 20, JSON: true}).Run, "no certificate")

	if err := (&credentialRevoke{store: s, Username: "meters"}).Run(t.Context()); err != nil {
		t.Error(err)
	}

	add.Expires = ""
	run(add.Run, "username  meters")
	run((&auditList{store: s, Limit: 20}).Run, "roll credential")
}

// TestCredentials_AuditOrg: an organisation's operators read in the audit log what was done to
// its credentials.
func TestCredentials_AuditOrg(t *testing.T) {
	s := store{Database: freshDatabase(t), Environment: "sandbox"}
	run, _ := commandRunner(t)
	run((&orgAdd{cellFlags: cellFlags{store: s}, Name: "Acme", Username: "acme"}).Run, "acme")
	run((&credentialRoll{store: s, Username: "acme"}).Run, "password  ")
	for _, do := range []func(context.Context) error{
		(&credentialLimit{store: s, Username: "acme"}).Run,
		(&credentialRevoke{store: s, Username: "acme"}).Run,
	} {
		if err := do(t.Context()); err != nil {
			t.Error(err)
		}
	}

	h, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()

	org, err := namedOrg(t.Context(), h, "Acme")
	if err != nil {
		t.Fatal(err)
	}

	for _, act := range []string{"roll credential", "limit credential", "revoke credential"} {
		own := records.Within(t.Context(), []flex.OrgID{org.ID})
		v, err := h.Access.Audit(own, access.AuditFilter{Act: act, Limit: 10})
		if err != nil || len(v.Acts) != 1 {
			t.Errorf("%s: %+v %v", act, v.Acts, err)
		}
	}
}

// clientCertificate is one as openssl makes it, and clientFingerprint what openssl says of it.
const clientFingerprint = "f2286a1b43a6ffbd2e0b485a342489675e16ecb2c7f8b85c46f7d1e217717740"

const clientCertificate = `-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIUYbjR4tnL7KIdxke4yUaFq7R5rEYwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEYWNtZTAeFw0yNjExMjQxOTMzMjlaFw0zNjExMjExOTMzMjla
MA8xDTALBgNVBAMMBGFjbWUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATNgG87
VV9o7jNqIcwF3RKj0AGQIP4ljN8ucjr8RaQ1214Dhv1wi8p/X2ZXUkzAWuLFNDbV
g2Tl0w6IUJ795/jso1MwUTAdBgNVHQ4EFgQUTRW2iTeONncoZ1BWX2El8ykWoUEw
HwYDVR0jBBgwFoAUTRW2iTeONncoZ1BWX2El8ykWoUEwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiA8y6ThHMTAoHiI/giDz1KJMybVgJDEPmh0Q7Qc
AaNs2wIhAM2XsfyIpuXvpzU6Y10YF97s/+4y55m9CvZZwWcD/IPL
-----END CERTIFICATE-----
`
