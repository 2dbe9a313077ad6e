package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flexd/internal/app"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// haltPart has the flags that select what is halted: everything, if none is set.
type haltPart struct {
	Org      string `help:"Only of this organisation." placeholder:"NAME"`
	Endpoint string `help:"Only of this endpoint of the organisation: schedule or dispatch." placeholder:"NAME"`
	Model    string `help:"Only of assets of this model, in every organisation." placeholder:"MODEL"`
	Firmware string `help:"Only of assets with this firmware version, in every organisation and of every model." placeholder:"VERSION"`
	GSPGroup string `name:"gsp-group" help:"Only of sites of this GSP group, in every organisation: _A to _P." placeholder:"GROUP"`
}

// scope returns the selected scope.
func (o *haltPart) scope(
	ctx context.Context,
	h *app.App,
) (delivery.HaltScope, error) {
	count := 0
	for _, value := range []string{o.Org, o.Model, o.Firmware, o.GSPGroup} {
		if value != "" {
			count++
		}
	}
	if count > 1 || o.Endpoint != "" && o.Org == "" {
		return delivery.HaltScope{}, flex.Fail(
			flex.Invalid,
			"give one of --org, --model, --firmware and --gsp-group, and --endpoint with --org: two halts may stand at once",
		)
	}

	switch {
	case o.Model != "":
		return records.ParseHaltScope(string(records.HaltModel) + "/" + o.Model)
	case o.Firmware != "":
		return records.ParseHaltScope(string(records.HaltFirmware) + "/" + o.Firmware)
	case o.GSPGroup != "":
		return delivery.HaltScope{
			Kind: records.HaltRegion,
			Name: o.GSPGroup,
		}, nil
	case o.Org == "":
		return delivery.HaltScope{}, nil
	}

	var s delivery.HaltScope
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		org, err := orgNamed(ctx, all, o.Org)
		s = delivery.HaltScope{Kind: records.HaltOrg, Org: org.ID}
		return err
	})

	if o.Endpoint != "" {
		s.Kind, s.Name = records.HaltEndpoint, o.Endpoint
	}

	return s, err
}

// halt is `flexd halt`.
type halt struct {
	cellFlags
	haltPart
	Reason  string `arg:"" optional:"" help:"The reason, for other operators."`
	Two     bool   `help:"Two people end it: one asks for its end, another ends it within an hour."`
	Preview bool   `help:"Show what it would stop, and stop nothing."`
	List    bool   `help:"List the halts that there are, and stop nothing."`
	JSON    bool   `name:"json" help:"With --preview or --list: as JSON."`
}

// Run stops pushes.
func (o *halt) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	if o.List {
		return o.list(ctx, c, h)
	}

	scope, err := o.scope(ctx, h)
	if err != nil {
		return err
	}

	stops, err := h.Push.PreviewHalt(ctx, scope)
	if err != nil {
		return err
	}

	if o.Preview && o.JSON {
		return c.json(stops)
	}

	if o.Preview {
		_, err := fmt.Fprintf(
			c.out,
			"It would stop what is sent to %s at %s; waiting now: %d.\n",
			countOf(stops.Assets, "asset"),
			countOf(stops.Sites, "site"),
			stops.Waiting,
		)

		return err
	}

	if err := o.stop(ctx, h, scope); err != nil {
		return err
	}

	message := "No push leaves until flexd resume."
	if subjectOf(scope) != "" {
		message = fmt.Sprintf(
			"Nothing is sent to %s at %s until flexd resume with the same flags.",
			countOf(stops.Assets, "asset"),
			countOf(stops.Sites, "site"),
		)
	}

	_, err = fmt.Fprintln(
		c.out,
		message,
		"Chargers go on with the schedules that they have.",
	)

	o.warnOfCells(c, scope)

	return err
}

// warnOfCells says which cells are not halted, if a halt concerns more than one organisation:
// a halt is stored in one database.
func (o *halt) warnOfCells(c console, scope delivery.HaltScope) {
	if len(o.Cells) == 0 || !scope.Org.IsZero() {
		return
	}

	// An operator who halts one cell after the other, by --database, may still name all cells.
	// Then home is the one that is not halted.
	others := slices.Sorted(maps.Keys(o.Cells))
	for i, name := range others {
		if o.Cells[name] == o.Database {
			others[i] = homeCell
		}
	}

	fmt.Fprintf(
		c.err,
		"warning: this is of the database of --database alone, and pushes go on in the cells %s: halt each with --database URL.\n",
		strings.Join(others, ", "),
	)
}

// stop halts the pushes in the scope.
func (o *halt) stop(
	ctx context.Context,
	h *app.App,
	scope delivery.HaltScope,
) error {
	act := flex.AuditEntry{
		Who:     commandLine,
		Act:     "halt pushes",
		Org:     scope.Org,
		Subject: subjectOf(scope),
		Detail:  o.Reason,
	}

	return h.Access.Act(ctx, act, func() error {
		return h.Push.Halt(ctx, delivery.HaltOrder{
			Scope:    scope,
			Operator: commandLine,
			Reason:   o.Reason,
			Two:      o.Two,
		})
	})
}

// subjectOf is the subject of the audit entry: the scope's name, or "" for everything.
func subjectOf(scope delivery.HaltScope) string {
	if scope.Kind == records.HaltAll {
		return ""
	}
	return scope.String()
}

// list prints the halts that there are.
func (o *halt) list(ctx context.Context, c console, h *app.App) error {
	s, err := h.Push.Safety(ctx)
	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(s)
	}

	lines := []string{}
	if s.Halted != nil {
		lines = append(
			lines,
			fmt.Sprintf(
				"everything, by %s since %s: %s",
				s.Halted.Who,
				s.Halted.At.Format(time.RFC3339),
				s.Halted.Reason,
			),
		)
	}

	for _, p := range s.Parts {
		lines = append(
			lines,
			fmt.Sprintf(
				"%s, by %s since %s: %s (%s, pushes waiting: %d)",
				p.Name,
				p.Who,
				p.At.Format(time.RFC3339),
				p.Reason,
				countOf(p.Assets, "asset"),
				p.Waiting,
			),
		)
	}

	if len(lines) == 0 {
		lines = append(lines, "Nothing is halted.")
	}

	_, err = fmt.Fprintln(c.out, strings.Join(lines, "\n"))

	return err
}

// resume is `flexd resume`.
type resume struct {
	store
	form
	haltPart
	Alone bool `help:"End a halt that two people end without the second. The audit log says so."`
}

// Run ends a halt.
func (o *resume) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	scope, err := o.scope(ctx, h)
	if err != nil {
		return err
	}

	isOver := true
	act := flex.AuditEntry{
		Who:     commandLine,
		Act:     "resume pushes",
		Org:     scope.Org,
		Subject: subjectOf(scope),
	}

	err = h.Access.ActWithDetail(ctx, act, func() (string, error) {
		if o.Alone {
			return "alone", h.Push.Resume(ctx, scope)
		}

		var err error
		isOver, err = h.Push.ResumeBy(ctx, scope, commandLine)
		return "", err
	})
	if err != nil {
		return o.hint(ctx, h, scope, err)
	}

	message := "Pushes leave again: of each asset the newest schedule."
	if !isOver {
		message = "The end of the halt is asked for. Somebody else ends it, within an hour: in the console, or as another user here."
	}

	return o.print(
		c,
		fields{"scope": subjectOf(scope), "ended": isOver},
		"%s\n",
		message,
	)
}

// hint lists the existing halts, for a user who tries to end one that does not exist.
func (o *resume) hint(
	ctx context.Context,
	h *app.App,
	scope delivery.HaltScope,
	failed error,
) error {
	s, err := h.Push.Safety(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}

	partsAlone := s.Halted == nil && len(s.Parts) > 0
	if scope.Kind != records.HaltAll || !partsAlone {
		return failed
	}

	return fmt.Errorf(
		"%w, but for %s: name it, as flexd halt --list shows them",
		failed,
		s.Parts[0].Name,
	)
}
