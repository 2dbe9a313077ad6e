package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// Reach is what an operator opens of private networks.
type Reach struct {
	Prefixes []netip.Prefix
	Hosts    []string
}

// Any reports whether something is opened.
func (r Reach) Any() bool { return len(r.Prefixes)+len(r.Hosts) > 0 }

// ParseReach reads a list, with commas, of networks (10.1.0.0/16), addresses (::1) and names of
// hosts (chargers.internal). "true" stands for all private networks, "false" and nothing for
// none.
func ParseReach(text string) (Reach, error) {
	var r Reach
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "false", "no", "0":
		return r, nil
	case "true", "yes", "1":
		r.Prefixes = Private
		return r, nil
	}

	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if p, err := netip.ParsePrefix(part); err == nil {
			r.Prefixes = append(r.Prefixes, p.Masked())
			continue
		}

		if a, err := netip.ParseAddr(part); err == nil {
			r.Prefixes = append(
				r.Prefixes,
				netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()),
			)

			continue
		}

		if part == "" || strings.ContainsAny(part, "/:[] ") {
			return r, fmt.Errorf(
				"%q is no network such as 10.1.0.0/16, no address and no host name",
				part,
			)
		}

		r.Hosts = append(r.Hosts, part)
	}

	return r, nil
}
