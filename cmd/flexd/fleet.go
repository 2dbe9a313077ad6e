package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"flexd/internal/contract"
	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/grid"
)

// fleetCommand is `flexd fleet`.
type fleetCommand struct {
	Envelope fleetEnvelope `cmd:"" help:"Print the least and the most that the plugged-in assets can draw, with every need met. Example: flexd fleet envelope --gsp-group _C --format csv"`
	Ahead    fleetAhead    `cmd:"" help:"Forecast how much the fleet will draw tomorrow at least, and by how much it could draw less or more, with confidences and their past reliability. Example: flexd fleet ahead --half-hours 4 --format csv"`
	Follow   fleetFollow   `cmd:"" help:"Say whether the plugged-in cars can follow a power profile with every need met: if so, with each car's part; if not, with the half-hours that prove it. Home batteries do not count."`
}

// fleetAhead is `flexd fleet ahead`.
type fleetAhead struct {
	ofOrg
	Group     string `help:"Only sites of this constraint group." placeholder:"NAME"`
	GSPGroup  string `name:"gsp-group" help:"Only sites of this GSP group, such as _C." placeholder:"GROUP"`
	Day       string `help:"A day in London, from 90 days ago to tomorrow, with the outturn if it is over; by default tomorrow." placeholder:"YYYY-MM-DD"`
	HalfHours int    `name:"half-hours" help:"How many half-hours a window has." default:"1"`
	Format    string `help:"As text, csv or json." enum:"text,csv,json" default:"text"`
	JSON      bool   `help:"The same as --format json." name:"json"`
}

// Run prints a forecast.
func (o *fleetAhead) Run(ctx context.Context, c console) error {
	day, err := optionalDay("--day", o.Day)
	if err != nil {
		return err
	}

	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	a, err := h.Grid.Ahead(
		ctx,
		org.ID,
		flex.Scope{Group: o.Group, GSPGroup: o.GSPGroup},
		day,
		o.HalfHours,
	)

	if err != nil {
		return err
	}

	if o.JSON || o.Format == "json" {
		return c.json(contract.Ahead(a))
	}

	if o.Format == "csv" {
		return a.WriteCSV(c.out)
	}

	return printAhead(c, a)
}

// printAhead prints a forecast to be read.
func printAhead(c console, a *grid.Ahead) error {
	fmt.Fprintf(
		c.out,
		"%s, learned from %s, %d home batteries and %d heaters in %s; not counted: %s without a schedule\n",
		a.Day,
		countOf(a.Stays, "session"),
		a.Batteries,
		a.Heaters,
		countOf(a.Days, "day"),
		countOf(a.Uncontrolled, "session"),
	)

	if len(a.Windows) == 0 {
		fmt.Fprintf(
			c.out,
			"nothing is forecast: %s\n",
			a.TooFew(),
		)

		return nil
	}

	for _, k := range forecast.Kinds {
		j := a.Judged[k]
		fmt.Fprintf(c.out, "%s on the last %d days:", k, j.Days)
		for i, confidence := range forecast.Confidences {
			fmt.Fprintf(
				c.out,
				" P%d kept %.1f %%, volume %.1f %%;",
				confidence,
				100*j.Kept[i],
				100*j.Volume[i],
			)
		}

		fmt.Fprintln(c.out)
	}

	return table(
		c,
		a.Windows,
		"FROM\tTO\tLOAD P50 KW\tP90\tCAME\tTURN-DOWN P50 KW\tP90\tCAME\tTURN-UP P50 KW\tP90\tCAME",
		func(w grid.AheadWindow) []any {
			cells := []any{w.From, w.To}
			for _, k := range forecast.Kinds {
				actual := "-"
				if w.Actual != nil {
					actual = strconv.FormatFloat(w.Actual[k], 'f', 1, 64)
				}

				cells = append(
					cells,
					fmt.Sprintf("%.1f", w.KW[k][0]),
					fmt.Sprintf("%.1f", w.KW[k][2]),
					actual,
				)
			}

			return cells
		},
	)
}

// fleetEnvelope is `flexd fleet envelope`.
type fleetEnvelope struct {
	ofOrg
	Group    string `help:"Only sites of this constraint group." placeholder:"NAME"`
	GSPGroup string `name:"gsp-group" help:"Only sites of this GSP group, such as _C." placeholder:"GROUP"`
	Windows  bool   `help:"Print every window of several half-hours, too. The bounds of a window are not the sums of the bounds of its half-hours."`
	Format   string `help:"As text, csv or json." enum:"text,csv,json" default:"text"`
	JSON     bool   `help:"The same as --format json." name:"json"`
}

// Run prints an envelope.
func (o *fleetEnvelope) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	longest := 1
	if o.Windows {
		longest = grid.HalfHours
	}

	e, err := h.Grid.Envelope(
		ctx,
		org.ID,
		contract.ScopeOf(o.Group, o.GSPGroup),
		longest,
	)
	if err != nil {
		return err
	}

	if o.JSON || o.Format == "json" {
		return c.json(contract.Envelope(e, o.Windows))
	}

	if o.Format == "csv" {
		return e.WriteCSV(c.out, o.Windows)
	}

	rows := e.HalfHours
	if o.Windows {
		rows = e.Windows
	}

	return printEnvelope(c, e, rows)
}

// printEnvelope prints an envelope to be read: energies in kWh, and average powers.
func printEnvelope(
	c console,
	e *grid.Envelope,
	rows []grid.Window,
) error {
	fmt.Fprintf(
		c.out,
		"%s: %s; not counted: %d without a schedule in force",
		e.At.Format(time.RFC3339),
		countOf(e.Controlled, "asset"),
		e.Uncontrolled,
	)

	if e.Short > 0 {
		fmt.Fprintf(c.out, "; %d cannot have what they need", e.Short)
	}

	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(
		t,
		"\nFROM\tTO\tPLANNED KWH\tLEAST KWH\tMOST KWH\tLEAST KW\tMOST KW\tBATTERIES PLANNED KWH\tLEAST KWH\tMOST KWH\tHEATERS PLANNED KWH\tLEAST KWH\tMOST KWH\t",
	)

	for _, r := range rows {
		fmt.Fprintf(
			t,
			"%s\t%s\t%.3f\t%.3f\t%.3f\t%.1f\t%.1f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t\n",
			r.From.Format(time.RFC3339),
			r.To.Format(time.RFC3339),
			r.Planned.KWh(),
			r.Least.KWh(),
			r.Most.KWh(),
			averageKW(r.Least, r.Len()),
			averageKW(r.Most, r.Len()),
			r.Batteries.Planned.KWh(),
			r.Batteries.Least.KWh(),
			r.Batteries.Most.KWh(),
			r.Heaters.Planned.KWh(),
			r.Heaters.Least.KWh(),
			r.Heaters.Most.KWh(),
		)
	}

	return t.Flush()
}

// averageKW returns the average power of an energy over a time.
func averageKW(e flex.WattHours, during time.Duration) float64 {
	return e.KWh() / max(during, time.Second).Hours()
}

// fleetFollow is `flexd fleet follow`.
type fleetFollow struct {
	ofOrg
	File     string `arg:"" help:"CSV of the energy to draw, with the columns start (RFC 3339, a half-hour) and kwh; other half-hours are free."`
	Group    string `help:"Only sites of this constraint group." placeholder:"NAME"`
	GSPGroup string `name:"gsp-group" help:"Only sites of this GSP group, such as _C." placeholder:"GROUP"`
	Parts    bool   `help:"Print every asset's part too."`
	JSON     bool   `help:"Print as JSON." name:"json"`
}

// Run says whether the assets can draw a profile. A no is an answer, not a failure.
func (o *fleetFollow) Run(ctx context.Context, c console) error {
	profile, err := readProfile(o.File)
	if err != nil {
		return err
	}

	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	f, err := h.Grid.Follow(
		ctx,
		org.ID,
		flex.Scope{Group: o.Group, GSPGroup: o.GSPGroup},
		profile,
	)
	if err != nil {
		return err
	}
	if o.JSON {
		return c.json(contract.Profile(f, o.Parts))
	}

	if f.Yes {
		fmt.Fprintf(c.out, "yes: %d assets can draw it\n", f.Controlled)
	} else {
		fmt.Fprintf(c.out, "no: %s:\n", f.Certificate)
		for _, s := range f.Certificate.HalfHours {
			fmt.Fprintln(c.out, " ", s.From.Format(time.RFC3339))
		}
	}

	for i := 0; o.Parts && i < len(f.Parts); i++ {
		fmt.Fprint(c.out, f.Parts[i].AssetID)
		for _, e := range f.Parts[i].Energy {
			fmt.Fprintf(c.out, " %.3f", e.KWh())
		}
		fmt.Fprintln(c.out)
	}

	return nil
}

// readProfile reads a profile from a CSV file.
func readProfile(file string) ([]grid.Asked, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}

	defer f.Close()

	var profile []grid.Asked
	lines := map[flex.Period]int{}
	for row, err := range csvfile.Read(f, "start", "kwh") {
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

		kwh, err := strconv.ParseFloat(row.Get("kwh"), 64)
		if err != nil || !(kwh >= 0 && kwh <= 1e6) {
			return nil, row.Fault(
				"kwh is %q: it should be a number from 0 to 1000000",
				row.Get("kwh"),
			)
		}

		period := flex.PeriodAt(start)
		if line, found := lines[period]; found {
			return nil, row.Fault("start is %s, as in line %d", row.Get("start"), line)
		}

		lines[period] = row.Line
		profile = append(profile, grid.Asked{
			Period: period,
			Energy: flex.FromKWh(kwh),
		})
	}

	if len(profile) == 0 {
		return nil, flex.Fail(
			flex.Invalid,
			"%s asks for nothing: give it a half-hour at least",
			file,
		)
	}

	return profile, nil
}
