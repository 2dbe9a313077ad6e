package access_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// service is an access service whose clock the test turns.
type service struct {
	*testing.T
	*access.Service
	now time.Time
	org flex.Org
	mu  sync.Mutex
}

func each(t *testing.T, test func(d *service)) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := &service{T: t, now: time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)}
		d.Service = &access.Service{DB: storetest.Open(t, url, store.Options{Now: func() time.Time {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.now
		}})}
		test(d)
	})
}

func (d *service) wait(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func (d *service) add(username string, password flex.Secret) flex.Secret {
	d.Helper()
	o, p, err := d.AddOrg(d.Context(), "Org of "+username, username, password)
	if err != nil {
		d.Fatal(err)
	}
	d.org = o
	return p
}

func (d *service) login(name string, secret flex.Secret, from string, want flex.Kind) access.Issued {
	d.Helper()
	t, err := d.Login(d.Context(), name, secret, from)
	if (err == nil) != (want == 0) || err != nil && flex.KindOf(err) != want {
		d.Errorf("login of %s from %s: %v", name, from, err)
	}
	return t
}

func (d *service) identify(token flex.Secret, known bool) access.Principal {
	d.Helper()
	p, err := d.Identify(d.Context(), token)
	if (err == nil) != known || err != nil && flex.KindOf(err) != flex.Unauthorized {
		d.Errorf("identify: %v", err)
	}
	return p
}

func TestLogin(t *testing.T) {
	each(t, func(d *service) {
		made, chosen := d.add("made", ""), d.add("chosen", "correct horse")
		if len(made) != 43 || chosen != "correct horse" {
			t.Errorf("the made secret has %d characters", len(made))
		}

		d.login("made", made, "a", 0)
		d.login("chosen", "correct horse", "a", 0)
		d.login("chosen", "correct horse", "a", 0)
		d.login("chosen", made, "a", flex.Unauthorized)
		d.login("made", "correct horse", "a", flex.Unauthorized)
		d.login("nobody", made, "a", flex.Unauthorized)

		d.login("", "", "a", flex.Unauthorized)
		d.login("made", flex.Secret(strings.Repeat("x", access.MaxSecret+1)), "a", flex.Unauthorized)
		_, unknown := d.Login(t.Context(), "nobody", made, "a")
		_, wrong := d.Login(t.Context(), "made", "correct horse", "a")
		if unknown.Error() != wrong.Error() {
			t.Errorf("an unknown name says %q, a wrong secret %q", unknown, wrong)
		}
	})
}

func TestToken_Life(t *testing.T) {
	each(t, func(d *service) {
		secret := d.add("u", "")
		issued := d.login("u", secret, "a", 0)
		if !strings.HasPrefix(issued.Token.Reveal(), "flexd_") || fmt.Sprint(issued) != "{[redacted] 2026-01-15 13:00:00 +0000 UTC}" {
			t.Errorf("issued %v", issued)
		}

		p := d.identify(issued.Token, true)
		if p.Org != d.org.ID || p.Username != "u" || len(p.Roles) != len(flex.Roles) || p.Component() || !p.May(flex.Rewards) {
			t.Errorf("principal %+v", p)
		}

		d.identify(issued.Token[:len(issued.Token)-1]+"A", issued.Token[len(issued.Token)-1] == 'A')
		d.identify("", false)
		d.identify("flexd_", false)
		d.identify(flex.Secret(strings.ToUpper(issued.Token.Reveal())), false)
		d.wait(access.TokenLife - time.Microsecond)
		d.identify(issued.Token, true)
		d.wait(time.Microsecond)
		d.identify(issued.Token, false)
		if r, err := d.PurgeExpired(t.Context()); err != nil || r.Count != 1 {
			t.Errorf("round: %+v %v", r, err)
		}

		d.identify(issued.Token, false)
	})
}

// TestRevoke shows that a revoked credential's tokens end at once here, and within the
// cache's time in another process.
func TestRevoke(t *testing.T) {
	each(t, func(d *service) {
		secret := d.add("u", "")
		token := d.login("u", secret, "a", 0).Token
		other := &access.Service{DB: d.DB}
		if _, err := other.Identify(t.Context(), token); err != nil {
			t.Fatal(err)
		}

		d.identify(token, true)
		if err := d.Revoke(t.Context(), "u"); err != nil {
			t.Fatal(err)
		}

		d.identify(token, false)
		d.login("u", secret, "a", flex.Unauthorized)
		d.wait(5 * time.Second)
		if _, err := other.Identify(t.Context(), token); flex.KindOf(err) != flex.Unauthorized {
			t.Errorf("the other process still knows the token: %v", err)
		}

		if err := d.Revoke(t.Context(), "u"); flex.KindOf(err) != flex.NotFound {
			t.Errorf("revoked twice: %v", err)
		}

		if _, err := d.Issue(t.Context(), access.Principal{Org: d.org.ID, Username: "u"}, time.Hour); flex.KindOf(err) != flex.Unauthorized {
			t.Errorf("a revoked credential was given a token: %v", err)
		}
	})
}

// TestBrake shows that guessing is slowed down for the name and the address it comes from,
// and for nobody else, and that no wait is longer than a second.
func TestBrake(t *testing.T) {
	each(t, func(d *service) {
		secret := d.add("victim", "")
		for range 10 {
			d.login("victim", "guess", "bad", flex.Unauthorized)
		}

		for range 1000 {
			d.login("victim", "guess", "bad", flex.TooMany)
		}

		_, err := d.Login(t.Context(), "victim", secret, "bad")
		w, ok := errors.AsType[*access.Wait](err)
		if !ok || w.After <= 0 || w.After > time.Second {
			t.Fatalf("wait %v: %v", w, err)
		}

		d.login("victim", secret, "good", 0)
		d.login("other", "guess", "bad", flex.Unauthorized)
		d.wait(w.After)
		d.login("victim", secret, "bad", 0)
		d.login("victim", "guess", "bad", flex.Unauthorized)
		d.login("victim", "guess", "bad", flex.TooMany)
		for range 50 {
			d.login("victim", secret, "good", 0)
		}
	})
}

func TestAddOrg_Refusals(t *testing.T) {
	each(t, func(d *service) {
		d.add("u", "")
		for _, c := range []struct {
			name, username string
			password       flex.Secret
			want           flex.Kind
		}{
			{"Org of u", "v", "", flex.Conflict},
			{"New", "u", "", flex.Conflict},
			{"", "v", "", flex.Malformed},
			{"New", "", "", flex.Malformed},
			{"New", strings.Repeat("v", access.MaxUsername+1), "", flex.Malformed},
			{"New", "v", "1234567", flex.Malformed},
			{"New", "v", flex.Secret(strings.Repeat("p", access.MaxSecret+1)), flex.Malformed},
		} {
			if _, _, err := d.AddOrg(t.Context(), c.name, c.username, c.password); flex.KindOf(err) != c.want {
				t.Errorf("%q %q: %v", c.name, c.username, err)
			}
		}

		if _, _, err := d.AddOrg(t.Context(), "New", "v", "12345678"); err != nil {
			t.Errorf("the refused calls left something: %v", err)
		}

		secret, err := d.AddCredential(t.Context(), d.org.ID, "reader", "", []flex.Role{flex.EntityRead}, store.CredentialLimits{})
		if err != nil {
			t.Fatal(err)
		}

		p := d.identify(d.login("reader", secret, "a", 0).Token, true)
		if p.May(flex.EntityWrite) || !p.May(flex.EntityRead) {
			t.Errorf("roles %v", p.Roles)
		}
	})
}
