package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/registry"
	records "flexd/internal/store"
)

// supplyCommand is `flexd supply`.
type supplyCommand struct {
	Show  supplyShow  `cmd:"" help:"Show the capacity of a site's connection and its assets' powers, now and in the past. Example: flexd supply show SITE --json"`
	Set   supplySet   `cmd:"" help:"Set what a site's connection can carry. Example: flexd supply set SITE --import 18.4 --export 3.68 --from 2026-11-01"`
	Power supplyPower `cmd:"" help:"Set an asset's rated power. Example: flexd supply power ASSET 7.4 --from 2026-11-01"`
}

// ratingRow is a capacity or a power as it was recorded.
type ratingRow struct {
	Of       string   `json:"of"` // connection, or the asset's own id
	AssetID  string   `json:"asset_id,omitempty"`
	ImportKW *float64 `json:"import_capacity_kw,omitempty"`
	ExportKW *float64 `json:"export_capacity_kw,omitempty"`
	FuseA    *float64 `json:"main_fuse_a,omitempty"` // for each phase; absent if it was given in kW
	Phases   int      `json:"main_fuse_phases,omitempty"`
	PowerKW  *float64 `json:"power_kw,omitempty"` // null: not known
	Source   string   `json:"source"`             // set, or default
	// null: from the beginning
	From  *time.Time `json:"from"`
	Until *time.Time `json:"until"` // null: on and on
	// false: another was set for all its time
	Counts bool `json:"counts"`
	// null: with the site or the asset itself
	RecordedAt *time.Time `json:"recorded_at"`
}

// ratingRowOf returns the row of a recorded rating, without its value.
func ratingRowOf[V any](property, source string, l registry.RatingLine[V]) ratingRow {
	return ratingRow{
		Of:         property,
		Source:     source,
		From:       orNull(l.From),
		Until:      orNull(l.Until),
		Counts:     l.Counts,
		RecordedAt: orNull(l.At),
	}
}

// orNull is an instant; the zero time is null.
func orNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return new(at.UTC())
}

func ratingRows(r registry.Ratings) []ratingRow {
	lines := r.Supplies
	if len(lines) == 0 {
		lines = []registry.RatingLine[flex.Supply]{{Is: r.Supply, Counts: true}}
	}

	var rows []ratingRow
	for _, l := range lines {
		row := ratingRowOf("connection", l.Is.Source(), l)
		row.ImportKW, row.ExportKW = new(l.Is.Import.KW()), new(l.Is.Export.KW())
		if f := r.Supply.Fuse; f.Phases > 0 && l.Counts && l.Until.IsZero() {
			row.FuseA, row.Phases = new(f.Amperes), f.Phases
		}
		rows = append(rows, row)
	}

	for _, a := range r.Assets {
		powers := a.Powers
		if len(powers) == 0 {
			var power flex.Watts
			if a.Power != nil {
				power = *a.Power
			}
			powers = []registry.RatingLine[flex.Watts]{
				{Is: power, Counts: true},
			}
		}

		for _, l := range powers {
			row := ratingRowOf(a.ExternalID, "set", l)
			row.AssetID, row.PowerKW = a.ID.String(), kwOrNull(l.Is)
			rows = append(rows, row)
		}
	}

	return rows
}

// cells are the columns of a row.
func (r ratingRow) cells() []any {
	label := "power not known"
	if r.ImportKW != nil {
		label = fmt.Sprintf(
			"%g kW import, %g kW export",
			*r.ImportKW,
			*r.ExportKW,
		)
	} else if r.PowerKW != nil {
		label = fmt.Sprintf("%g kW", *r.PowerKW)
	}

	if r.FuseA != nil {
		label += fmt.Sprintf(" (%g A, %d-phase)", *r.FuseA, r.Phases)
	}

	until := "now and on"
	if !r.Counts {
		until = "replaced"
	} else if r.Until != nil {
		until = londonText(*r.Until)
	}

	from := "the beginning"
	if r.From != nil {
		from = londonText(*r.From)
	}

	return []any{r.Of, label, r.Source, from, until, r.RecordedAt}
}

// londonText is an instant in London: the day alone if it begins one.
func londonText(at time.Time) string {
	if day := flex.DayAt(at); day.Start().Equal(at) {
		return day.String()
	}
	return flex.Clock(at, flex.London, "2006-01-02 15:04")
}

func (c console) ratings(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
	site flex.SiteID,
	asJSON bool,
) error {
	r, err := h.Registry.Ratings(ctx, org, site)
	if err != nil {
		return err
	}

	return list(
		c,
		asJSON,
		ratingRows(r),
		"OF\tIS\tSOURCE\tFROM\tUNTIL\tRECORDED",
		ratingRow.cells,
	)
}

type supplyShow struct {
	store
	Site string `arg:"" help:"Id of the site."`
	JSON bool   `help:"Print as JSON." name:"json"`
}

// Run shows it.
func (o *supplyShow) Run(ctx context.Context, c console) error {
	h, org, site, err := o.openSite(ctx, o.Site)
	if err != nil {
		return err
	}

	defer h.Close()

	return c.ratings(ctx, h, org, site, o.JSON)
}

// openSite opens flexd and finds whose the site is.
func (s *store) openSite(
	ctx context.Context,
	text string,
) (*app.App, flex.OrgID, flex.SiteID, error) {
	return s.openSiteOf(ctx, text, (*records.All).SiteOrg)
}

// openAnySite is openSite, also of a site that was offboarded.
func (s *store) openAnySite(
	ctx context.Context,
	text string,
) (*app.App, flex.OrgID, flex.SiteID, error) {
	return s.openSiteOf(ctx, text, (*records.All).SiteOrgEver)
}

// openSiteOf opens flexd and has a read find whose the site is.
func (s *store) openSiteOf(
	ctx context.Context,
	text string,
	orgOf func(*records.All, context.Context, flex.SiteID) (flex.OrgID, error),
) (*app.App, flex.OrgID, flex.SiteID, error) {
	id, err := siteID(text)
	if err != nil {
		return nil, flex.OrgID{}, id, err
	}

	h, err := s.open(ctx)
	if err != nil {
		return nil, flex.OrgID{}, id, err
	}

	var org flex.OrgID
	err = h.DB.ReadAll(ctx, func(all *records.All) error {
		var err error
		org, err = orgOf(all, ctx, id)
		return err
	})
	if err != nil {
		h.Close()
		return nil, org, id, err
	}

	return h, org, id, nil
}

// dating is from when on a change counts.
type dating struct {
	From   string `help:"The London day from which the value holds: today or earlier, but after the last settled day of the site; from now on if not given." placeholder:"DAY"`
	Repair string `help:"Apply it to days that were already settled, too, and say why. The differences are booked; those of closed months in the open month." placeholder:"REASON"`
}

func (d dating) read() (registry.Dating, error) {
	if d.From == "" {
		return registry.Dating{Repair: d.Repair}, nil
	}
	day, err := readDay("--from", d.From)

	return registry.Dating{From: day, Repair: d.Repair}, err
}

// detail is the audit log's text about the day.
func (d dating) detail() string {
	text := ", from now on"
	if d.From != "" {
		text = ", from " + d.From
	}
	if d.Repair != "" {
		text += ", repair: " + d.Repair
	}

	return text
}

type supplySet struct {
	store
	dating
	Site   string   `arg:"" help:"Id of the site."`
	Import *float64 `help:"What it can carry from the grid, in kW: 1 to 10,000; as before if not given." placeholder:"KW"`
	Export *float64 `help:"What it can carry to the grid, in kW: 0 to 10,000; as before if not given." placeholder:"KW"`
	Fuse   *float64 `help:"The main fuse in amperes for each phase, in the place of --import: at 230 V." placeholder:"A"`
	Phases *int     `help:"Phases of --fuse, 1 or 3; 1 if not given. Readings are checked as if three were evenly loaded; plans stay within each phase by itself." placeholder:"N"`
	JSON   bool     `help:"Print as JSON." name:"json"`
}

// change returns the change of the connection, and the audit log's text about it.
func (o *supplySet) change() (flex.SupplyChange, string, error) {
	var (
		c      flex.SupplyChange
		detail string
		err    error
	)

	switch {
	case o.Fuse != nil && o.Import != nil:
		return c, "", flex.Fail(
			flex.Invalid,
			"give --import or --fuse, not both",
		)

	case o.Phases != nil && o.Fuse == nil:
		return c, "", flex.Fail(
			flex.Invalid,
			"--phases are those of the main fuse: give --fuse too, in A for each phase",
		)

	case o.Fuse == nil && o.Import == nil && o.Export == nil:
		return c, "", flex.Fail(
			flex.Invalid,
			"give --import or --export, in kW, or --fuse, in A",
		)

	case o.Fuse != nil:
		c.Fuse = &flex.Fuse{Amperes: *o.Fuse, Phases: 1}
		if o.Phases != nil {
			c.Fuse.Phases = *o.Phases
		}

		detail = "import " + kilowatts(c.Fuse.Carries().KW()) + " "
		err = c.Fuse.Check()

	case o.Import != nil:
		c.Import = new(flex.FromKW(*o.Import))
		detail = "import " + kilowatts(c.Import.KW()) + " "
	}

	if o.Export != nil {
		c.Export = new(flex.FromKW(*o.Export))
		detail += "export " + kilowatts(*o.Export)
	}

	return c, detail, err
}

// Run sets the capacity and prints the values in force.
func (o *supplySet) Run(ctx context.Context, c console) error {
	from, err := o.read()
	if err != nil {
		return err
	}

	supply, detail, err := o.change()
	if err != nil {
		return err
	}

	change := registry.SiteChange{SupplyFrom: from, Supply: supply}

	h, org, site, err := o.openSite(ctx, o.Site)
	if err != nil {
		return err
	}

	defer h.Close()

	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org,
			Act:     "set supply capacity",
			Subject: o.Site,
			Detail:  detail + o.detail(),
		},
		func() error {
			_, err := h.Registry.ChangeSite(ctx, org, site, change)
			return err
		},
	)

	if err != nil {
		return err
	}

	return c.ratings(ctx, h, org, site, o.JSON)
}

func kilowatts(kw float64) string {
	return strconv.FormatFloat(kw, 'f', -1, 64) + " kW"
}

type supplyPower struct {
	store
	dating
	Asset string  `arg:"" help:"Id of the asset, or its external id."`
	KW    float64 `arg:"" name:"kw" help:"Its rated power in kW, above 0 and up to 1,000,000."`

	Phases *int    `help:"How many phases it draws on, 1 or 3; 0 removes the value. Without a value, more than 8 kW means three." placeholder:"N"`
	Phase  *string `help:"Which of three phases a single-phase asset is on, L1, L2 or L3; unknown removes the value." placeholder:"NAME"`
	JSON   bool    `help:"Print as JSON." name:"json"`
}

// phase is the name of the phase that is set, empty to forget it; nil if it is to stay.
func (o *supplyPower) phase() *string {
	if o.Phase != nil && *o.Phase == "unknown" {
		return new("")
	}
	return o.Phase
}

// summary describes the new values for the audit log.
func (o *supplyPower) summary() string {
	message := kilowatts(o.KW)
	if o.Phases != nil && *o.Phases > 0 {
		message += fmt.Sprintf(" on %d-phase", *o.Phases)
	} else if o.Phases != nil {
		message += ", phases by its power"
	}

	if o.Phase != nil {
		message += ", phase " + *o.Phase
	}

	return message
}

// Run sets the power and prints the values in force at its site.
func (o *supplyPower) Run(ctx context.Context, c console) error {
	from, err := o.read()
	if err != nil {
		return err
	}

	if !(o.KW > 0 && o.KW <= 1_000_000) {
		return flex.Fail(
			flex.Invalid,
			"%g is not a power in kW, above 0 and up to 1,000,000",
			o.KW,
		)
	}

	h, org, id, err := o.openAsset(ctx, o.Asset)
	if err != nil {
		return err
	}

	defer h.Close()

	var after flex.Asset
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org,
			Act:     "set rated power",
			Subject: id.String(),
			Detail:  o.summary() + o.detail(),
		},
		func() error {
			var err error
			after, err = h.Registry.ChangeAsset(
				ctx,
				org,
				id,
				registry.AssetChange{
					AssetProperties: registry.AssetProperties{
						Power:  new(flex.FromKW(o.KW)),
						Phases: o.Phases,
						Phase:  o.phase(),
					},
					PowerFrom: from,
				},
			)

			return err
		},
	)

	if err != nil {
		return err
	}

	return c.ratings(ctx, h, org, after.SiteID, o.JSON)
}
