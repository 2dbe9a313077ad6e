package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// network is the part of an IPv6 address that stands for one client: a household or a
// machine has a whole /64 to come from.
const network = 64

// Proxies are the networks of proxies whose X-Forwarded-For is believed.
type Proxies []netip.Prefix

// Client is where a request came from: the connection's other end or, if that is a trusted
// proxy, whom it names. An IPv6 address counts as its /64.
func (p Proxies) Client(r *http.Request) string {
	a, ok := peer(r)
	if !ok {
		return r.RemoteAddr
	}

	names := strings.Split(
		strings.Join(r.Header.Values("X-Forwarded-For"), ","),
		",",
	)

	for i := len(names) - 1; i >= 0 && p.Trust(a); i-- {
		named, isOne := parsePeer(strings.TrimSpace(names[i])) // some proxies add the client's port
		if !isOne {
			break
		}
		a = named
	}

	return fold(a)
}

// Trust reports whether an address is that of a trusted proxy.
func (p Proxies) Trust(a netip.Addr) bool {
	return slices.ContainsFunc(p, func(of netip.Prefix) bool {
		return of.Contains(a.Unmap().WithZone(""))
	})
}

// forwarding are the fields by which proxies say that they pass a request on.
var forwarding = []string{
	"Forwarded",
	"Via",
	"X-Forwarded-For",
	"X-Forwarded-Host",
	"X-Forwarded-Proto",
	"X-Real-Ip",
}

// Forwarded reports whether a request came through a proxy: a trusted one, or one that says so.
func (p Proxies) Forwarded(r *http.Request) bool {
	a, ok := peer(r)
	return ok && p.Trust(a) || SaysForwarded(r)
}

// SaysForwarded reports whether a request carries a field by which a proxy says that it passes
// it on.
func SaysForwarded(r *http.Request) bool {
	return slices.ContainsFunc(forwarding, func(name string) bool {
		return r.Header.Get(name) != ""
	})
}

// HTTPS reports whether the client speaks TLS, to flexd or to the proxy in front of it.
func HTTPS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// peer is the connection's other end.
func peer(r *http.Request) (netip.Addr, bool) { return parsePeer(r.RemoteAddr) }

func parsePeer(address string) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	a, err := netip.ParseAddr(host)

	return a, err == nil
}

// fold writes an address as clients are counted by.
func fold(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(network); err == nil {
			return p.String()
		}
	}

	return a.String()
}
