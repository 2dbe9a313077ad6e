package web_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/web"
)

func TestProxies_Client(t *testing.T) {
	p := web.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct{ name, remote, forwarded, want string }{
		{"no proxy", "192.0.2.1:5000", "", "192.0.2.1"},
		{"not a trusted one", "192.0.2.1:5000", "198.51.100.7", "192.0.2.1"},
		{"a trusted one", "10.1.1.1:5000", "198.51.100.7", "198.51.100.7"},
		{"a chain, of which the client made up the beginning", "10.1.1.1:5000", "203.0.113.9, 198.51.100.7, 10.2.2.2", "198.51.100.7"},
		{"trusted, and names nobody", "10.1.1.1:5000", "", "10.1.1.1"},
		{"nonsense", "10.1.1.1:5000", "nonsense", "10.1.1.1"},
		{"with the client's port", "10.1.1.1:5000", "203.0.113.9, 198.51.100.7:41000, 10.2.2.2:80", "198.51.100.7"},
		{"IPv6 with the client's port", "10.1.1.1:5000", "[2001:db8:1:2:3::4]:41000", "2001:db8:1:2::/64"},
		{"IPv6 is its network", "[2001:db8:1:2:3::4]:5000", "", "2001:db8:1:2::/64"},
		{"IPv6 behind a proxy", "[fd00::1]:5000", "2001:db8:1:2:ffff::4", "2001:db8:1:2::/64"},
		{"IPv4 in IPv6", "[::ffff:192.0.2.1]:5000", "", "192.0.2.1"},
		{"a zone", "[fe80::1%eth0]:5000", "", "fe80::/64"},
		{"no address at all", "pipe", "", "pipe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.remote
			r.Header.Set("X-Forwarded-For", c.forwarded)

			if got := p.Client(r); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestProxies_Forwarded(t *testing.T) {
	p := web.Proxies{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		remote, field string
		want          bool
	}{
		{"127.0.0.1:5000", "", false}, {"10.1.1.1:5000", "", true}, {"127.0.0.1:5000", "X-Forwarded-For", true},
		{"127.0.0.1:5000", "Forwarded", true}, {"127.0.0.1:5000", "X-Real-IP", true}, {"127.0.0.1:5000", "Via", true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote

		if c.field != "" {
			r.Header.Set(c.field, "198.51.100.7")
		}

		if got := p.Forwarded(r); got != c.want {
			t.Errorf("%s with %q: %v", c.remote, c.field, got)
		}
	}
}

// Every kind of failure has a status that says so and a code of its own.
func TestStatusOf(t *testing.T) {
	codes := map[string]flex.Kind{}
	for kind := flex.Internal; kind <= flex.TimedOut; kind++ {
		if status := web.StatusOf(kind); status < 400 && kind != flex.Unclear {
			t.Errorf("kind %d is answered with %d", kind, status)
		}

		if other, taken := codes[web.CodeOf(kind)]; taken {
			t.Errorf("kinds %d and %d have one code", kind, other)
		}

		codes[web.CodeOf(kind)] = kind
	}

	if got := web.StatusOf(flex.TimedOut + 100); got != 500 {
		t.Errorf("a kind that is none is answered with %d", got)
	}
}

func TestSetHeaders(t *testing.T) {
	for proto, strict := range map[string]bool{"": false, "http": false, "https": true} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("X-Forwarded-Proto", proto)
		web.SetHeaders(w.Header(), r, web.PolicyNothing)

		h := w.Header()
		if (h.Get("Strict-Transport-Security") != "") != strict {
			t.Errorf("by %q: Strict-Transport-Security %q", proto, h.Get("Strict-Transport-Security"))
		}

		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Content-Security-Policy") != web.PolicyNothing {
			t.Errorf("by %q: %v", proto, h)
		}
	}
}
