package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// dispatch is `flexd dispatch`.
type dispatch struct {
	Send dispatchSend `cmd:"" help:"Request a power from batteries for a time."`
	List dispatchList `cmd:"" help:"Show an organisation's dispatches, what was reported, and whether each battery went back to its plan."`
}

// dispatchSend is `flexd dispatch send`.
type dispatchSend struct {
	store
	form
	Name   string        `arg:"" help:"Name of the organisation."`
	Assets []string      `arg:"" name:"asset" help:"Ids of its batteries, or their external ids."`
	KW     float64       `name:"kw" help:"Power of each in kW: positive charges, negative discharges." required:"" placeholder:"KW"`
	From   time.Time     `help:"When it begins, as in 2026-01-15T17:00:00Z." required:""`
	For    time.Duration `help:"How long it lasts." default:"30m"`
	Market string        `help:"The event's market_id: ${enum}." enum:"wholesale,cm,dno,dfs,lcm,sffr,other" default:"dno"`
	DryRun bool          `name:"dry-run" help:"Say what the dispatch would do, and send nothing."`
}

// Run queues the dispatch, which a running `flexd serve` sends. With --dry-run it only says
// what it would do.
func (o *dispatchSend) Run(
	ctx context.Context,
	c console,
) error {
	h, org, err := openFor(
		ctx,
		o.store,
		o.Name,
	)
	if err != nil {
		return err
	}

	defer h.Close()
	order := records.Dispatch{
		Market: o.Market,
		Span: flex.Span{
			From: o.From.UTC(),
			To:   o.From.Add(o.For).UTC(),
		},
	}

	ids, err := assetsNamed(
		ctx,
		h,
		org.ID,
		o.Assets,
	)
	if err != nil {
		return err
	}

	for _, id := range ids {
		order.Assets = append(order.Assets, records.DispatchedAsset{
			ID:    id,
			Power: flex.FromKW(o.KW),
		})
	}

	if o.DryRun {
		err = o.preview(
			ctx,
			c,
			h,
			org.ID,
			order,
		)
	} else {
		err = o.queue(
			ctx,
			c,
			h,
			org.ID,
			order,
		)
	}

	if err != nil {
		return err
	}

	return warnWithoutEndpoint(
		ctx,
		c,
		h,
		org.ID,
	)
}

// queue queues a dispatch and prints the queued messages.
func (o *dispatchSend) queue(
	ctx context.Context,
	c console,
	h *app.App,
	org flex.OrgID,
	order records.Dispatch,
) error {
	act := flex.AuditEntry{
		Who: commandLine,
		Act: "send dispatch",
		Org: org,
		Detail: fmt.Sprintf(
			"%g kW of %s",
			o.KW,
			countOf(len(order.Assets), "asset"),
		),
	}

	var queued []records.Dispatch
	err := h.Access.Act(ctx, act, func() error {
		var err error
		queued, err = h.Push.Dispatch(
			ctx,
			org,
			order,
		)
		return err
	})
	if err != nil {
		return err
	}

	// It is queued whatever fails now: who takes it for failed would send it twice.
	report, err := reportQueued(ctx, h, org, queued)
	if err != nil {
		report = nil
		fmt.Fprintf(
			c.err,
			"warning: the dispatch is queued, but what is expected of it could not be read: %v\n",
			err,
		)
	}

	return o.printQueued(c, queued, report)
}

// reportQueued returns the report of a dispatch that was just queued, with its expected
// effect; nil if it names no battery.
func reportQueued(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
	queued []records.Dispatch,
) (*control.InstructionReport, error) {
	if len(queued) == 0 || queued[0].Instruction.IsZero() {
		return nil, nil
	}

	return h.Control.ReportInstruction(
		ctx,
		org,
		queued[0].Instruction, // all are of one
	)
}

// preview prints the effect of a dispatch, like the preview of an instruction.
func (o *dispatchSend) preview(
	ctx context.Context,
	c console,
	h *app.App,
	org flex.OrgID,
	order records.Dispatch,
) error {
	var p *control.Preview
	err := h.Push.PreviewDispatch(ctx, org, order, func(tx *records.Tx) error {
		var err error
		p, err = control.PreviewDispatch(
			ctx,
			tx,
			&order,
		)
		return err
	})
	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(contract.InstructionPreview(p))
	}

	return printPreview(c, p)
}

// printQueued prints the dispatches that wait to be sent.
func (o *dispatchSend) printQueued(
	c console,
	queued []records.Dispatch,
	report *control.InstructionReport,
) error {
	events, message := []fields{}, ""
	short, shortText := shortOf(report)

	for _, d := range queued {
		assets := []flex.AssetID{}
		for _, a := range d.Assets {
			assets = append(assets, a.ID)
		}

		event := fields{"event_id": d.ID, "asset_ids": assets}
		if !d.Instruction.IsZero() {
			event["instruction_id"] = d.Instruction
			if report != nil {
				event["short_kwh"] = short.KWh()
			}
		}

		events = append(events, event)
		message += fmt.Sprintf(
			"event %s for %s is queued\n",
			d.ID,
			countOf(len(d.Assets), "asset"),
		)
	}

	message += shortText
	if len(queued) > 0 && !queued[0].Instruction.IsZero() {
		message += fmt.Sprintf(
			"instruction %s: see flexd instruct report, or end it with flexd instruct stop\n",
			queued[0].Instruction,
		)
	}

	return o.print(
		c,
		events,
		"%s",
		message,
	)
}

// shortOf returns how much of a dispatch its batteries cannot follow, because they store too
// little above their reserve or have no room, and in which half-hours.
func shortOf(report *control.InstructionReport) (flex.WattHours, string) {
	if report == nil {
		return 0, ""
	}

	sum, message := flex.WattHours(0), ""
	for i := range report.Slots {
		s := &report.Slots[i]
		short := report.Short(s)
		if short == 0 {
			continue
		}

		sum += short
		message += fmt.Sprintf(
			"%s to %s: %s kWh are short, by what the batteries hold and have room for\n",
			s.From.Format(time.RFC3339),
			s.To.Format(time.RFC3339),
			kwh(short),
		)
	}

	return sum, message
}

// warnWithoutEndpoint warns that a queued dispatch cannot be sent, as there is no endpoint yet.
func warnWithoutEndpoint(
	ctx context.Context,
	c console,
	h *app.App,
	org flex.OrgID,
) error {
	var e flex.Endpoint

	err := h.DB.Read(ctx, org, func(tx *records.Tx) error {
		var err error
		e, err = tx.Endpoint(ctx, flex.DispatchEndpoint)
		return err
	})
	if flex.KindOf(err) == flex.NotFound || err == nil && !e.Enabled {
		fmt.Fprintln(
			c.err,
			"warning: no endpoint for dispatches is set and enabled, so nothing is sent until one is, and nothing at all once the time is over: flexd endpoint set",
		)

		return nil
	}

	return err
}

// countOf is a number of things, as in "1 asset" and "2 assets".
func countOf(
	n int,
	thing string,
) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf(
		"%d %ss",
		n,
		thing,
	)
}

// dispatchList is `flexd dispatch list`.
type dispatchList struct {
	store
	Name  string        `arg:"" help:"Name of the organisation."`
	Limit dispatchLimit `help:"How many, the newest first." default:"20"`
	JSON  bool          `name:"json" help:"Print JSON instead of a table."`
}

// dispatchRow is a battery's part in a dispatch as it is printed.
type dispatchRow struct {
	Event    flex.EventID        `json:"event_id"`
	Asset    flex.AssetID        `json:"asset_id"`
	Market   string              `json:"market_id"`
	From     time.Time           `json:"from_time"`
	To       time.Time           `json:"to_time"`
	KW       float64             `json:"level_kw"`
	State    string              `json:"delivery"`
	Callback flex.CallbackStatus `json:"callback,omitempty"`
	Release  string              `json:"hand_back"`
	// since when a newer dispatch has its place; zero if none has
	Replaced time.Time `json:"replaced_from,omitzero"`
}

// delivery is the state of its push, and that a newer one replaced it.
func (r *dispatchRow) delivery() string {
	if r.Replaced.IsZero() {
		return r.State
	}
	if !r.Replaced.After(r.From) {
		return r.State + ", replaced"
	}

	return r.State + ", replaced from " + r.Replaced.Format(time.RFC3339)
}

func dispatchRows(ds []delivery.Dispatched) []dispatchRow {
	rows := []dispatchRow{}
	for _, d := range ds {
		for _, a := range d.Assets {
			rows = append(rows, dispatchRow{
				d.ID,
				a.ID,
				d.Market,
				d.From,
				d.To,
				a.Power.KW(),
				d.State,
				a.Callback,
				string(a.Release),
				a.ReplacedFrom(),
			})
		}
	}

	return rows
}

// Run prints the dispatches, a line for each battery.
func (o *dispatchList) Run(
	ctx context.Context,
	c console,
) error {
	h, org, err := openFor(
		ctx,
		o.store,
		o.Name,
	)
	if err != nil {
		return err
	}

	defer h.Close()

	ds, err := h.Push.Dispatches(ctx, org.ID, int(o.Limit))
	if err != nil {
		return err
	}

	lines := dispatchRows(ds)
	if o.JSON {
		return c.json(lines)
	}

	w := tabwriter.NewWriter(
		c.out,
		0,
		0,
		2,
		' ',
		0,
	)
	fmt.Fprintln(
		w,
		"EVENT\tBATTERY\tMARKET\tFROM\tTO\tKW\tDELIVERY\tREPORTED\tHANDED BACK",
	)

	for _, l := range lines {
		fmt.Fprintf(
			w,
			"%s\t%s\t%s\t%s\t%s\t%g\t%s\t%s\t%s\n",
			l.Event,
			l.Asset,
			l.Market,
			l.From.Format(time.RFC3339),
			l.To.Format(time.RFC3339),
			l.KW,
			l.delivery(),
			l.Callback,
			l.Release,
		)
	}

	return w.Flush()
}
