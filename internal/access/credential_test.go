package access_test

import (
	"net/netip"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// limited gives the organisation a credential within the limits.
func (d *service) limited(name string, l store.CredentialLimits) flex.Secret {
	d.Helper()
	if d.org.ID.IsZero() {
		d.add("first", "")
	}

	secret, err := d.AddCredential(d.Context(), d.org.ID, name, "", flex.Roles, l)
	if err != nil {
		d.Fatal(err)
	}
	return secret
}

func (d *service) kind(err error, want flex.Kind) {
	d.Helper()
	if flex.KindOf(err) != want {
		d.Errorf("%v, want a failure of kind %v", err, want)
	}
}

func networks(texts ...string) (found []netip.Prefix) {
	for _, text := range texts {
		found = append(found, netip.MustParsePrefix(text))
	}
	return found
}

func TestCredential_Expires(t *testing.T) {
	each(t, func(d *service) {
		ends := d.DB.Now().Add(90 * time.Minute)
		secret := d.limited("u", store.CredentialLimits{ExpiresAt: ends})
		d.login("u", secret, "a", 0)
		d.wait(time.Hour)

		issued := d.login("u", secret, "a", 0)
		if !issued.ExpiresAt.Equal(ends) {
			t.Errorf("a token lives until %s, its credential until %s", issued.ExpiresAt, ends)
		}

		d.wait(30*time.Minute - time.Microsecond)
		d.identify(issued.Token, true)
		d.wait(time.Microsecond)
		d.identify(issued.Token, false)
		d.login("u", secret, "a", flex.Unauthorized)

		_, err := d.Issue(t.Context(), access.Principal{Org: d.org.ID, Username: "u"}, time.Hour)
		d.kind(err, flex.Unauthorized)

		// A household's token is as good as for ever, and ends with its credential all the same. The answer says when.
		ends = d.DB.Now().Add(90 * time.Minute)
		d.limited("v", store.CredentialLimits{ExpiresAt: ends})
		lasting, err := d.Issue(t.Context(), access.Principal{Org: d.org.ID, Username: "v"}, access.HouseholdTokenLife)
		if err != nil || !lasting.ExpiresAt.Equal(ends) {
			t.Errorf("a token that lasts for years is said to live until %s, %v: its credential until %s", lasting.ExpiresAt, err, ends)
		}

		d.kind(d.LimitCredential(t.Context(), "u", store.CredentialLimits{ExpiresAt: d.DB.Now()}), flex.Invalid)
		d.kind(d.LimitCredential(t.Context(), "nobody", store.CredentialLimits{}), flex.NotFound)

		if err := d.LimitCredential(t.Context(), "u", store.CredentialLimits{}); err != nil {
			t.Fatal(err)
		}

		// A limit that comes later binds the tokens that are out.
		token := d.login("u", secret, "a", 0).Token
		if err := d.LimitCredential(t.Context(), "u", store.CredentialLimits{ExpiresAt: d.DB.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}

		d.wait(time.Minute)
		d.identify(token, false)
	})
}

// A household's token that ends with its credential lasts longer when the credential is given more time. Other tokens do not.
func TestCredential_HouseholdsLast(t *testing.T) {
	each(t, func(d *service) {
		ends := d.DB.Now().Add(24 * time.Hour)
		secret := d.limited("u", store.CredentialLimits{ExpiresAt: ends})
		who := access.Principal{Org: d.org.ID, Username: "u", Roles: []flex.Role{flex.HomeAssistant}}
		household, err := d.Issue(t.Context(), who, access.HouseholdTokenLife)
		if err != nil {
			t.Fatal(err)
		}

		d.wait(24*time.Hour - time.Minute)
		token := d.login("u", secret, "a", 0).Token
		later := ends.Add(24 * time.Hour)
		if err := d.LimitCredential(t.Context(), "u", store.CredentialLimits{ExpiresAt: later}); err != nil {
			t.Fatal(err)
		}

		d.wait(time.Minute)
		d.identify(token, false)
		if got := d.identify(household.Token, true).ExpiresAt; !got.Equal(later) {
			t.Errorf("the household's token lasts until %s, its credential until %s", got, later)
		}

		if err := d.LimitCredential(t.Context(), "u", access.NoLimits); err != nil {
			t.Fatal(err)
		}

		d.wait(365 * 24 * time.Hour)
		d.identify(household.Token, true)
		if err := d.Revoke(t.Context(), "u"); err != nil {
			t.Fatal(err)
		}
		d.identify(household.Token, false)
	})
}

// An organisation's networks bind all its credentials and their tokens, beside a credential's own.
func TestOrgNetworks(t *testing.T) {
	each(t, func(d *service) {
		narrow := d.limited("narrow", store.CredentialLimits{AllowFrom: networks("192.0.2.0/25", "203.0.113.0/24")})
		wide := d.limited("wide", store.CredentialLimits{})
		token := d.login("wide", wide, "198.51.100.1", 0).Token
		d.identify(token, true)

		if err := d.SetOrgNetworks(t.Context(), d.org.ID, networks("192.0.2.0/24"), false); err != nil {
			t.Fatal(err)
		}

		d.kind(d.Admit(t.Context(), d.identify(token, true), "198.51.100.1"), flex.Unauthorized)
		if err := d.Admit(t.Context(), d.identify(token, true), "192.0.2.200"); err != nil {
			t.Error(err)
		}

		d.login("wide", wide, "198.51.100.1", flex.Unauthorized)
		d.login("wide", wide, "192.0.2.200", 0)
		d.login("narrow", narrow, "192.0.2.200", flex.Unauthorized)
		d.login("narrow", narrow, "203.0.113.1", flex.Unauthorized)
		d.login("narrow", narrow, "192.0.2.7", 0)

		d.kind(d.SetOrgNetworks(t.Context(), d.org.ID, networks("10.0.0.1/8"), false), flex.Invalid)
		d.kind(d.SetOrgNetworks(t.Context(), d.org.ID, nil, false), flex.Invalid)
		d.kind(d.SetOrgNetworks(t.Context(), d.org.ID, networks("10.0.0.0/8"), true), flex.Invalid)

		if err := d.SetOrgNetworks(t.Context(), d.org.ID, nil, true); err != nil {
			t.Fatal(err)
		}

		d.login("wide", wide, "198.51.100.1", 0)
	})
}

func TestCredential_Networks(t *testing.T) {
	each(t, func(d *service) {
		secret := d.limited("u", store.CredentialLimits{AllowFrom: networks("192.0.2.0/24", "2001:db8::/48")})

		for from, want := range map[string]flex.Kind{
			"192.0.2.255": 0, "192.0.3.0": flex.Unauthorized, "2001:db8:0:7::/64": 0, "2001:db8:1::/64": flex.Unauthorized,
			"no address": flex.Unauthorized,
		} {
			d.login("u", secret, from, want)
		}

		token := d.login("u", secret, "192.0.2.1", 0).Token
		p := d.identify(token, true)
		d.kind(d.Admit(t.Context(), p, "198.51.100.1"), flex.Unauthorized)

		if err := d.Admit(t.Context(), p, "192.0.2.9"); err != nil {
			t.Error(err)
		}

		// A component token is its user's, wherever they are.
		component, err := d.Issue(t.Context(), access.Principal{Org: d.org.ID, Username: "u", Site: flex.SiteID{1}}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}

		if err := d.Admit(t.Context(), d.identify(component.Token, true), "198.51.100.1"); err != nil {
			t.Error(err)
		}

		// Who takes the limit away opens the tokens that are out, too.
		if err := d.LimitCredential(t.Context(), "u", store.CredentialLimits{}); err != nil {
			t.Fatal(err)
		}

		if err := d.Admit(t.Context(), d.identify(token, true), "198.51.100.1"); err != nil {
			t.Error(err)
		}

		many := make([]netip.Prefix, access.AllowedNetworksMax+1)
		for i := range many {
			many[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16)
		}

		d.kind(d.LimitCredential(t.Context(), "u", store.CredentialLimits{AllowFrom: many}), flex.Invalid)
		d.kind(d.LimitCredential(t.Context(), "u", store.CredentialLimits{AllowFrom: networks("10.0.0.1/8")}), flex.Invalid)
		d.kind(d.LimitCredential(t.Context(), "u", store.CredentialLimits{AllowFrom: networks("2001:db8::/65")}), flex.Invalid)

		if err := d.LimitCredential(t.Context(), "u", store.CredentialLimits{AllowFrom: many[1:]}); err != nil {
			t.Errorf("as many as may be: %v", err)
		}
	})
}

func TestCredential_Roll(t *testing.T) {
	each(t, func(d *service) {
		first := d.limited("u", store.CredentialLimits{})
		token := d.login("u", first, "a", 0).Token
		second, err := d.RollCredential(t.Context(), "u", "", 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}

		d.identify(token, true)
		d.login("u", first, "a", 0)
		d.login("u", second, "a", 0)
		d.wait(24*time.Hour - time.Microsecond)
		d.login("u", first, "a", 0)
		d.wait(time.Microsecond)
		d.login("u", first, "a", flex.Unauthorized)
		d.login("u", second, "a", 0)

		// Without a time of grace the one before ends at once, and the one before that is gone.
		third, err := d.RollCredential(t.Context(), "u", "", 0)
		if err != nil {
			t.Fatal(err)
		}

		d.login("u", first, "a", flex.Unauthorized)
		d.login("u", second, "a", flex.Unauthorized)
		d.login("u", third, "a", 0)

		_, err = d.RollCredential(t.Context(), "u", "", access.RollGraceMax+1)
		d.kind(err, flex.Invalid)
		_, err = d.RollCredential(t.Context(), "nobody", "", 0)
		d.kind(err, flex.NotFound)
	})
}

// Of a credential that is rolled twice, the password that its machines may still have is accepted: the second time is refused until that has
// ended, or replaces the new password alone, or ends both.
func TestCredential_RollTwice(t *testing.T) {
	each(t, func(d *service) {
		roll := func(grace time.Duration) (flex.Secret, error) {
			return d.RollCredential(t.Context(), "u", "", grace)
		}

		first := d.limited("u", store.CredentialLimits{})
		_, err := d.RollAgain(t.Context(), "u", "")
		d.kind(err, flex.Conflict)
		second, err := roll(24 * time.Hour)
		if err != nil {
			t.Fatal(err)
		}

		_, err = roll(time.Hour)
		d.kind(err, flex.Conflict)
		d.login("u", first, "a", 0)
		d.login("u", second, "a", 0)

		third, err := d.RollAgain(t.Context(), "u", "")
		if err != nil {
			t.Fatal(err)
		}
		d.login("u", second, "a", flex.Unauthorized)
		d.login("u", third, "a", 0)
		d.wait(24*time.Hour - time.Microsecond)
		d.login("u", first, "a", 0)

		fourth, err := roll(0)
		if err != nil {
			t.Fatal(err)
		}
		d.login("u", first, "a", flex.Unauthorized)
		d.login("u", third, "a", flex.Unauthorized)
		d.login("u", fourth, "a", 0)
		if _, err := roll(time.Hour); err != nil {
			t.Error(err)
		}

		// Revoked, it is not found, whatever was rolled before.
		if err := d.Revoke(t.Context(), "u"); err != nil {
			t.Fatal(err)
		}
		_, err = roll(time.Hour)
		d.kind(err, flex.NotFound)
		_, err = d.RollAgain(t.Context(), "u", "")
		d.kind(err, flex.NotFound)
	})
}

// The name of a revoked credential is free for its organisation alone.
func TestCredential_NameAgain(t *testing.T) {
	each(t, func(d *service) {
		first := d.limited("u", store.CredentialLimits{AllowFrom: networks("192.0.2.0/24")})
		_, err := d.AddCredential(t.Context(), d.org.ID, "u", "", flex.Roles, store.CredentialLimits{})
		d.kind(err, flex.Conflict)

		if err := d.Revoke(t.Context(), "u"); err != nil {
			t.Fatal(err)
		}

		other, _, err := d.AddOrg(t.Context(), "another one", "another", "")
		if err != nil {
			t.Fatal(err)
		}

		_, err = d.AddCredential(t.Context(), other.ID, "u", "", flex.Roles, store.CredentialLimits{})
		d.kind(err, flex.Conflict)

		second, err := d.AddCredential(t.Context(), d.org.ID, "u", "", []flex.Role{flex.EntityRead}, store.CredentialLimits{})
		if err != nil {
			t.Fatal(err)
		}

		d.login("u", first, "192.0.2.1", flex.Unauthorized)
		p := d.identify(d.login("u", second, "a", 0).Token, true)
		if len(p.Roles) != 1 || len(p.AllowFrom) != 0 {
			t.Errorf("the new credential has what the old one had: %+v", p)
		}
	})
}

// The latest use is kept to the minute.
func TestCredential_LatestUse(t *testing.T) {
	each(t, func(d *service) {
		secret := d.limited("u", store.CredentialLimits{})
		used := func() time.Time {
			all, err := d.Credentials(t.Context(), d.org.ID)
			if err != nil {
				t.Fatal(err)
			}

			for _, c := range all {
				if c.Username == "u" {
					return c.UsedAt
				}
			}

			return time.Time{}
		}

		if !used().IsZero() {
			t.Errorf("never used, and used at %s", used())
		}

		d.login("u", secret, "a", 0)
		first := used()
		d.wait(59 * time.Second)
		d.login("u", secret, "a", 0)

		if !used().Equal(first) {
			t.Errorf("%s is not %s", used(), first)
		}

		d.wait(time.Second)
		d.login("u", secret, "a", 0)
		if !used().Equal(first.Add(time.Minute)) {
			t.Errorf("used at %s", used())
		}
	})
}
