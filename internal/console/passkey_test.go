package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/descope/virtualwebauthn"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/test/axe"
)

// device is an authenticator with one passkey.
type device struct {
	*service
	site virtualwebauthn.RelyingParty
	auth virtualwebauthn.Authenticator
	key  virtualwebauthn.Credential
}

func newDevice(d *service) *device {
	return &device{
		service: d,
		site:    virtualwebauthn.RelyingParty{Name: "flexd", ID: "localhost", Origin: "http://localhost:8080"},
		auth:    virtualwebauthn.NewAuthenticator(),
		key:     newPasskey(),
	}
}

// wholeKey is the length of a public key on P-256 as COSE writes it, with both coordinates in
// 32 bytes (RFC 9053, section 7.1.1).
const wholeKey = 77

// newPasskey returns a passkey like those of real devices. The library omits the leading zeros
// of a coordinate, which 1 key in 128 has. Such a key is refused as malformed, so another one
// is drawn instead.
func newPasskey() virtualwebauthn.Credential {
	for {
		key := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
		if len(key.Key.AttestationData()) == wholeKey {
			return key
		}
	}
}

var passkeyOptions = regexp.MustCompile(`data-passkey="([^"]+)"`)

// optionsOf is what a page has the browser sign.
func (v *device) optionsOf(page string) string {
	v.Helper()
	found := passkeyOptions.FindStringSubmatch(page)
	if found == nil {
		v.Fatalf("no passkey is asked for on the page: %s", page)
	}

	return html.UnescapeString(found[1])
}

// made is the form with a new passkey for what the page asks for.
func (v *device) made(page, name string) url.Values {
	v.Helper()
	options, err := virtualwebauthn.ParseAttestationOptions(v.optionsOf(page))
	if err != nil {
		v.Fatal(err)
	}

	v.auth.Options.UserHandle = []byte(options.UserID)
	answer := virtualwebauthn.CreateAttestationResponse(v.site, v.auth, v.key, *options)

	return url.Values{"name": {name}, "new_passkey": {answer}}
}

// signed is the form with the signature that the page asks for.
func (v *device) signed(page string) url.Values {
	v.Helper()
	options, err := virtualwebauthn.ParseAssertionOptions(v.optionsOf(page))
	if err != nil {
		v.Fatal(err)
	}

	v.key.Counter++
	answer := virtualwebauthn.CreateAssertionResponse(v.site, v.auth, v.key, *options)

	return url.Values{"confirm_passkey": {answer}, "next": {"/console/safety"}}
}

// enrol stores the device's passkey for the operator who is logged in.
func (v *device) enrol(name string) {
	v.Helper()
	begun := v.do("POST", "/console/account/passkeys/begin", url.Values{})
	if a := v.do("POST", "/console/account/passkeys", v.made(begun.body, name)); a.status != http.StatusSeeOther {
		v.Fatalf("the passkey %s is not kept: %d %s", name, a.status, a.body)
	}
}

// logIn logs in with the passkey, and returns the status.
func (v *device) logIn(form url.Values) int {
	v.Helper()
	v.cookie = nil
	a := v.do("POST", "/console/login/passkey", form)
	if a.status == http.StatusSeeOther {
		v.cookie = a.cookie(v.service)
	}

	return a.status
}

func (v *device) loginPage() string {
	v.Helper()
	v.cookie = nil
	return v.page("/console/login")
}

// An operator makes two passkeys, logs in with each without a password, confirms an act with
// one, and removes it. A signature that is used twice, and a passkey that was removed, are
// refused.
func TestPasskeys(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		laptop, phone := newDevice(d), newDevice(d)
		laptop.enrol("laptop")
		phone.enrol("phone & watch")
		d.wants(d.page("/console/account"), "Remove laptop", "Remove phone &amp; watch", "never")

		form := phone.signed(phone.loginPage())
		if status := phone.logIn(form); status != http.StatusSeeOther {
			t.Fatalf("log in by the phone: %d", status)
		}
		d.wants(d.page("/console/account"), "You", operator)
		if status := phone.logIn(form); status != http.StatusUnauthorized {
			t.Errorf("the same signature again: %d", status)
		}
		if status := laptop.logIn(laptop.signed(laptop.loginPage())); status != http.StatusSeeOther {
			t.Fatalf("log in by the laptop: %d", status)
		}

		// A while later, what concerns access asks again.
		d.wait(access.ConfirmedFor + time.Minute)
		asked := d.do("POST", "/console/account/passkeys/begin", url.Values{})
		if asked.status != http.StatusForbidden {
			t.Fatalf("a while later: %d", asked.status)
		}
		confirmation := phone.signed(asked.body)
		if a := d.do("POST", "/console/account/passkeys/begin", confirmation); a.status != http.StatusOK {
			t.Errorf("confirmed by the phone: %d %s", a.status, a.body)
		}

		shown, err := d.access.PasskeysOf(t.Context(), operatorID(d))
		if err != nil || len(shown) != 2 {
			t.Fatal(shown, err)
		}
		if shown[0].Name != "laptop" { // both were made in the same instant
			shown[0] = shown[1]
		}

		if a := d.do("POST", "/console/account/passkeys/remove", url.Values{"passkey": {shown[0].ID}}); a.status != http.StatusSeeOther {
			t.Errorf("remove the laptop's: %d", a.status)
		}
		if status := laptop.logIn(laptop.signed(laptop.loginPage())); status != http.StatusUnauthorized {
			t.Errorf("log in by a passkey that was removed: %d", status)
		}

		// Who has lost the devices: flexd operator reset-two-step.
		if err := d.access.ResetFactors(t.Context(), operator); err != nil {
			t.Fatal(err)
		}
		if status := phone.logIn(phone.signed(phone.loginPage())); status != http.StatusUnauthorized {
			t.Errorf("log in by a passkey after the reset: %d", status)
		}
		d.login()
	})
}

// A passkey is begun shortly before an act asks again who the operator is, and sent after
// that. That is not a failed confirmation: the passkey is stored once the operator has
// confirmed.
func TestPasskeys_ConfirmedBetween(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		v := newDevice(d)
		d.wait(access.ConfirmedFor - time.Minute)
		begun := d.do("POST", "/console/account/passkeys/begin", url.Values{})
		form := v.made(begun.body, "laptop")

		d.wait(2 * time.Minute)
		asked := d.do("POST", "/console/account/passkeys", form)
		if asked.status != http.StatusForbidden {
			t.Fatalf("two minutes later: %d %s", asked.status, asked.body)
		}
		d.wants(asked.body, `name="new_passkey"`, `name="confirm_password"`)
		if failed := d.Strings(`SELECT who FROM audit WHERE act = 'confirm who it is'`); len(failed) > 0 {
			t.Errorf("failed confirmations of %q", failed)
		}

		form.Set("confirm_password", password)
		if a := d.do("POST", "/console/account/passkeys", form); a.status != http.StatusSeeOther {
			t.Errorf("confirmed: %d %s", a.status, a.body)
		}
	})
}

// operatorID is whose session the test has.
func operatorID(d *service) flex.OperatorID {
	d.Helper()
	who, err := d.access.IdentifyOperator(d.Context(), flex.Secret(d.cookie.Value))
	if err != nil {
		d.Fatal(err)
	}

	return who.ID
}

// A signature is refused if it is for another site or another purpose, too late, without a
// touch, by another key, or without a higher count. Each form has only one such fault.
func TestPasskeys_Refused(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		v := newDevice(d)
		v.enrol("key")

		for name, form := range map[string]func() url.Values{
			"another site": func() url.Values {
				v.site.Origin = "http://localhost.evil.example:8080"
				return v.signed(v.loginPage())
			},
			"another name of the site": func() url.Values {
				v.site.ID = "evil.example"
				return v.signed(v.loginPage())
			},
			"late": func() url.Values {
				form := v.signed(v.loginPage())
				d.wait(access.PasskeyWait)

				return form
			},
			"nobody's finger": func() url.Values {
				v.auth.Options.UserNotVerified = true
				return v.signed(v.loginPage())
			},
			"another key": func() url.Values {
				other := newDevice(d)
				other.auth.Options = v.auth.Options
				other.key.ID = v.key.ID

				return other.signed(v.loginPage())
			},
			"a copy with an older count": func() url.Values {
				v.key.Counter = 0
				form := v.signed(v.loginPage())

				return form
			},
			"a challenge for making one": func() url.Values {
				begun := d.do("POST", "/console/account/passkeys/begin", url.Values{})
				page := d.page("/console/login")
				ours := passkeyOptions.FindStringSubmatch(page)[1]
				asked := regexp.MustCompile(`challenge&#34;:&#34;([^&]+)`)
				theirs := asked.FindStringSubmatch(begun.body)[1]
				mixed := asked.ReplaceAllString(ours, "challenge&#34;:&#34;"+theirs)

				return v.signed(`data-passkey="` + mixed + `"`)
			},
			"a challenge of one's own": func() url.Values {
				page := v.loginPage()
				return v.signed(regexp.MustCompile(`challenge&#34;:&#34;[^&]+`).ReplaceAllString(page, "challenge&#34;:&#34;"+strings.Repeat("A", 60)))
			},
			"nothing": func() url.Values { return url.Values{} },
		} {
			v.key.Counter += 10
			if status := v.logIn(v.signed(v.loginPage())); status != http.StatusSeeOther {
				t.Fatalf("before %s: %d", name, status)
			}

			site, options := v.site, v.auth.Options
			counter := v.key.Counter
			if status := v.logIn(form()); status != http.StatusUnauthorized {
				t.Errorf("%s: %d", name, status)
			}
			v.site, v.auth.Options, v.key.Counter = site, options, counter+1
			d.wait(time.Minute)
		}
	})
}

// A browser with an authenticator of its own makes a passkey and logs in by it, by our script.
func TestPasskeys_Browser(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	d.login()
	id := operatorID(d)
	b := browse(d)
	call(b, webauthn.Enable, webauthn.EnableParams{})
	call(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol:                    webauthn.AuthenticatorProtocolCtap2,
			Transport:                   webauthn.AuthenticatorTransportInternal,
			HasResidentKey:              true,
			HasUserVerification:         true,
			IsUserVerified:              true,
			AutomaticPresenceSimulation: true,
		},
	})

	shown := func(selector string) chromedp.Action[chromedp.Void] {
		return chromedp.WaitVisible(chromedp.CSS(selector))
	}
	press := func(selector string) chromedp.Action[chromedp.Void] {
		return chromedp.Click(chromedp.CSS(selector))
	}

	b.run(chromedp.Navigate(b.base+"/console/account"), press(`form[action$="/passkeys/begin"] button`))
	b.run(shown(`form[data-make]`), chromedp.SendKeys(chromedp.CSS("#name"), "browser"))
	b.judge("passkey")
	b.run(press(`form[data-make] button`), shown(`form[action$="/passkeys/remove"]`))
	b.run(press(`.who button`), shown(`form[data-passkey]`), press(`form[data-passkey] button`))
	b.run(shown(`.who button`), chromedp.Navigate(b.base+"/console/account"), shown(`form[action$="/passkeys/remove"]`))
	b.judge("account with a passkey")

	// A while later the same browser confirms an act.
	d.wait(access.ConfirmedFor + time.Minute)
	b.run(chromedp.Navigate(b.base+"/console/account"), press(`form[action$="/passkeys/remove"] button`))
	b.run(shown(`form[data-passkey]`), press(`form[data-passkey] button`))
	b.run(shown(`form[action$="/passkeys/begin"]`))
	b.mu.Lock()
	b.faults = slices.DeleteFunc(b.faults, func(f string) bool { // the page that asks is one
		return strings.Contains(f, "403 (Forbidden)")
	})
	b.mu.Unlock()
	if left, err := d.access.PasskeysOf(t.Context(), id); err != nil || len(left) > 0 {
		t.Errorf("the passkey that the browser removed: %v %v", left, err)
	}
}

// judge checks the open page against the rules for all pages, and with axe-core if that is
// asked for.
func (b *browser) judge(name string) {
	b.Helper()
	b.sound(name)
	b.contrast(name)

	if axe.Wanted() {
		found, err := axe.Violations(b.ctx)
		b.must(err)
		for _, f := range found {
			b.Errorf("%s: axe: %s", name, f)
		}
	}
}
