package access_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// fingerprint is one whose digits are all the same.
func fingerprint(digit string) string { return strings.Repeat(digit, 64) }

// A credential's tokens are of use with one of its certificates alone, on every process, while it
// is bound to some; its users' component tokens are not bound.
func TestCredential_Certificates(t *testing.T) {
	each(t, func(d *service) {
		secret := d.add("u", "")
		token := d.login("u", secret, "a", 0).Token
		other := &access.Service{DB: d.DB}
		if err := d.BindCredential(t.Context(), d.org.ID, "u", []string{fingerprint("A"), fingerprint("b"), fingerprint("a")}); err != nil {
			t.Fatal(err)
		}

		shown := access.ShownCertificate{
			Fingerprint: fingerprint("a"),
			From:        d.DB.Now(),
			Until:       d.DB.Now().Add(time.Hour),
		}
		admit := func(p access.Principal, print string, want flex.Kind) {
			t.Helper()
			with := shown
			with.Fingerprint = print
			err := d.Admit(access.Showing(t.Context(), with), p, "192.0.2.1")
			if (err == nil) != (want == 0) || err != nil && flex.KindOf(err) != want {
				t.Errorf("with %s: %v", print, err)
			}
		}

		p := d.identify(token, true)
		d.kind(d.Admit(t.Context(), p, "192.0.2.1"), flex.Unauthorized)
		d.login("u", secret, "a", flex.Unauthorized)
		admit(p, fingerprint("a"), 0)
		admit(p, fingerprint("b"), 0)
		admit(p, fingerprint("c"), flex.Unauthorized)

		q, err := other.Identify(t.Context(), token)
		if err != nil || len(q.Certificates) != 2 {
			t.Errorf("another process takes %v, %v", q.Certificates, err)
		}

		// to the end of the last second that it holds, and no longer
		d.wait(time.Hour)
		p.ExpiresAt = d.DB.Now().Add(time.Hour)
		admit(p, fingerprint("a"), 0)
		d.wait(time.Microsecond)
		admit(p, fingerprint("a"), flex.Unauthorized)
		shown.From = d.DB.Now().Add(time.Second)
		shown.Until = shown.From.Add(time.Hour)
		admit(p, fingerprint("a"), flex.Unauthorized)

		// a new password, and new networks, leave it bound
		if _, err := d.RollCredential(t.Context(), "u", "correct horse battery", 0); err != nil {
			t.Fatal(err)
		}
		if err := d.LimitCredential(t.Context(), "u", access.NoLimits); err != nil {
			t.Fatal(err)
		}
		d.login("u", "correct horse battery", "a", flex.Unauthorized)
		if err := d.BindCredential(t.Context(), d.org.ID, "u", nil); err != nil {
			t.Fatal(err)
		}
		d.login("u", "correct horse battery", "a", 0)
	})
}

// What is no fingerprint, too many of them, and another organisation's credential are refused.
func TestBindCredential_Refused(t *testing.T) {
	each(t, func(d *service) {
		d.add("v", "")
		theirs := d.org.ID
		d.add("u", "")

		bind := func(org flex.OrgID, username string, want flex.Kind, prints ...string) {
			t.Helper()
			d.kind(d.BindCredential(t.Context(), org, username, prints), want)
		}

		many := make([]string, access.CertificatesMax+1)
		for i := range many {
			many[i] = strings.Repeat("0", 63) + string(rune('0'+i))
		}

		bind(d.org.ID, "u", flex.Invalid, many...)
		bind(d.org.ID, "u", flex.Invalid, fingerprint("a")[1:])
		bind(d.org.ID, "u", flex.Invalid, fingerprint("g"))
		bind(d.org.ID, "u", flex.Invalid, "")
		bind(theirs, "u", flex.NotFound, fingerprint("a"))
		bind(d.org.ID, "nobody", flex.NotFound, fingerprint("a"))

		if err := d.BindCredential(t.Context(), d.org.ID, "u", many[1:]); err != nil {
			t.Error(err)
		}
	})
}
