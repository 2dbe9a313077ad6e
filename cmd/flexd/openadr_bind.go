package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"flexd/internal/adr"
	"flexd/internal/app"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

type openADRList struct {
	ofOrg
	JSON bool `help:"Print as JSON." name:"json"`
}

// programRow is a program as it is printed.
type programRow struct {
	ID      string    `json:"program_id"`
	Name    string    `json:"program_name"`
	Scope   string    `json:"bound_to,omitempty"`
	Kind    string    `json:"kind,omitempty"`
	Service string    `json:"service,omitempty"`
	Price   float64   `json:"price_gbp_per_mwh,omitempty"`
	Simple  []float64 `json:"simple_kw,omitempty"`
	Who     string    `json:"bound_by,omitempty"`
	At      time.Time `json:"bound_at,omitzero"`
}

func (r programRow) cells() []any {
	pays := ""
	if r.Price != 0 {
		pays = fmt.Sprint(r.Price)
	}

	return []any{
		r.ID,
		r.Name,
		r.Scope,
		r.Kind,
		r.Service,
		pays,
		strings.Trim(fmt.Sprint(r.Simple), "[]"),
		r.Who,
		r.At,
	}
}

// Run lists the programs.
func (o *openADRList) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	found, err := h.ADR.Programs(ctx, org.ID)
	if err != nil {
		return err
	}

	rows := []programRow{}
	for i := range found {
		rows = append(rows, programRowOf(&found[i]))
	}

	return list(
		c,
		o.JSON,
		rows,
		"PROGRAM\tNAME\tBOUND TO\tAS\tSERVICE\tPAYS\tSIMPLE KW\tBY\tSINCE",
		programRow.cells,
	)
}

func programRowOf(p *adr.BoundProgram) programRow {
	row := programRow{ID: p.ID.String(), Name: p.Name}
	b := p.Binding
	if b == nil {
		return row
	}

	row.Scope, row.Service = scopeText(b.Scope), b.Service
	row.Price = b.Price.GBPPerMWh()
	row.Kind = string(b.Kind)
	row.Who, row.At = b.Who, b.MadeAt
	for _, w := range b.Simple {
		row.Simple = append(row.Simple, w.KW())
	}

	return row
}

// scopeText names the part of a fleet that a scope selects.
func scopeText(s flex.Scope) string {
	parts := []string{}
	if s.Group != "" {
		parts = append(parts, "group "+s.Group)
	}
	if s.GSPGroup != "" {
		parts = append(parts, "GSP group "+s.GSPGroup)
	}
	if len(parts) == 0 {
		return "all"
	}

	return strings.Join(parts, ", ")
}

type openADRBind struct {
	ofOrg
	form
	Program  flex.ADRObjectID `arg:"" help:"The program's id."`
	Group    string           `help:"Only sites of this constraint group." placeholder:"NAME"`
	GSPGroup string           `name:"gsp-group" help:"Only sites of this GSP group, such as _C." placeholder:"GROUP"`
	Kind     string           `help:"What the program's events become: instruction; limit (of what the group draws or exports); or import_limit (only of what it draws)." enum:"instruction,limit,import_limit" default:"instruction"`
	Service  string           `help:"What its instructions are for: ${enum}." enum:"wholesale,cm,dno,dfs,lcm,sffr,other" default:"other"`
	Price    float64          `help:"What its instructions pay, in £/MWh of what they ask for." placeholder:"GBP"`
	DryRun   bool             `name:"dry-run" help:"Say what it would do, and change nothing."`
	SimpleKW []float64        `name:"simple-kw" help:"The change in kW for the levels 1, 2 and so on of SIMPLE events; negative to draw less." placeholder:"KW"`
}

// Run binds the program.
func (o *openADRBind) Run(ctx context.Context, c console) error {
	b := flex.ADRBinding{
		Program: o.Program,
		Scope:   flex.Scope{Group: o.Group, GSPGroup: o.GSPGroup},
		Service: o.Service,
		Price:   flex.FromGBPPerMWh(o.Price),
		Kind:    flex.ADRBindingKind(o.Kind),
		Who:     commandLine,
	}

	for _, kw := range o.SimpleKW {
		b.Simple = append(b.Simple, flex.FromKW(kw))
	}

	change, err := o.changeBinding(
		ctx,
		"bind openadr program",
		o.Program,
		adr.Detail(&b),
		o.DryRun,
		func(h *app.App, org flex.OrgID) (adr.Bound, error) {
			return h.ADR.Bind(ctx, org, &b, !o.DryRun)
		},
	)
	if err != nil {
		return err
	}

	return o.printBinding(
		c,
		&change,
		o.DryRun,
		"the events of %s are for: %s",
		o.Program,
		scopeText(b.Scope),
	)
}

// changeBinding changes a program's binding and writes that to the audit log, or only previews
// the change.
func (o ofOrg) changeBinding(
	ctx context.Context,
	act string,
	program flex.ADRObjectID,
	detail string,
	dryRun bool,
	change func(*app.App, flex.OrgID) (adr.Bound, error),
) (adr.Bound, error) {
	if dryRun {
		h, org, err := o.openOrg(ctx)
		if err != nil {
			return adr.Bound{}, err
		}

		defer h.Close()

		return change(h, org.ID)
	}

	var result adr.Bound
	err := o.actOnWith(
		ctx,
		flex.AuditEntry{
			Act:     act,
			Subject: program.String(),
			Detail:  detail,
		},
		func(h *app.App, org flex.Org) error {
			var err error
			result, err = change(h, org.ID)
			return err
		},
	)

	return result, err
}

// printBinding prints the effect of a change of a binding, made or previewed.
func (f form) printBinding(
	c console,
	change *adr.Bound,
	dryRun bool,
	text string,
	args ...any,
) error {
	text += ": %d orders asked for, %d withdrawn, %d stay\n"
	if dryRun {
		text = "dry run, nothing is changed: " + text
	}

	args = append(args, len(change.New), len(change.Withdrawn), change.NumStays)
	values := fields{
		"program_id":    change.ID,
		"num_asked":     len(change.New),
		"num_withdrawn": len(change.Withdrawn),
		"num_stays":     change.NumStays,
		"dry_run":       dryRun,
	}

	if b := change.Binding; b != nil {
		values["scope"] = scopeText(b.Scope)
	}

	return f.print(c, values, text, args...)
}

type openADRUnbind struct {
	ofOrg
	form
	Program flex.ADRObjectID `arg:"" help:"The program's id."`
	DryRun  bool             `name:"dry-run" help:"Say what it would do, and change nothing."`
}

// Run ends the binding.
func (o *openADRUnbind) Run(ctx context.Context, c console) error {
	change, err := o.changeBinding(
		ctx,
		"unbind openadr program",
		o.Program,
		"",
		o.DryRun,
		func(h *app.App, org flex.OrgID) (adr.Bound, error) {
			return h.ADR.Unbind(ctx, org, o.Program, !o.DryRun)
		},
	)
	if err != nil {
		return err
	}

	return o.printBinding(
		c,
		&change,
		o.DryRun,
		"the events of %s are for VENs alone",
		o.Program,
	)
}

type openADROrders struct {
	ofOrg
	Limit listLimit `help:"How many at most, the newest first." default:"50"`
	JSON  bool      `help:"Print as JSON." name:"json"`
}

// orderRow is an order as it is printed.
type orderRow struct {
	Event       string    `json:"event_id"`
	Interval    int       `json:"interval"`
	From        time.Time `json:"start_timestamp"`
	To          time.Time `json:"end_timestamp"`
	Change      float64   `json:"change_kw,omitempty"`
	Limit       *float64  `json:"limit_kw,omitempty"`
	Export      bool      `json:"export,omitempty"` // the limit is of what is given
	State       string    `json:"state"`
	Instruction string    `json:"instruction_id,omitempty"`
	Problem     string    `json:"problem,omitempty"`
}

func (r orderRow) cells() []any {
	power := fmt.Sprintf("%+g kW", r.Change)
	if r.Limit != nil {
		power = fmt.Sprintf("at most %g kW", *r.Limit)
	}
	if r.Export {
		power += " of export"
	}

	return []any{
		r.Event,
		r.Interval,
		r.From,
		r.To,
		power,
		r.State,
		r.Instruction,
		r.Problem,
	}
}

// Run lists the orders.
func (o *openADROrders) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	found, err := h.ADR.Orders(ctx, org.ID, int(o.Limit))
	if err != nil {
		return err
	}

	rows := []orderRow{}
	for i := range found {
		rows = append(rows, orderRowOf(&found[i]))
	}

	return list(
		c,
		o.JSON,
		rows,
		"EVENT\tINTERVAL\tFROM\tTO\tASKED\tSTATE\tINSTRUCTION\tPROBLEM",
		orderRow.cells,
	)
}

func orderRowOf(o *records.ADROrder) orderRow {
	row := orderRow{
		Event:    o.Event.String(),
		Interval: o.Interval,
		From:     o.From,
		To:       o.To,
		Change:   o.Change.KW(),
		State:    string(o.State),
		Problem:  o.Problem,
	}

	if o.Limit != nil {
		row.Limit = new(o.Limit.KW())
		row.Export = o.Direction == flex.Export
	}
	if !o.Instruction.IsZero() {
		row.Instruction = o.Instruction.String()
	}

	return row
}
