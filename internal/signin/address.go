package signin

import (
	"net/netip"
	"net/url"
	"strings"

	"flexd/internal/flex"
)

// withQuery adds parameters, name and value in turn, to a URL's query.
func withQuery(address string, pairs ...string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}

	q := u.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}

	u.RawQuery = q.Encode()

	return u.String()
}

// CheckIssuer refuses an issuer that cannot be asked safely: it is reached by TLS, or on this
// machine.
func CheckIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return flex.Fail(
			flex.Invalid,
			"%q is no URL of an identity provider, such as https://login.example.com/realms/staff",
			issuer,
		)
	}

	if u.RawQuery != "" || u.Fragment != "" {
		return flex.Fail(
			flex.Invalid,
			"%q: an issuer's URL has neither ? nor #",
			issuer,
		)
	}

	a, err := netip.ParseAddr(strings.Trim(u.Hostname(), "[]"))
	near := u.Hostname() == "localhost" || err == nil && a.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !near) {
		return flex.Fail(
			flex.Invalid,
			"%q: an identity provider is asked over https",
			issuer,
		)
	}

	return nil
}
