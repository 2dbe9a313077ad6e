package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// After a new password, or a reset of the factors, nothing else lets anybody in: all passkeys
// and sessions end.
func TestPasskeys_Reset(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		for name, reset := range map[string]func() error{
			"a new password": func() error {
				_, err := d.access.SetOperatorPassword(d.Context(), operator, password)
				return err
			},
			"a reset": func() error { return d.access.ResetFactors(d.Context(), operator) },
		} {
			d.cookie = nil
			d.login()

			v := newDevice(d)
			v.enrol("key")

			session := d.cookie
			if err := reset(); err != nil {
				d.Fatal(err)
			}

			d.cookie = session
			if a := d.get("/console/account"); a.status != http.StatusSeeOther {
				d.Errorf("a session after %s: %d", name, a.status)
			}
			if status := v.logIn(v.signed(v.loginPage())); status != http.StatusUnauthorized {
				d.Errorf("a passkey after %s: %d", name, status)
			}
		}
	})
}

// The page Operators has no form for a role and organisations that come from an identity
// provider's groups: it would be refused.
func TestOperators_ByProvider(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	i := newIssuer(d)
	if a := d.signIn(i, person("grace", "duty")); a.status != http.StatusOK {
		t.Fatalf("sign in: %d %s", a.status, a.body)
	}

	d.cookie = nil
	d.login()
	page := d.page("/console/operators")
	d.wants(page, "grace", "role and organisations by the identity provider", "/console/operators/logout")
	for _, form := range []string{"New role of grace", "<option>grace</option>"} {
		if strings.Contains(page, form) {
			t.Errorf("the page has %q", form)
		}
	}
}

// If a provider fails when a browser returns from it, that does not count as a failed login.
func TestSignIn_DownOnReturn(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	i := newIssuer(d)
	to, attempt := d.begin("")
	path := i.authorize(to, person("grace", "duty"))
	i.down = true
	d.wait(time.Hour) // what it said of itself is asked for again

	for n := range 12 {
		if a := d.callback(path, attempt); a.status != http.StatusServiceUnavailable {
			t.Errorf("try %d: %d %s", n, a.status, a.body)
		}
	}
}
