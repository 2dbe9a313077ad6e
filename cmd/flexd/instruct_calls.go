package main

import (
	"context"
	"fmt"

	"flexd/internal/app"
	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/wire"
)

// instructCalls is `flexd instruct calls`.
type instructCalls struct {
	store
	Site     string `arg:"" help:"Id of the site."`
	PerDay   *int   `help:"The most calls in a London day; 0 allows none." placeholder:"N" xor:"day"`
	PerMonth *int   `help:"The most calls in a calendar month; 0 allows none." placeholder:"N" xor:"month"`
	NoLimit  bool   `help:"Remove both limits. Without this flag a limit that is not given does not change." xor:"day,month"`
	JSON     bool   `help:"Print as JSON." name:"json"`
}

// callsLine has the limits on the calls of a site, and the number of calls.
type callsLine struct {
	Agreed    *wire.AgreedCalls `json:"agreed_calls"` // null for no limit
	Today     int               `json:"calls_today"`
	ThisMonth int               `json:"calls_this_month"`
}

// Run sets the numbers that are given, does not change the others, and prints the result.
func (o *instructCalls) Run(ctx context.Context, c console) error {
	h, org, site, err := o.openSite(ctx, o.Site)
	if err != nil {
		return err
	}
	defer h.Close()

	if o.NoLimit || o.PerDay != nil || o.PerMonth != nil {
		if err := o.set(ctx, h, org, site); err != nil {
			return err
		}
	}

	state, err := h.Registry.Calls(ctx, org, site)
	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(callsLine{
			Agreed:    contract.AgreedCalls(state.Agreed),
			Today:     state.Counted.Day,
			ThisMonth: state.Counted.Month,
		})
	}

	_, err = fmt.Fprintf(
		c.out,
		"agreed: %s; called: %d today, %d this month\n",
		state.Agreed,
		state.Counted.Day,
		state.Counted.Month,
	)

	return err
}

// set stores the agreed numbers.
func (o *instructCalls) set(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
	site flex.SiteID,
) error {
	var agreed flex.AgreedCalls
	if !o.NoLimit {
		before, err := h.Registry.Calls(ctx, org, site)
		if err != nil {
			return err
		}
		agreed = before.Agreed
	}

	if o.PerDay != nil {
		agreed.PerDay = flex.Some(*o.PerDay)
	}
	if o.PerMonth != nil {
		agreed.PerMonth = flex.Some(*o.PerMonth)
	}

	return h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org,
			Act:     "set agreed calls",
			Subject: o.Site,
			Detail:  agreed.String(),
		},
		func() error {
			_, err := h.Registry.ChangeSite(
				ctx,
				org,
				site,
				registry.SiteChange{Calls: &agreed},
			)

			return err
		},
	)
}
