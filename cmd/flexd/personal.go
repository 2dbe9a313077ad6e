package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// export is `flexd export`.
type export struct {
	store
	always
	Site   string `arg:"" optional:"" help:"Id of the site."`
	Format string `help:"machine has the records as they are stored; json and html are for the person concerned, with instants in RFC 3339, units and names; html can be printed." enum:"machine,json,html" default:"machine"`

	Organisation string `help:"Instead of a site, all data of this organisation, for flexd import on another flexd. The file has bank accounts in plain text." aliases:"org" placeholder:"NAME"`
}

// Run prints all stored data of a site, or of an organisation.
func (e *export) Run(ctx context.Context, c console) error {
	if e.Organisation != "" {
		return e.organisation(ctx, c)
	}
	if e.Site == "" {
		return flex.Fail(
			flex.Invalid,
			"name a site by its id, or an organisation with --organisation",
		)
	}

	site, err := siteID(e.Site)
	if err != nil {
		return err
	}

	h, err := e.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	var stored map[string][]map[string]any
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who: commandLine,
			Act: "export site",
			// by which flexd audit list --site and the console find it
			Subject: site.String(),
		},
		func() error {
			var err error
			stored, err = storedOf(ctx, h, site)
			return err
		},
	)

	if err != nil {
		return err
	}

	switch e.Format {
	case "json":
		return c.json(readable(stored))

	case "html":
		return writePage(c.out, site, readable(stored))
	}

	return c.json(stored)
}

// erase is `flexd erase`.
type erase struct {
	store
	form
	Site string `arg:"" help:"Id of the site."`
	Yes  bool   `help:"Erase the records; without this flag the command only counts them."`

	RewriteLater bool `help:"Do not rewrite SQLite's file now, during which flexd serve cannot write. The same command without this rewrites it, for all that was erased until then."`
}

// Run offboards a site if needed and removes its data, except those about money.
func (e *erase) Run(ctx context.Context, c console) error {
	site, err := siteID(e.Site)
	if err != nil {
		return err
	}

	h, err := e.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	if !e.Yes {
		return e.preview(ctx, c, h, site)
	}

	var rows int64
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who: commandLine,
			Act: "erase site",

			Subject: site.String(),
		},
		func() error {
			var err error
			rows, err = e.erase(ctx, h, site)
			return err
		},
	)

	if err != nil {
		return err
	}

	later := ""
	if e.RewriteLater {
		later = " On SQLite its file is still to be rewritten, by this command without --rewrite-later."
	}

	return e.print(
		c,
		fields{"site_id": site, "rows": rows},
		"erased %d rows of site %s; its money is kept under that id alone. Backups made before now still hold it until they age out.%s\n",
		rows,
		site,
		later,
	)
}

// erase offboards a site if need be, erases it, and returns of how many rows.
func (e *erase) erase(
	ctx context.Context,
	h *app.App,
	site flex.SiteID,
) (int64, error) {
	var org flex.OrgID
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		org, err = all.SiteOrg(ctx, site)
		return err
	})
	if err == nil {
		_, _, err = h.Registry.Offboard(ctx, org, site)
	}

	if err != nil && flex.KindOf(err) != flex.NotFound { // gone already: what is left of it is erased
		return 0, err
	}

	rows, err := h.DB.Erase(ctx, site)
	if err == nil && !e.RewriteLater {
		err = h.DB.Scrub(ctx)
	}

	if err != nil || rows > 0 {
		return rows, err
	}

	// A site that was never in this cell, and may be in another, must not be reported as
	// erased.
	_, err = storedOf(ctx, h, site)

	return 0, err
}

// storedOf reads all stored data of a site. It fails with NotFound if there are none.
func storedOf(
	ctx context.Context,
	h *app.App,
	site flex.SiteID,
) (map[string][]map[string]any, error) {
	var stored map[string][]map[string]any
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		stored, err = all.Export(ctx, site)
		return err
	})
	if err != nil {
		return nil, err
	}

	for _, rows := range stored {
		if len(rows) > 0 {
			return stored, nil
		}
	}

	return nil, flex.Fail(
		flex.NotFound,
		"nothing is held on a site %s: flexd find, or the console, finds a site by its MPAN, postcode or e-mail",
		site,
	)
}

// preview prints what would be erased.
func (e *erase) preview(
	ctx context.Context,
	c console,
	h *app.App,
	site flex.SiteID,
) error {
	stored, err := storedOf(ctx, h, site)
	if err != nil {
		return err
	}

	if e.JSON {
		err = c.json(storedRows(site, stored))
	} else {
		err = c.erasable(site, stored)
	}

	if err != nil {
		return err
	}

	return flex.Fail(
		flex.Invalid,
		"nothing was erased: with --yes the site is offboarded, and all of this but its money erased for good",
	)
}

// storedRows is the number of rows of each table that concern a site, for JSON.
func storedRows(site flex.SiteID, stored map[string][]map[string]any) fields {
	rows := map[string]int{}
	for table, records := range stored {
		rows[table] = len(records)
	}

	return fields{"site_id": site, "erased": false, "rows_held": rows}
}

// erasable prints the number of rows of each table that concern a site.
func (c console) erasable(site flex.SiteID, stored map[string][]map[string]any) error {
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "HELD ON SITE %s\tROWS\n", site)

	for _, table := range slices.Sorted(maps.Keys(stored)) {
		fmt.Fprintf(t, "%s\t%d\n", table, len(stored[table]))
	}

	return t.Flush()
}

func siteID(text string) (flex.SiteID, error) {
	var id flex.SiteID
	if err := id.UnmarshalText([]byte(text)); err != nil {
		return id, flex.Fail(
			flex.Invalid,
			"%v: flexd find gives the id of a site by its MPAN, e-mail address or external id",
			err,
		)
	}

	return id, nil
}
