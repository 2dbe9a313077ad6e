package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"flexd/internal/flex"
	"flexd/internal/grid"
	records "flexd/internal/store"
)

// fleetCommand is `flexd fleet`.
type fleetCommand struct {
	Envelope fleetEnvelope `cmd:"" help:"The least and the most that the plugged-in assets can draw, with every need met. Example: flexd fleet envelope --gsp-group _C --format csv"`
}

// fleetEnvelope is `flexd fleet envelope`.
type fleetEnvelope struct {
	ofOrg
	Group    string `help:"A constraint group's sites alone." placeholder:"NAME"`
	GSPGroup string `name:"gsp-group" help:"Sites of a GSP group alone, such as _C." placeholder:"GROUP"`
	Windows  bool   `help:"Every window of half-hours, not half-hours alone: the bounds of a window are not the sums of theirs."`
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

	e, err := h.Grid.Envelope(ctx, org.ID, records.Scope{Group: o.Group, GSPGroup: o.GSPGroup})
	switch {
	case err != nil:
		return err
	case o.JSON || o.Format == "json":
		return c.json(e.Document(o.Windows))
	case o.Format == "csv":
		return e.WriteCSV(c.out, o.Windows)
	}

	rows := e.HalfHours
	if o.Windows {
		rows = e.Windows
	}

	return printEnvelope(c, e, rows)
}

// printEnvelope prints an envelope to be read: energies in kWh, and average powers.
func printEnvelope(c console, e *grid.Envelope, rows []grid.Window) error {
	fmt.Fprintf(c.out, "%s: %d assets; %d more without a schedule in force, in no number", e.At.Format(time.RFC3339), e.Controlled, e.Uncontrolled)
	if e.Short > 0 {
		fmt.Fprintf(c.out, "; %d cannot have what they need", e.Short)
	}

	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nFROM\tTO\tPLANNED KWH\tLEAST KWH\tMOST KWH\tLEAST KW\tMOST KW\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.3f\t%.3f\t%.1f\t%.1f\t\n", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339),
			r.Planned.KWh(), r.Least.KWh(), r.Most.KWh(), averageKW(r.Least, r.Len()), averageKW(r.Most, r.Len()))
	}

	return t.Flush()
}

// averageKW is the power that gives an energy in a time.
func averageKW(e flex.WattHours, during time.Duration) float64 {
	return e.KWh() / max(during, time.Second).Hours()
}
