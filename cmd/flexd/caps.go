package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"flexd/internal/api"
	"flexd/internal/app"
	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

// caps is `flexd caps`.
type caps struct {
	Set   capsSet   `cmd:"" help:"Set a cap of the fleet or of one group of sites, or the traded position; other values stay."`
	Show  capsShow  `cmd:"" help:"Show the caps."`
	Clear capsClear `cmd:"" help:"Remove all caps, or those of one group."`
}

type capsSet struct {
	ofOrg
	Group    string        `help:"The constraint group, created if it does not exist; by default the whole fleet." placeholder:"NAME"`
	Power    *float64      `name:"kw" help:"The most that is drawn at any instant, in kW; below 0 removes this cap." placeholder:"KW"`
	Starts   *int          `name:"starts-per-minute" help:"How many assets begin to charge in one minute at most; 0 for no limit." placeholder:"N"`
	Parent   *string       `help:"The group that this one lies in, as a feeder lies in a substation: the caps of both bind its sites; empty for none." placeholder:"NAME"`
	Site     []flex.SiteID `help:"A site of the group; may be repeated. Replaces the group's sites." placeholder:"ID"`
	Position string        `help:"CSV of the energy bought ahead, with the columns start (RFC 3339, a half-hour), kwh, buy_gbp_per_mwh and sell_gbp_per_mwh." placeholder:"FILE"`
	Preview  bool          `help:"Print the caps as they would be, and set nothing."`
}

// Run sets caps.
func (o *capsSet) Run(ctx context.Context, c console) error {
	if err := o.check(); err != nil {
		return err
	}

	var position []flex.Traded
	if o.Position != "" {
		var err error
		position, err = readPosition(o.Position)
		if err != nil {
			return err
		}
	}

	if o.Preview {
		return o.preview(ctx, c, position)
	}

	return o.actOn(ctx, "set caps", o.Group, func(h *app.App, org flex.Org) error {
		var empty bool
		err := h.Control.ChangeCaps(ctx, org.ID, func(caps *flex.Caps) error {
			if err := o.apply(caps, position); err != nil {
				return err
			}

			empty = isEmpty(caps, o.Group)
			return nil
		})

		message := "The fleet is planned under its caps by whatever process serves it, within about half a minute."
		if empty {
			message = fmt.Sprintf(
				"The cap binds nothing yet: group %s has no site. flexd caps set --group %q --site ID names one.",
				o.Group,
				o.Group,
			)
		}

		if err == nil {
			fmt.Fprintln(c.out, message)
		}

		return err
	})
}

// check refuses flags that set nothing, or mean a group that is not named.
func (o *capsSet) check() error {
	if o.Group == "" && o.setsNothing() {
		return flex.Fail(
			flex.Invalid,
			"nothing to set: give --kw, --starts-per-minute, --group or --position",
		)
	}

	if o.Power != nil && !(*o.Power <= flex.CapMax.KW()) { // NaN would take the cap away
		return flex.Fail(
			flex.Invalid,
			"--kw is %v kW: it should be 0 to %.0f, or below 0 for no cap",
			*o.Power,
			flex.CapMax.KW(),
		)
	}

	if o.ofGroup() && o.Group == "" {
		return flex.Fail(
			flex.Invalid,
			"--site names the sites of a group, and --parent what it lies in: give --group too",
		)
	}

	return nil
}

// ofGroup reports whether a group's sites, or the group that contains it, are given.
func (o *capsSet) ofGroup() bool { return len(o.Site) > 0 || o.Parent != nil }

// setsNothing reports whether no flag has a value to set.
func (o *capsSet) setsNothing() bool {
	capGiven := o.Power != nil || o.Starts != nil
	return !capGiven && !o.ofGroup() && o.Position == ""
}

// apply sets the given values. With only the name of a group, it creates that group, or
// changes nothing if the group exists.
func (o *capsSet) apply(
	caps *flex.Caps,
	position []flex.Traded,
) error {
	exists := slices.ContainsFunc(caps.Groups, func(g flex.CapGroup) bool { return g.Name == o.Group })
	if exists && o.setsNothing() {
		return flex.Fail(
			flex.Invalid,
			"nothing to set: the group %q exists; give --kw, --starts-per-minute, --parent or --site",
			o.Group,
		)
	}

	o.change(caps, position)
	return nil
}

// preview prints the caps as they would be.
func (o *capsSet) preview(
	ctx context.Context,
	c console,
	position []flex.Traded,
) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	caps, err := h.Control.PreviewCaps(ctx, org.ID, func(caps *flex.Caps) error {
		return o.apply(caps, position)
	})
	if err != nil {
		return err
	}

	return printCaps(c, caps)
}

// isEmpty reports whether a group of the caps has no site, and no group that lies in it has
// one.
func isEmpty(caps *flex.Caps, group string) bool {
	if group == "" {
		return false
	}

	inside := caps.Tree().Inside(group)
	return !slices.ContainsFunc(caps.Groups, func(g flex.CapGroup) bool {
		return slices.Contains(inside, g.Name) && len(g.Sites) > 0
	})
}

// change sets the given values of the fleet's or the group's cap, and the position.
func (o *capsSet) change(
	caps *flex.Caps,
	position []flex.Traded,
) {
	if o.Position != "" {
		caps.Position = position
	}

	one := &caps.Fleet
	if o.Group != "" {
		i := slices.IndexFunc(caps.Groups, func(g flex.CapGroup) bool {
			return g.Name == o.Group
		})
		if i < 0 {
			i, caps.Groups = len(caps.Groups), append(caps.Groups, flex.CapGroup{Name: o.Group})
		}

		if len(o.Site) > 0 {
			caps.Groups[i].Sites = o.Site
		}
		if o.Parent != nil {
			caps.Groups[i].Parent = *o.Parent
		}

		one = &caps.Groups[i].Cap
	}

	if o.Power != nil {
		one.Power = nil
		if *o.Power >= 0 {
			one.Power = new(flex.FromKW(*o.Power))
		}
	}

	if o.Starts != nil {
		one.StartsPerMinute = *o.Starts
	}
}

// readPosition reads a traded position from a CSV file.
func readPosition(file string) ([]flex.Traded, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}

	defer f.Close()

	var ts []flex.Traded
	for row, err := range csvfile.Read(
		f,
		"start",
		"kwh",
		"buy_gbp_per_mwh",
		"sell_gbp_per_mwh",
	) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}

		start, err := time.Parse(time.RFC3339, row.Get("start"))
		if err != nil || !flex.PeriodAt(start).Start().Equal(start) {
			return nil, row.Fault(
				"start is %q: it should be a half-hour's, such as 2026-01-15T18:30:00Z",
				row.Get("start"),
			)
		}

		var v [3]float64
		for i, name := range []string{
			"kwh",
			"buy_gbp_per_mwh",
			"sell_gbp_per_mwh",
		} {
			v[i], err = strconv.ParseFloat(row.Get(name), 64)
			if err != nil || math.IsNaN(v[i]) || math.Abs(v[i]) > 1e6 {
				return nil, row.Fault(
					"%s is %q: it should be a number",
					name,
					row.Get(name),
				)
			}
		}

		ts = append(ts, flex.Traded{
			Period: flex.PeriodAt(start),
			Energy: flex.FromKWh(v[0]),
			Buy:    flex.FromGBPPerMWh(v[1]),
			Sell:   flex.FromGBPPerMWh(v[2]),
		})
	}

	if len(ts) == 0 { // it would remove the position that there is
		return nil, flex.Fail(
			flex.Invalid,
			"%s has no half-hour: give it one at least",
			file,
		)
	}

	return ts, nil
}

type capsShow struct {
	ofOrg
	JSON bool `help:"Print as JSON." name:"json"`
}

// Run shows the caps.
func (o *capsShow) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	caps, err := h.Control.Caps(ctx, org.ID)
	if flex.KindOf(err) == flex.NotFound && o.JSON {
		return c.json(fields{})
	}

	if flex.KindOf(err) == flex.NotFound {
		return flex.Fail(
			flex.NotFound,
			"no caps are set: flexd caps set sets them",
		)
	}

	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(api.ShowCaps(caps))
	}

	return printCaps(c, caps)
}

// printCaps prints caps as a table.
func printCaps(c console, caps flex.Caps) error {
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "OF\tIN\tKW\tSTARTS A MINUTE\tSITES")
	fmt.Fprintf(
		t,
		"the fleet\t-\t%s\t%s\tall\n",
		capText(caps.Fleet.Power),
		startsText(caps.Fleet),
	)

	for _, g := range caps.Groups {
		fmt.Fprintf(
			t,
			"%s\t%s\t%s\t%s\t%d\n",
			g.Name,
			cmp.Or(g.Parent, "-"),
			capText(g.Power),
			startsText(g.Cap),
			len(g.Sites),
		)
	}

	if len(caps.Position) > 0 {
		fmt.Fprintln(t, "\nHALF-HOUR\tKWH\tBUY £/MWH\tSELL £/MWH")
	}

	for _, p := range caps.Position {
		fmt.Fprintf(
			t,
			"%s\t%g\t%g\t%g\n",
			p.Period.Start().Format(time.RFC3339),
			p.Energy.KWh(),
			p.Buy.GBPPerMWh(),
			p.Sell.GBPPerMWh(),
		)
	}

	return t.Flush()
}

func capText(w *flex.Watts) string {
	if w == nil {
		return "-"
	}
	return strconv.FormatFloat(w.KW(), 'f', -1, 64)
}

func startsText(c flex.Cap) string {
	if c.StartsPerMinute == 0 {
		return "-"
	}
	return strconv.Itoa(c.StartsPerMinute)
}

type capsClear struct {
	ofOrg
	Group string `help:"The constraint group to remove; everything if not given." placeholder:"NAME"`
}

// Run removes caps, and prints which.
func (o *capsClear) Run(ctx context.Context, c console) error {
	message := "All caps are removed."
	if o.Group != "" {
		message = fmt.Sprintf("The caps of group %s are removed.", o.Group)
	}

	err := o.actOn(ctx, "clear caps", o.Group, func(h *app.App, org flex.Org) error {
		if o.Group != "" {
			return o.clearGroup(ctx, h, org.ID)
		}

		_, err := h.Control.Caps(ctx, org.ID)
		if flex.KindOf(err) == flex.NotFound {
			message = "No caps are set."
			return nil
		}
		if err != nil {
			return err
		}

		return h.Control.ClearCaps(ctx, org.ID)
	})
	if err != nil {
		return err
	}

	_, err = fmt.Fprintln(c.out, message)

	return err
}

// clearGroup removes a group and its caps.
func (o *capsClear) clearGroup(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
) error {
	return h.Control.ChangeCaps(ctx, org, func(caps *flex.Caps) error {
		if err := nothingInside(caps, o.Group); err != nil {
			return err
		}

		n := len(caps.Groups)
		caps.Groups = slices.DeleteFunc(caps.Groups, func(g flex.CapGroup) bool {
			return g.Name == o.Group
		})
		if len(caps.Groups) == n {
			return flex.Fail(
				flex.NotFound,
				"no group is named %q: flexd caps show prints them",
				o.Group,
			)
		}

		return nil
	})
}

// nothingInside refuses to remove a group while other groups lie in it, because the removed
// cap would no longer limit them.
func nothingInside(caps *flex.Caps, group string) error {
	for i := range caps.Groups {
		if g := &caps.Groups[i]; g.Parent == group {
			return flex.Fail(
				flex.Conflict,
				"the group %q cannot be taken away while %q lies in it: flexd caps set --group %q --parent \"\" takes it out",
				group,
				g.Name,
				g.Name,
			)
		}
	}

	return nil
}
