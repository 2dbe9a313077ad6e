package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/access"
)

// promote is an act that asks again who it is, with what is shown.
func (d *service) promote(shown url.Values) answer {
	d.Helper()
	form := url.Values{"name": {"bea"}, "role": {"finance"}}
	for name, values := range shown {
		form[name] = values
	}
	return d.do("POST", "/console/operators/role", form)
}

// TestPermissions_StepUpCode: an operator with an app for codes confirms with the password and
// a code. Each code is accepted once.
func TestPermissions_StepUpCode(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		if _, err := d.access.AddOperator(d.Context(), "bea", "", access.Viewer); err != nil {
			d.Fatal(err)
		}
		secret, recovery := d.setUpTwoStep()
		d.wait(access.ConfirmedFor)

		asked := d.promote(nil)
		d.wants(asked.body, `name="confirm_code"`, "Give your password and a code again")
		for name, shown := range map[string]url.Values{
			"the password alone":          {"confirm_password": {password}},
			"the code alone":              {"confirm_code": {d.codeNow(secret)}},
			"a wrong code":                {"confirm_password": {password}, "confirm_code": {"000000"}},
			"a wrong password":            {"confirm_password": {"not the password"}, "confirm_code": {d.codeNow(secret)}},
			"the code of a while ago":     {"confirm_password": {password}, "confirm_code": {codeAt(d, secret, -5*time.Minute)}},
			"a recovery code of somebody": {"confirm_password": {password}, "confirm_code": {"AAAA-BBBB-CCCC-DDDD"}},
		} {
			if a := d.promote(shown); a.status != http.StatusForbidden {
				t.Errorf("%s: %d", name, a.status)
			}
		}
		d.wants(d.promote(url.Values{"confirm_password": {password}, "confirm_code": {"000000"}}).body, "That code is not right, or was used before.")
		if found := d.Strings(`SELECT who FROM audit WHERE act = 'confirm who it is' AND outcome LIKE '%code%'`); len(found) != 5 {
			t.Errorf("%d wrong codes in the audit log", len(found))
		}

		code := d.codeNow(secret)
		if a := d.promote(url.Values{"confirm_password": {password}, "confirm_code": {code}}); a.status != http.StatusSeeOther || strings.Contains(a.body, code) {
			t.Errorf("the password and the code: %d %s", a.status, a.body)
		}
		d.wait(access.ConfirmedFor)
		if a := d.promote(url.Values{"confirm_password": {password}, "confirm_code": {code}}); a.status != http.StatusForbidden {
			t.Errorf("the same code again: %d", a.status)
		}
		if a := d.promote(url.Values{"confirm_password": {password}, "confirm_code": {recovery[1]}}); a.status != http.StatusSeeOther {
			t.Errorf("a recovery code: %d", a.status)
		}

		// A passkey is as good as both.
		v := newDevice(d)
		v.enrol("key")
		d.wait(access.ConfirmedFor)
		asked = d.promote(nil)
		d.wants(asked.body, `name="confirm_code"`)
		if a := d.promote(v.signed(asked.body)); a.status != http.StatusSeeOther {
			t.Errorf("a passkey: %d %s", a.status, a.body)
		}
	})
}

// codeAt is the code of another time.
func codeAt(d *service, secret string, ago time.Duration) string {
	d.Helper()
	d.wait(ago)
	defer d.wait(-ago)
	return d.codeNow(secret)
}

// TestPermissions_StepUpPasskey: an operator with a passkey, and no app for codes, confirms
// with the passkey. The password alone logs in to the console, but confirms nothing.
func TestPermissions_StepUpPasskey(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		if _, err := d.access.AddOperator(d.Context(), "bea", "", access.Viewer); err != nil {
			d.Fatal(err)
		}
		v := newDevice(d)
		v.enrol("key")
		if a := d.promote(nil); a.status != http.StatusSeeOther {
			t.Errorf("a short while after the login: %d", a.status)
		}

		for name, begin := range map[string]func(){
			"a while later":               func() { d.wait(access.ConfirmedFor) },
			"after a login by a password": func() { d.cookie = nil; d.login() },
			"and by a clock that is late": func() { d.cookie = nil; d.login(); d.wait(-time.Second) },
		} {
			begin()
			asked := d.promote(nil)
			if asked.status != http.StatusForbidden || strings.Contains(asked.body, "confirm_password") {
				t.Errorf("%s: %d %s", name, asked.status, asked.body)
			}

			refused := d.promote(url.Values{"confirm_password": {password}})
			if refused.status != http.StatusForbidden {
				t.Errorf("%s, with the password: %d", name, refused.status)
			}
			d.wants(refused.body, "The password alone is not enough.", "reset-two-step")
			if a := d.promote(v.signed(asked.body)); a.status != http.StatusSeeOther {
				t.Errorf("%s, with the passkey: %d %s", name, a.status, a.body)
			}
			if a := d.promote(nil); a.status != http.StatusSeeOther {
				t.Errorf("%s, right after it: %d", name, a.status)
			}
		}

		v.key.Counter++
		if status := v.logIn(v.signed(v.loginPage())); status != http.StatusSeeOther {
			t.Fatal(status)
		}
		if a := d.promote(nil); a.status != http.StatusSeeOther {
			t.Errorf("after a login by the passkey: %d", a.status)
		}
	})
}

// An operator who is removed once more stays removed since the first time.
func TestOperator_RemovedTwice(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		if _, err := d.access.AddOperator(d.Context(), "bea", "", access.Viewer); err != nil {
			d.Fatal(err)
		}

		first := at("2026-01-10T18:00:00Z").UnixMicro()
		for range 2 {
			if err := d.access.RemoveOperator(d.Context(), "bea"); err != nil {
				d.Fatal(err)
			}
			if n := d.Count(`SELECT removed_at FROM operator WHERE name = 'bea'`); int64(n) != first {
				d.Errorf("removed at %d, not %d", n, first)
			}
			d.wait(time.Hour)
		}
	})
}
