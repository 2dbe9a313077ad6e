package main

import (
	"context"
	"fmt"
	"net/netip"

	"flexd/internal/flex"
)

// orgNetworks is `flexd org networks`.
type orgNetworks struct {
	store
	form
	Name       string         `arg:"" help:"Name of the organisation."`
	Network    []netip.Prefix `arg:"" optional:"" help:"Networks that its credentials may be used from, such as 192.0.2.0/24 or 2001:db8::/48. A credential's own networks limit it further."`
	Everywhere bool           `help:"Remove the limit: the credentials can be used from everywhere again."`
}

// Run replaces the networks if some are given, and prints them.
func (o *orgNetworks) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	org, err := namedOrg(ctx, h, o.Name)
	if err != nil {
		return err
	}

	if o.Everywhere || len(o.Network) > 0 {
		act := flex.AuditEntry{
			Who:    commandLine,
			Act:    "set organisation's networks",
			Org:    org.ID,
			Detail: fmt.Sprint(o.Network),
		}

		err := h.Access.Act(ctx, act, func() error {
			return h.Access.SetOrgNetworks(ctx, org.ID, o.Network, o.Everywhere)
		})
		if err != nil {
			return err
		}
	}

	networks, err := h.Access.OrgNetworks(ctx, org.ID)
	if err != nil {
		return err
	}

	if o.JSON {
		if networks == nil {
			networks = []netip.Prefix{} // everywhere
		}

		return c.json(fields{"networks": networks})
	}

	if len(networks) == 0 {
		_, err = fmt.Fprintln(c.out, "everywhere")
		return err
	}

	for _, n := range networks {
		fmt.Fprintln(c.out, n)
	}

	return nil
}
