package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/registry"
)

// findCommand is `flexd find`.
type findCommand struct {
	store
	Text []string `arg:"" help:"An id, an MPAN, a UPRN, an e-mail address, a postcode, an address, part of an external id or of an asset's serial number, or what a bank statement calls a payment."`
	JSON bool     `help:"Print as JSON." name:"json"`
}

// The most sites and assets that are printed, and the longest search text.
const (
	findMax     = 50
	findTextMax = 200
)

// foundRows are the sites, assets and payments that were found, as JSON.
type foundRows struct {
	registry.Found
	registry.FoundInBooks
	More bool `json:"more"` // there is more than is printed
}

// Run looks for sites and assets of all organisations, as the console's search does.
func (f *findCommand) Run(ctx context.Context, c console) error {
	text := strings.TrimSpace(strings.Join(f.Text, " "))
	if text == "" || len(text) > findTextMax {
		return flex.Fail(
			flex.Invalid,
			"what is looked for has 1 to %d bytes",
			findTextMax,
		)
	}

	h, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer h.Close()

	var found foundRows
	found.Found, err = h.Registry.Search(ctx, text, findMax+1)
	if err != nil {
		return err
	}

	found.FoundInBooks, err = h.Registry.SearchBooks(ctx, text)
	if err != nil {
		return err
	}

	found.More = len(found.Sites) > findMax || len(found.Assets) > findMax
	found.Sites = found.Sites[:min(len(found.Sites), findMax)]
	found.Assets = found.Assets[:min(len(found.Assets), findMax)]
	if err := found.note(ctx, h); err != nil {
		return err
	}

	if f.JSON {
		return c.json(found)
	}

	return found.print(c)
}

func (f *foundRows) count() int {
	return len(f.Sites) + len(f.Assets) + len(f.Left) + len(f.Payments)
}

// note writes to the audit log whose sites were found. It does not write the search text,
// which may be somebody's e-mail address.
func (f *foundRows) note(ctx context.Context, h *app.App) error {
	if f.count() == 0 {
		return nil
	}

	ids := map[string]bool{}
	for _, s := range f.Sites {
		ids[s.ID.String()] = true
	}
	for _, a := range f.Assets {
		ids[a.SiteID.String()] = true
	}

	for _, l := range f.Left {
		ids[l.ID.String()] = true
	}
	for _, p := range f.Payments {
		ids[p.SiteID.String()] = true
	}

	shown := fmt.Sprintf(
		"%s, %s, at %s",
		flex.Count(len(f.Sites)+len(f.Left), "site"),
		flex.Count(len(f.Assets), "asset"),
		strings.Join(slices.Sorted(maps.Keys(ids)), " "),
	)

	return h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:    commandLine,
			Act:    flex.ActSearch,
			Detail: shown,
		},
		func() error { return nil },
	)
}

// print prints a table of sites and one of assets.
func (f *foundRows) print(c console) error {
	if f.count() == 0 {
		fmt.Fprintln(c.out, "Nothing was found.")
		return nil
	}

	if len(f.Sites) > 0 {
		err := table(
			c,
			f.Sites,
			"SITE\tORGANISATION\tPOSTCODE\tMPAN\tASSETS",
			func(s registry.SiteLine) []any {
				return []any{s.ID, s.OrgName, plainLine(s.Postcode), s.MPAN, s.Assets}
			},
		)
		if err != nil {
			return err
		}
	}

	if len(f.Assets) > 0 {
		err := table(
			c,
			f.Assets,
			"ASSET\tTYPE\tEXTERNAL ID\tSITE\tORGANISATION",
			func(a registry.AssetLine) []any {
				return []any{a.ID, a.Type, plainLine(a.ExternalID), a.SiteID, a.OrgName}
			},
		)
		if err != nil {
			return err
		}
	}

	if err := f.printBooks(c); err != nil {
		return err
	}

	if f.More {
		fmt.Fprintf(
			c.out,
			"There are more than %d: look for something more precise.\n",
			findMax,
		)
	}

	return nil
}

// printBooks prints a table of offboarded sites and one of payments.
func (f *foundRows) printBooks(c console) error {
	if len(f.Left) > 0 {
		err := table(
			c,
			f.Left,
			"OFFBOARDED SITE\tORGANISATION\tASSETS\tBALANCE",
			func(l registry.OffboardedSite) []any {
				return []any{l.ID, l.OrgName, l.Assets, l.Balance}
			},
		)
		if err != nil {
			return err
		}
	}

	if len(f.Payments) == 0 {
		return nil
	}

	return table(
		c,
		f.Payments,
		"REFERENCE\tWITHDRAWAL\tATTEMPT\tAMOUNT\tSTATUS\tSITE\tORGANISATION",
		func(p registry.Payment) []any {
			return []any{p.Reference, p.ID, p.Attempt, p.Amount, p.Status, p.SiteID, p.OrgName}
		},
	)
}
