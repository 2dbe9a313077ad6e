package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"flexd/internal/app"
	"flexd/internal/cell"
	"flexd/internal/flex"
	records "flexd/internal/store"
)

// homeCell is the name of the cell that --database names.
const homeCell = "home"

// cellCommand is `flexd cell`.
type cellCommand struct {
	List cellList `cmd:"" help:"List the organisations of all cells, and which of them are being moved."`
	Move cellMove `cmd:"" help:"Move an organisation to another cell, while all others are served; continue a move that was interrupted, or undo it by naming the cell that it came from."`
}

// cellFlags has the databases of a flexd: the one of --database, which is called home, and
// others.
type cellFlags struct {
	store
	Cells map[string]string `name:"cell" help:"A further database of this flexd, by its name; may be given more than once. The one of --database is called home. On PostgreSQL all use the keys of --key-file." env:"FLEXD_CELL" placeholder:"NAME=URL"`
}

// stores are the databases by name, home first.
func (f cellFlags) stores() ([]string, map[string]store, error) {
	names := []string{homeCell}
	by := map[string]store{homeCell: f.store}
	for _, name := range slices.Sorted(maps.Keys(f.Cells)) {
		if name == homeCell || name == "" {
			return nil, nil, flex.Fail(
				flex.Invalid,
				"--cell: the database of --database is called %s: choose another name",
				homeCell,
			)
		}

		s := f.store
		s.Database = f.Cells[name]

		for other, o := range by {
			if o.Database == s.Database {
				return nil, nil, flex.Fail(
					flex.Invalid,
					"--cell: %s and %s are one database",
					other,
					name,
				)
			}
		}

		names, by[name] = append(names, name), s
	}

	return names, by, nil
}

// openCells opens each database as it is. The apps are to be closed by the function it returns.
func (f cellFlags) openCells(
	ctx context.Context,
) (*cell.Mover, []*app.App, func(), error) {
	names, stores, err := f.stores()
	if err != nil {
		return nil, nil, nil, err
	}

	var opened []*app.App
	shut := func() {
		for _, h := range opened {
			h.Close()
		}
	}

	m := &cell.Mover{}

	for _, name := range names {
		h, err := stores[name].open(ctx)
		if err != nil {
			shut()
			return nil, nil, nil, fmt.Errorf("cell %s: %w", name, err)
		}

		opened = append(opened, h)
		m.Cells = append(m.Cells, cell.Cell{Name: name, DB: h.DB})
	}

	return m, opened, shut, nil
}

// eachOtherCell returns a function that calls its argument with the database of each cell that
// --cell names; nil if none is named.
func (f cellFlags) eachOtherCell() func(context.Context, func(*records.DB) error) error {
	if len(f.Cells) == 0 {
		return nil
	}

	return func(ctx context.Context, fn func(*records.DB) error) error {
		names, stores, err := f.stores()
		if err != nil {
			return err
		}

		for _, name := range names[1:] {
			h, err := stores[name].open(ctx)
			if err != nil {
				return fmt.Errorf("cell %s: %w", name, err)
			}

			err = fn(h.DB)
			h.Close()
			if err != nil {
				return err
			}
		}

		return nil
	}
}

// server is a flexd that is open: an App, or several in cells.
type server interface {
	Serve(ctx context.Context, l net.Listener) error
	Close() error
}

// claim claims each SQLite database for this process, until release.
func (f cellFlags) claim() (release func(), err error) {
	names, stores, err := f.stores()
	if err != nil {
		return nil, err
	}

	var claims []func() error
	release = func() {
		for _, end := range claims {
			_ = end() // a lock ends with the process at the latest
		}
	}

	for _, name := range names {
		path, embedded := stores[name].path()
		if !embedded {
			continue
		}

		end, err := lockDatabase(path)
		if err != nil {
			release()
			return nil, err
		}
		claims = append(claims, end)
	}

	return release, nil
}

// openServed opens the databases to serve: one App for the database of the settings, or one
// for each cell.
func (f cellFlags) openServed(
	ctx context.Context,
	settings app.Settings,
) (server, error) {
	if len(f.Cells) == 0 {
		h, err := app.Open(ctx, settings)
		if err != nil {
			return nil, err
		}

		if err := h.DB.KeepEnvironment(ctx); err != nil {
			h.Close()
			return nil, err
		}

		return h, nil
	}

	names, stores, err := f.stores()
	if err != nil {
		return nil, err
	}

	var cells []app.CellSettings

	for _, name := range names {
		own := app.CellSettings{Name: name, Settings: settings}
		own.Database = stores[name].Database
		own.Keys, err = stores[name].keys()
		if err != nil {
			return nil, err
		}

		if own.Keys == nil {
			return nil, flex.Fail(
				flex.Invalid,
				"there is no key to seal secrets of the cell %s with: name the key file with --key-file",
				name,
			)
		}
		cells = append(cells, own)
	}

	return app.OpenCells(ctx, cells)
}

type cellList struct {
	cellFlags
	JSON bool `help:"Print as JSON." name:"json"`
}

// cellRow is an organisation in a cell.
type cellRow struct {
	Cell  string     `json:"cell"`
	Name  string     `json:"name"`
	ID    flex.OrgID `json:"id"`
	State string     `json:"state"` // served, or how far it is on its way
	Other string     `json:"other,omitempty"`
}

func rowOfPlace(p cell.Place) cellRow {
	row := cellRow{p.Cell, p.Org.Name, p.Org.ID, string(p.State), p.Other}
	if row.State == "" {
		row.State = "served"
	}

	return row
}

// Run lists the organisations of all cells.
func (l *cellList) Run(ctx context.Context, c console) error {
	m, _, shut, err := l.openCells(ctx)
	if err != nil {
		return err
	}

	defer shut()
	rows := []cellRow{}

	for _, each := range m.Cells {
		places, err := each.Places(ctx)
		if err != nil {
			return err
		}

		for _, p := range places {
			rows = append(rows, rowOfPlace(p))
		}
	}

	return list(c, l.JSON, rows, "CELL\tNAME\tID\tSTATE\tOTHER", func(r cellRow) []any {
		return []any{r.Cell, r.Name, r.ID, r.State, r.Other}
	})
}

type cellMove struct {
	cellFlags
	Org  string `arg:"" help:"Name of the organisation."`
	To   string `help:"Name of the cell that the organisation is moved to." required:"" placeholder:"NAME"`
	JSON bool   `help:"Print as JSON." name:"json"`
}

// Run moves the organisation.
func (v *cellMove) Run(ctx context.Context, c console) error {
	m, opened, shut, err := v.openCells(ctx)
	if err != nil {
		return err
	}

	defer shut()
	m.Done = func(s cell.Step) {
		if !v.JSON {
			fmt.Fprintln(c.out, s)
		}
	}

	org, err := orgInCell(ctx, m, v.Org)
	if err != nil {
		return err
	}

	var in string
	err = opened[0].Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Act:     "move organisation",
			Org:     org,
			Subject: v.Org,
			Detail:  "to the cell " + v.To,
		},
		func() error {
			var err error
			in, err = m.Move(ctx, org, v.To)
			return err
		},
	)
	if err != nil {
		return err
	}

	if v.JSON {
		return c.json(map[string]string{"organisation": org.String(), "cell": in})
	}
	fmt.Fprintf(c.out, "%s lives in the cell %s\n", v.Org, in)

	return nil
}

// orgInCell returns the organisation of a name, in whichever cell it is.
func orgInCell(
	ctx context.Context,
	m *cell.Mover,
	name string,
) (flex.OrgID, error) {
	found := map[flex.OrgID]bool{}
	for _, each := range m.Cells {
		places, err := each.Places(ctx)
		if err != nil {
			return flex.OrgID{}, err
		}

		for _, p := range places {
			if p.Org.Name == name || p.Org.ID.String() == name {
				found[p.Org.ID] = true
			}
		}
	}

	ids := slices.Collect(maps.Keys(found))
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return flex.OrgID{}, errors.New(
			"organisations of several cells have that name: give the id; flexd cell list prints them",
		)
	default:
		return flex.OrgID{}, flex.Fail(
			flex.NotFound,
			"no cell has an organisation named %q; flexd cell list prints them",
			name,
		)
	}
}

// checkMoves finds organisations whose move to another cell was begun and not ended.
func checkMoves(ctx context.Context, h *app.App) ([]symptom, error) {
	var found []symptom
	err := h.DB.ReadAll(ctx, func(all *records.All) error {
		moves, err := all.CellMoves(ctx)
		for _, m := range moves {
			found = append(found, symptom{
				Part: "move to another cell",
				Well: all.Now().Sub(m.At) < cell.Late,
				Detail: fmt.Sprintf(
					"the organisation %s is %s since %s; the other cell is %s",
					m.Org,
					m.State,
					m.At.Format(time.RFC3339),
					m.Other,
				),
				Do: "if it was stopped, run it again: flexd cell move",
			})
		}

		return err
	})

	return found, err
}

// orgsNamed is the number of organisations in several cells that the doctor names.
const orgsNamed = 5

// checkPlaces looks for organisations that several cells serve. Each of these cells would
// plan, push and pay for them.
func (f cellFlags) checkPlaces(ctx context.Context) ([]symptom, error) {
	if len(f.Cells) == 0 {
		return nil, nil
	}

	m, _, shut, err := f.openCells(ctx)
	if err != nil {
		return nil, err
	}
	defer shut()

	in := map[flex.OrgID][]string{}

	for _, each := range m.Cells {
		places, err := each.Places(ctx)
		if err != nil {
			return nil, err
		}

		for _, p := range places {
			if p.Served() {
				in[p.Org.ID] = append(in[p.Org.ID], p.Cell)
			}
		}
	}

	return []symptom{placesSymptom(in)}, nil
}

func placesSymptom(in map[flex.OrgID][]string) symptom {
	var duplicates []string
	for org, cells := range in {
		if len(cells) > 1 {
			duplicates = append(duplicates, fmt.Sprintf("%s (%s)", org, strings.Join(cells, ", ")))
		}
	}

	if len(duplicates) == 0 {
		return symptom{
			Part:   "cells",
			Well:   true,
			Detail: flex.Count(len(in), "organisation") + ", each in one cell",
		}
	}

	slices.Sort(duplicates)
	names := strings.Join(duplicates[:min(len(duplicates), orgsNamed)], "; ")

	return symptom{
		Part:   "cells",
		Detail: flex.Count(len(duplicates), "organisation") + " in several cells: " + names,
		Do:     "each of these cells plans, pushes and pays: stop every flexd, and see docs/cells.md, Restoring a cell",
	}
}
