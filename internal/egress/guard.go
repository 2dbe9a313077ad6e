package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
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

// never lists what stays shut whatever an operator opens: link-local addresses, and those at
// which clouds hand out the machine's credentials.
var never = []block{
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address, where clouds keep credentials"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "where AWS keeps credentials"},
	{netip.MustParsePrefix("fd20:ce::/32"), "where Google Cloud keeps credentials"},
	{netip.MustParsePrefix("100.100.100.200/32"), "where Alibaba Cloud keeps credentials"},
	{netip.MustParsePrefix("168.63.129.16/32"), "Azure's own address in a virtual machine"},
	{netip.MustParsePrefix("192.0.0.192/32"), "where Oracle Cloud keeps credentials"},
}

// Private is what an operator opens with --allow-private-endpoints and nothing else: loopback,
// private and shared addresses, but for those in never.
var Private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fc00::/7"),
}

// ErrNever is part of an error for an address that no setting opens.
var ErrNever = errors.New("it is refused whatever an operator allows")

// check returns an error if a may not be dialled.
func check(a netip.Addr, allow []netip.Prefix) error {
	a = a.Unmap().WithZone("")
	for _, b := range never {
		if b.Contains(a) {
			return fmt.Errorf("%v is %s: %w", a, b.what, ErrNever)
		}
	}

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

// shutPorts are those at which other services than web servers listen: those that browsers
// refuse, and databases. A request that is sent there is no schedule but an attack.
var shutPorts = []string{
	"0", "7", "11", "13", "15", "17", "19", "20", "21", "22", "23", "25", "37", "42", "43", "53", "69", "77", "79", "87", "95", "101",
	"102", "103", "104", "109", "110", "111", "113", "115", "117", "119", "123", "135", "137", "139", "143", "161", "179", "389", "427", "445",
	"465", "512", "513", "514", "515", "526", "530", "531", "532", "540", "548", "554", "556", "563", "587", "601", "636", "989", "990", "993",
	"995", "1433", "1521", "1719", "1720", "1723", "2049", "2375", "2379", "3306", "3389", "3659", "4045", "4190", "5060", "5061", "5432",
	"5984", "6000", "6379", "6566", "6665", "6666", "6667", "6668", "6669", "6679", "6697", "9200", "10080", "11211", "27017",
}

// CheckPort refuses a port at which no web server listens, however its number is written: 022 is 22 for whoever dials it. None
// is the scheme's own.
func CheckPort(port string) error {
	plain := strings.TrimLeft(port, "0")
	if plain == "" && port != "" {
		plain = "0"
	}
	if slices.Contains(shutPorts, plain) {
		return fmt.Errorf("the URL names the port %s, at which no web server listens", plain)
	}

	return nil
}

// CheckHost refuses a host that is plainly not on the public internet: an address that the
// guard would refuse, or a name for this machine. A name that passes is checked again at
// every dial, by the address that it then has.
func (c *Client) CheckHost(host string) error {
	host = strings.TrimSuffix(
		strings.TrimPrefix(strings.ToLower(host), "["),
		"]",
	)

	if a, err := netip.ParseAddr(host); err == nil {
		return check(a, c.allow)
	}
	name := strings.TrimSuffix(host, ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		if c.opens(name) {
			return nil
		}
		return check(netip.AddrFrom4([4]byte{127, 0, 0, 1}), c.allow)
	}

	return nil
}
