package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// block is a stretch of addresses that the IANA special-purpose registries hold back.
type block struct {
	netip.Prefix
	what string // as in "127.0.0.1 is …"
}

// public6 is the space from which global IPv6 addresses are given out. All outside it is
// refused: loopback, mapped and translated IPv4, unique local, link-local, multicast.
var public6 = netip.MustParsePrefix("2000::/3")

// special lists the blocks that are refused. In IPv6 only those within public6 need a line.
var special = []block{
	{netip.MustParsePrefix("0.0.0.0/8"), "this host itself"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's shared address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved for protocols"},
	{netip.MustParsePrefix("192.0.2.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "an address for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	{netip.MustParsePrefix("2001::/23"), "reserved for protocols (Teredo and its like)"},
	{netip.MustParsePrefix("2001:db8::/32"), "an address for documentation"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 address, which hides an IPv4 one"},
	{netip.MustParsePrefix("3fff::/20"), "an address for documentation"},
}

// Private is what an operator opens with --allow-private-endpoints: loopback, private and
// shared addresses. Link-local ones, where clouds keep their credentials, stay shut.
var Private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7"),
}

// check returns an error if a may not be dialled.
func check(a netip.Addr, allow []netip.Prefix) error {
	a = a.Unmap().WithZone("")
	for _, p := range allow {
		if p.Contains(a) {
			return nil
		}
	}

	if a.Is6() && !public6.Contains(a) {
		return fmt.Errorf("%v is not on the public internet", a)
	}

	for _, b := range special {
		if b.Contains(a) {
			return fmt.Errorf("%v is %s, not on the public internet", a, b.what)
		}
	}

	return nil
}

// CheckHost refuses a host that is plainly not on the public internet: an address that the
// guard would refuse, or a name for this machine. A name that passes is checked again at
// every dial, by the address that it then has.
func (c *Client) CheckHost(host string) error {
	host = strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(host), "["), "]")
	if a, err := netip.ParseAddr(host); err == nil {
		return check(a, c.allow)
	}
	if name := strings.TrimSuffix(host, "."); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return check(netip.AddrFrom4([4]byte{127, 0, 0, 1}), c.allow)
	}

	return nil
}
