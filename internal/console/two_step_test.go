package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// codeNow is the code that an app with the secret shows now.
func (d *service) codeNow(secret string) string {
	d.Helper()
	code, err := totp.GenerateCode(secret, d.db.Now())
	if err != nil {
		d.Fatal(err)
	}
	return code
}

// setUpTwoStep makes the operator's logins ask for codes. It returns the secret and the
// recovery codes.
func (d *service) setUpTwoStep() (secret string, recovery []string) {
	d.Helper()
	begun := d.do("POST", "/console/account/two-step/begin", url.Values{})
	found := regexp.MustCompile(`<code>([A-Z2-7]{20,})</code>`).FindStringSubmatch(begun.body)
	if found == nil || !strings.Contains(begun.body, `src="data:image/png;base64,`) {
		d.Fatalf("no secret on the page: %d %s", begun.status, begun.body)
	}

	secret = found[1]
	if a := d.do("POST", "/console/account/two-step/finish", url.Values{"code": {"000000"}}); a.status != http.StatusUnauthorized {
		d.Errorf("a wrong first code: %d", a.status)
	}

	done := d.do("POST", "/console/account/two-step/finish", url.Values{"code": {d.codeNow(secret)}})
	recovery = regexp.MustCompile(`[A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4}`).FindAllString(done.body, -1)
	if len(recovery) != access.RecoveryCodes {
		d.Fatalf("%d recovery codes: %d %s", len(recovery), done.status, done.body)
	}

	return secret, recovery
}

// firstStep gives the password and returns the cookie of the login that waits for a code.
func (d *service) firstStep() *http.Cookie {
	d.Helper()
	d.cookie = nil
	a := d.do("POST", "/console/login", url.Values{"name": {operator}, "password": {password}})
	if a.status != http.StatusOK || !strings.Contains(a.body, "The code of your app") {
		d.Fatalf("the first step: %d %s", a.status, a.body)
	}
	return a.cookie(d)
}

func (a answer) cookie(d *service) *http.Cookie {
	d.Helper()
	cookies := (&http.Response{Header: a.header}).Cookies()
	if len(cookies) != 1 {
		d.Fatalf("%d cookies", len(cookies))
	}
	return cookies[0]
}

// secondStep gives the code to the login of the cookie.
func (d *service) secondStep(waiting *http.Cookie, code string) answer {
	d.Helper()
	d.cookie = waiting
	a := d.do("POST", "/console/login/code", url.Values{"code": {code}, "next": {"/console/safety"}})
	if a.status == http.StatusSeeOther {
		d.cookie = a.cookie(d)
	}
	return a
}

func TestTwoStep_Login(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		secret, recovery := d.setUpTwoStep()
		first := d.codeNow(secret)
		d.wait(time.Minute)

		waiting := d.firstStep()
		d.cookie = waiting
		if a := d.get("/console/fleet"); a.status != http.StatusSeeOther {
			d.Errorf("a login that waits for its code opens a page: %d", a.status)
		}

		if a := d.secondStep(waiting, "12345"); a.status != http.StatusUnauthorized {
			d.Errorf("a code of five digits: %d", a.status)
		}

		if a := d.secondStep(waiting, first); a.status != http.StatusUnauthorized {
			d.Errorf("the code of a minute ago: %d", a.status)
		}

		code := d.codeNow(secret)
		if a := d.secondStep(waiting, " "+code[:3]+" "+code[3:]); a.status != http.StatusSeeOther || a.header.Get("Location") != "/console/safety" {
			d.Fatalf("the right code: %d %s", a.status, a.body)
		}

		d.page("/console/fleet")
		again := d.firstStep()
		if a := d.secondStep(waiting, code); a.status != http.StatusUnauthorized {
			d.Errorf("a login's second step twice: %d", a.status)
		}

		if a := d.secondStep(again, code); a.status != http.StatusUnauthorized {
			d.Errorf("a code twice: %d", a.status)
		}

		// Without the app a recovery code opens it, once.
		if a := d.secondStep(again, strings.ToLower(recovery[3])); a.status != http.StatusSeeOther {
			d.Errorf("a recovery code: %d %s", a.status, a.body)
		}

		d.wants(d.page("/console/account"), "9 recovery codes left")
		if a := d.secondStep(d.firstStep(), recovery[3]); a.status != http.StatusUnauthorized {
			d.Errorf("a recovery code twice: %d", a.status)
		}

		// A login waits for its code for five minutes.
		late := d.firstStep()
		d.wait(access.CodeWait)
		if a := d.secondStep(late, d.codeNow(secret)); a.status != http.StatusUnauthorized {
			d.Errorf("a code that comes late: %d", a.status)
		}

		if err := d.access.RemoveTwoStep(d.Context(), operator); err != nil {
			d.Fatal(err)
		}

		d.cookie = nil
		d.login()
	})
}

// A clock may be off by a step, not by two.
func TestTwoStep_Clock(t *testing.T) {
	for _, tt := range []struct {
		off  time.Duration
		want int
	}{{-60 * time.Second, 401}, {-30 * time.Second, 303}, {0, 303}, {30 * time.Second, 303}, {60 * time.Second, 401}} {
		t.Run(tt.off.String(), func(t *testing.T) {
			d := newConsole(t, "2026-01-10T18:00:00Z")
			d.login()

			secret, _ := d.setUpTwoStep()
			d.wait(10 * time.Minute)
			waiting := d.firstStep()
			code, err := totp.GenerateCode(secret, d.db.Now().Add(tt.off))
			if err != nil {
				t.Fatal(err)
			}

			if a := d.secondStep(waiting, code); a.status != tt.want {
				t.Errorf("%d, want %d", a.status, tt.want)
			}
		})
	}
}

// Whoever has the password guesses no code: so many an hour, from anywhere, in whatever login.
func TestTwoStep_Guesses(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		secret, _ := d.setUpTwoStep()
		d.wait(time.Minute)

		for i := range access.CodesMax {
			if a := d.secondStep(d.firstStep(), fmt.Sprintf("%05d", i)); a.status != http.StatusUnauthorized {
				d.Fatalf("guess %d: %d %s", i, a.status, a.body)
			}
		}

		if a := d.secondStep(d.firstStep(), d.codeNow(secret)); a.status != http.StatusTooManyRequests {
			d.Errorf("the right code after too many: %d", a.status)
		}

		d.wait(access.CodesWindow)
		if a := d.secondStep(d.firstStep(), d.codeNow(secret)); a.status != http.StatusSeeOther {
			d.Errorf("an hour later: %d %s", a.status, a.body)
		}

		var failed int

		err := d.db.ReadAll(d.Context(), func(all *store.All) error {
			acts, err := all.Acts(d.Context(), store.ActFilter{Who: operator, Act: "log in", Limit: 100})
			for _, a := range acts {
				if a.Outcome != flex.ActDone {
					failed++
				}
			}

			return err
		})
		if err != nil || failed != access.CodesMax {
			d.Errorf("%d failures are in the audit log, want %d: %v", failed, access.CodesMax, err)
		}
	})
}

// Where everybody must, the console shows the rest only once a code is set up.
func TestTwoStep_Required(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	d.server.TwoStep = true
	d.login()

	if a := d.get("/console/fleet"); a.header.Get("Location") != "/console/account?done=twostep" {
		t.Errorf("the fleet: %d %s", a.status, a.header.Get("Location"))
	}

	if a := d.get("/console/fleet.json"); a.status != http.StatusForbidden {
		t.Errorf("the fleet for a program: %d", a.status)
	}

	if a := d.do("POST", "/console/safety/halt", url.Values{"reason": {"because"}}); a.status != http.StatusForbidden {
		t.Errorf("an act: %d", a.status)
	}

	d.setUpTwoStep()
	d.page("/console/fleet")
}
