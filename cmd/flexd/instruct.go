package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// instructCommand is `flexd instruct`.
type instructCommand struct {
	Preview instructPreview `cmd:"" help:"Show what an instruction would do: which cars, batteries and heaters are called, at what cost, and what they draw later instead. Example: flexd instruct preview --change-kw=-500 --from 2026-01-15T17:30:00Z --to 2026-01-15T19:00:00Z --service dno"`
	Send    instructSend    `cmd:"" help:"Have a part of the fleet draw less or more for a time."`
	Stop    instructStop    `cmd:"" help:"Stop an instruction, or all of them: the assets that it called are planned without it at once."`
	List    instructList    `cmd:"" help:"The newest instructions."`
	Calls   instructCalls   `cmd:"" help:"How often a site may be called, as its household agreed: show it, or set it. Example: flexd instruct calls SITE --per-day 1 --per-month 5"`
	Report  instructReport  `cmd:"" help:"Show an instruction's target, and the energy that was expected and metered."`
}

// instructTarget has the flags of an instruction's target.
type instructTarget struct {
	ofOrg
	ChangeKW *float64  `name:"change-kw" help:"Requested change of power compared with the plan, in kW; negative to draw less." placeholder:"KW" xor:"target"`
	LimitKW  *float64  `name:"limit-kw" help:"The most power that may be drawn, in kW." placeholder:"KW" xor:"target"`
	Group    string    `help:"Only sites of this constraint group." placeholder:"NAME"`
	GSPGroup string    `name:"gsp-group" help:"Only sites of this GSP group, such as _C." placeholder:"GROUP"`
	From     time.Time `help:"When it begins, as in 2026-01-15T17:30:00Z; an earlier time counts as now." required:""`
	To       time.Time `help:"When it ends." required:""`
	Service  string    `help:"What it is for: ${enum}." enum:"wholesale,cm,dno,dfs,lcm,sffr,other" default:"other"`
	Price    float64   `help:"What the service pays, in £/MWh. If it is above zero, the delivered energy is settled at this price." placeholder:"GBP"`
	Reason   string    `help:"The reason, for other operators." default:""`
	Unfair   bool      `help:"Call the cheapest assets first, also those that were called often; without this flag, the sites that were called least often come first."`
	JSON     bool      `help:"Print JSON." name:"json"`
}

// instruction returns the flags' instruction in the interface's form.
func (o *instructTarget) instruction() flex.Instruction {
	return contract.InstructionOf(&wire.InstructionRequest{
		ChangeKW:       o.ChangeKW,
		LimitKW:        o.LimitKW,
		Group:          o.Group,
		GSPGroup:       o.GSPGroup,
		StartTimestamp: wire.At(o.From),
		EndTimestamp:   wire.At(o.To),
		Service:        o.Service,
		PriceGBPPerMWh: o.Price,
		Reason:         o.Reason,
		Unfair:         o.Unfair,
	}, commandLine)
}

// run opens flexd, has a preview made and prints it.
func (o *instructTarget) run(
	ctx context.Context,
	c console,
	make func(*app.App, flex.Org) (*control.Preview, error),
) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	p, err := make(h, org)
	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(contract.InstructionPreview(p))
	}

	return printPreview(c, p)
}

// instructPreview is `flexd instruct preview`.
type instructPreview struct{ instructTarget }

// Run prints a preview. Nothing is changed by it.
func (o *instructPreview) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, func(h *app.App, org flex.Org) (*control.Preview, error) {
		return h.Control.PreviewInstruction(ctx, org.ID, o.instruction())
	})
}

// instructSend is `flexd instruct send`.
type instructSend struct{ instructTarget }

// Run sends an instruction; a running `flexd serve` pushes the schedules.
func (o *instructSend) Run(ctx context.Context, c console) error {
	return o.run(ctx, c, func(h *app.App, org flex.Org) (*control.Preview, error) {
		act := flex.AuditEntry{
			Who:    commandLine,
			Act:    "send instruction",
			Org:    org.ID,
			Detail: o.Reason,
		}

		var p *control.Preview
		var err error
		err = h.Access.Act(ctx, act, func() error {
			p, err = h.Control.SendInstruction(ctx, org.ID, o.instruction())
			return err
		})

		return p, err
	})
}

// printSelection prints how many assets an instruction calls, and their expected change. The
// cost of a dispatch is not known.
func printSelection(c console, p *control.Preview) {
	name := string(control.StateOf(&p.Instruction, p.At))
	if !p.ID.IsZero() { // one that was not sent has none
		name += " " + p.ID.String()
	}

	fmt.Fprintf(
		c.out,
		"%s: %d of %d callable assets called, %.0f %% of the target is counted on",
		name,
		len(p.Assets),
		p.Callable,
		100*p.Reached(),
	)

	if !p.Dispatched {
		fmt.Fprintf(
			c.out,
			"; %.2f p more; at most %.1f kW above the plan in the hour after, %.1f kW later",
			p.Cost.GBP()*100,
			p.Rebound.KW(),
			p.ReboundLater.KW(),
		)
	}

	fmt.Fprintln(c.out)
}

// printReplaced prints of how many assets a dispatch replaces earlier dispatches.
func printReplaced(c console, n int) {
	if n > 0 {
		fmt.Fprintf(
			c.out,
			"It replaces earlier dispatches of %s\n",
			countOf(n, "asset"),
		)
	}
}

// printWear prints the cost of a dispatch's wear of batteries.
func printWear(c console, wear flex.Optional[flex.MicroPounds]) {
	if wear.Given {
		fmt.Fprintf(
			c.out,
			"Wear of the batteries in its time, beyond that of their plans: %.2f p\n",
			wear.Value.GBP()*100,
		)
	}
}

// printPreview prints the preview of an instruction for a person.
func printPreview(c console, p *control.Preview) error {
	printSelection(c, p)
	if p.Dispatched {
		printReplaced(c, p.NumReplaced)
		printWear(c, p.Wear)
	} else if reason := p.Why(); reason != "" {
		fmt.Fprintln(c.out, "Not more, because", reason)
	} else {
		printExcluded(c, p.Spent)
	}

	slots := func(s control.InstructedSlot) []any {
		return []any{
			s.From,
			s.To,
			kwh(s.Planned),
			kwh(s.Asked),
			kwh(s.Counted),
			kwh(s.Given),
			kwh(s.Short()),
		}
	}

	err := table(
		c,
		p.Slots,
		"FROM\tTO\tPLANNED KWH\tASKED\tCOUNTED ON\tGIVEN\tSHORT",
		slots,
	)

	if err != nil || len(p.Assets) == 0 {
		return err
	}

	columns := "\nASSET\tSITE\tWHAT\tCOUNTS %\tCALLED BEFORE\tCHANGE KWH"
	if !p.Dispatched { // nobody works out what a dispatch costs
		columns += "\tLESS KWH\tCOST P"
	}

	return table(
		c,
		p.Assets,
		columns,
		func(a control.InstructedAsset) []any {
			row := []any{
				a.AssetID,
				a.SiteID,
				assetKind(&a),
				int(a.Quality),
				a.Calls,
				kwh(a.Moved()),
			}
			if p.Dispatched {
				return row
			}

			return append(row, kwh(a.Less), fmt.Sprintf("%.2f", a.Cost.GBP()*100))
		},
	)
}

// assetKind names the kind of a called asset.
func assetKind(a *control.InstructedAsset) string {
	if a.Battery {
		return "battery"
	}
	if a.Heater {
		return "heater"
	}

	return "car"
}

// printExcluded prints which sites have had all agreed calls, if any.
func printExcluded(c console, spent string) {
	if spent != "" {
		fmt.Fprintf(c.out, "Left out: %s.\n", spent)
	}
}

// kwh is an energy in kWh to the watt-hour.
func kwh(e flex.WattHours) string { return fmt.Sprintf("%.3f", e.KWh()) }

// instructStop is `flexd instruct stop`.
type instructStop struct {
	ofOrg
	ID   flex.InstructionID `arg:"" optional:"" help:"The instruction's id."`
	All  bool               `help:"All instructions of the organisation."`
	JSON bool               `help:"Print JSON." name:"json"`
}

// Run stops one instruction or all. To stop again is no failure.
func (o *instructStop) Run(ctx context.Context, c console) error {
	if o.All != o.ID.IsZero() {
		return flex.Fail(flex.Invalid, "name one instruction, or give --all")
	}

	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	act := flex.AuditEntry{
		Who: commandLine,
		Act: "stop instructions",
		Org: org.ID,
	}

	if !o.All {
		return o.stopOne(ctx, c, h, org)
	}

	stopped := wire.InstructionsStopped{}
	err = h.Access.Act(ctx, act, func() error {
		stopped.NumStopped, err = h.Control.StopInstructions(ctx, org.ID, commandLine)
		return err
	})

	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(stopped)
	}

	fmt.Fprintf(c.out, "%d instructions are stopped\n", stopped.NumStopped)

	return nil
}

// stopOne stops an instruction and prints it.
func (o *instructStop) stopOne(
	ctx context.Context,
	c console,
	h *app.App,
	org flex.Org,
) error {
	act := flex.AuditEntry{
		Who:     commandLine,
		Act:     "stop instruction",
		Org:     org.ID,
		Subject: o.ID.String(),
	}

	var in flex.Instruction
	err := h.Access.Act(ctx, act, func() error {
		var err error
		in, err = h.Control.StopInstruction(ctx, org.ID, o.ID, commandLine)
		return err
	})

	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(contract.Instruction(&in, in.To))
	}

	fmt.Fprintf(c.out, "%s is %s\n", in.ID, control.StateOf(&in, in.To))

	return nil
}

// instructList is `flexd instruct list`.
type instructList struct {
	ofOrg
	Limit listLimit `help:"How many, the newest first." default:"20"`
	JSON  bool      `help:"Print JSON." name:"json"`
}

// Run prints the newest instructions.
func (o *instructList) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	p, err := h.Control.Instructions(ctx, org.ID, flex.InstructionID{}, int(o.Limit))
	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(contract.InstructionPage(&p))
	}

	return table(
		c,
		p.Instructions,
		"ID\tSTATE\tFROM\tTO\tTARGET\tSERVICE\tREASON\tWHO",
		func(in flex.Instruction) []any {
			return []any{
				in.ID,
				control.StateOf(&in, p.At),
				in.From,
				in.To,
				in.Goal(),
				in.Service,
				in.Reason,
				in.Who,
			}
		},
	)
}

// instructReport is `flexd instruct report`.
type instructReport struct {
	ofOrg
	ID      flex.InstructionID `arg:"" help:"The instruction's id."`
	Assets  bool               `help:"Print each asset's part, too, in JSON; CSV always has it."`
	Minutes bool               `help:"Print each minute: in JSON beside the half-hours, in CSV in their place."`
	Format  string             `help:"As text, csv or json." enum:"text,csv,json" default:"text"`
	JSON    bool               `help:"The same as --format json." name:"json"`
}

func (o *instructReport) read(
	ctx context.Context,
	from *control.Service,
	org flex.OrgID,
) (*control.InstructionReport, error) {
	if o.Minutes {
		return from.ReportInstructionMinutes(ctx, org, o.ID)
	}
	return from.ReportInstruction(ctx, org, o.ID)
}

// Run prints a report.
func (o *instructReport) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	r, err := o.read(ctx, h.Control, org.ID)
	if err != nil {
		return err
	}

	if o.JSON || o.Format == "json" {
		return c.json(contract.InstructionReport(r, o.Assets))
	}

	if o.Format == "csv" {
		return r.WriteCSV(c.out)
	}

	fmt.Fprintf(
		c.out,
		"%s %s: %s, called: %s\n",
		control.StateOf(&r.Instruction, r.At),
		r.ID,
		r.Goal(),
		countOf(len(r.Assets), "asset"),
	)

	printExcluded(c, r.Spent)

	return printReport(c, r)
}

// printReport prints the half-hours of a report.
func printReport(
	c console,
	r *control.InstructionReport,
) error {
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(
		t,
		"FROM\tTO\tASKED KWH\tBASELINE\tEXPECTED\tSHORT\tMETERED\tOF ASSETS\tTHEIR BASELINE\t",
	)

	for _, s := range r.Slots {
		fmt.Fprintf(
			t,
			"%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t\n",
			s.From.Format(time.RFC3339),
			s.To.Format(time.RFC3339),
			kwh(s.Asked),
			kwh(s.Baseline),
			kwh(s.Expected),
			kwh(r.Short(&s)),
			meteredKWh(&s, s.Metered),
			s.NumMetered,
			meteredKWh(&s, s.MeteredBaseline),
		)
	}

	return t.Flush()
}

// meteredKWh returns an energy of the assets that were metered in a half-hour. It is not known
// if none was metered.
func meteredKWh(s *control.ReportSlot, e flex.WattHours) string {
	if s.NumMetered == 0 {
		return "-"
	}

	return kwh(e)
}
