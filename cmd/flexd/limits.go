package main

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/app"
	"flexd/internal/control"
	"flexd/internal/flex"
)

// limitsCommand is `flexd limits`.
type limitsCommand struct {
	Import    limitsImport    `cmd:"" help:"Import a distribution operator's limits of feeders (constraint groups): CSV with the columns group, start_timestamp, end_timestamp, limit_kw and, if not all are import, direction (import, export). It replaces what was imported before of the groups and directions that it names, and binds from now on."`
	List      limitsList      `cmd:"" help:"List current and later limits of feeders, and the links that carry them."`
	Link      limitsLink      `cmd:"" help:"Set the fallback of a feeder for the case that the operator is silent for a time. Example: flexd limits link \"feeder 7\" --fallback-kw 20 --after 15m"`
	Heartbeat limitsHeartbeat `cmd:"" help:"Record a sign of life of the distribution operator, although nothing changed."`
	Heard     limitsHeartbeat `cmd:"" hidden:"" help:"The former name of limits heartbeat."`
	Unlink    limitsUnlink    `cmd:"" help:"Remove the fallback of a feeder."`
	Clear     limitsClear     `cmd:"" help:"Remove the limits of a feeder that files set, from now on. Example: flexd limits clear \"feeder 7\""`
}

type limitsImport struct {
	ofOrg
	form
	File string `arg:"" help:"The CSV file; - for standard input." placeholder:"FILE"`
}

// Run imports limits.
func (o *limitsImport) Run(ctx context.Context, c console) error {
	limits, err := readFile(o.File, control.ReadLimits)
	if err != nil {
		return err
	}

	return o.actOn(ctx, "import limits", "", func(h *app.App, org flex.Org) error {
		err := h.Control.ImportLimits(ctx, org.ID, limits)
		if err != nil {
			return err
		}

		numExpired := countExpired(limits, h.DB.Now().Add(org.ClockOffset))
		suffix := ""
		if numExpired > 0 {
			suffix = fmt.Sprintf(", and %d are over already", numExpired)
		}

		return o.print(
			c,
			fields{"num_limits": len(limits), "num_over": numExpired},
			"%d limits bind%s; the fleet is planned under them by whatever process serves it, within about half a minute.\n",
			len(limits)-numExpired,
			suffix,
		)
	})
}

// countExpired returns the number of limits that are over at an instant.
func countExpired(limits []flex.CapLimit, now time.Time) int {
	n := 0
	for i := range limits {
		if !limits[i].To.After(now) {
			n++
		}
	}

	return n
}

type limitsList struct {
	ofOrg
	JSON bool `help:"Print as JSON." name:"json"`
}

// limitRow is a limit, or the fallback of a link, as it is printed.
type limitRow struct {
	Group     string         `json:"group"`
	Direction flex.Direction `json:"direction"`
	From      time.Time      `json:"start_timestamp,omitzero"`
	To        time.Time      `json:"end_timestamp,omitzero"`
	KW        float64        `json:"limit_kw"`
	Source    string         `json:"source"`
	Silence   string         `json:"silence,omitempty"`
	HeardAt   time.Time      `json:"heard_at,omitzero"`
}

func (r limitRow) cells() []any {
	return []any{
		r.Group,
		r.Direction,
		r.From,
		r.To,
		r.KW,
		r.Source,
		r.Silence,
		r.HeardAt,
	}
}

// Run lists the limits: those that were given, and then the fallbacks, from when each binds.
func (o *limitsList) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	limits, links, err := h.Control.Limits(ctx, org.ID)
	if err != nil {
		return err
	}

	rows := []limitRow{}
	for _, l := range limits {
		rows = append(rows, limitRow{
			Group:     l.Group,
			Direction: l.Direction,
			From:      l.From,
			To:        l.To,
			KW:        l.Power.KW(),
			Source:    l.Source,
		})
	}

	for i := range links {
		rows = append(rows, fallbackRows(&links[i])...)
	}

	return list(
		c,
		o.JSON,
		rows,
		"GROUP\tDIRECTION\tFROM\tTO\tKW\tSOURCE\tAFTER\tHEARD",
		limitRow.cells,
	)
}

func fallbackRows(l *flex.CapLink) []limitRow {
	var rows []limitRow
	for _, direction := range []flex.Direction{flex.Import, flex.Export} {
		power := l.Of(direction)
		if power == nil {
			continue
		}

		rows = append(rows, limitRow{
			Group:     l.Group,
			Direction: direction,
			From:      l.LostAt,
			KW:        power.KW(),
			Source:    "fallback",
			Silence:   l.Silence.String(),
			HeardAt:   l.HeardAt,
		})
	}

	return rows
}

type limitsLink struct {
	ofOrg
	Group      string        `arg:"" help:"The constraint group."`
	FallbackKW *float64      `name:"fallback-kw" help:"The most that it draws while the operator is silent." placeholder:"KW"`
	ExportKW   *float64      `name:"export-fallback-kw" help:"The most that its batteries give to the grid then. One of the two is needed." placeholder:"KW"`
	After      time.Duration `help:"How long the operator may be silent: 10s to 168h." default:"15m"`
}

// Run sets the link.
func (o *limitsLink) Run(ctx context.Context) error {
	return o.actOn(ctx, "set limit link", o.Group, func(h *app.App, org flex.Org) error {
		l := flex.CapLink{Group: o.Group, Silence: o.After}
		if o.FallbackKW != nil {
			l.Fallback = new(flex.FromKW(*o.FallbackKW))
		}
		if o.ExportKW != nil {
			l.Export = new(flex.FromKW(*o.ExportKW))
		}

		return h.Control.SetLink(ctx, org.ID, l)
	})
}

type limitsHeartbeat struct {
	ofOrg
	Group string `arg:"" help:"The constraint group."`
}

// Run notes the sign of life.
func (o *limitsHeartbeat) Run(ctx context.Context) error {
	return o.actOn(ctx, "hear limit link", o.Group, func(h *app.App, org flex.Org) error {
		return h.Control.LinkAlive(ctx, org.ID, o.Group)
	})
}

type limitsUnlink struct {
	ofOrg
	Group string `arg:"" help:"The constraint group."`
}

// Run ends the link.
func (o *limitsUnlink) Run(ctx context.Context) error {
	return o.actOn(ctx, "end limit link", o.Group, func(h *app.App, org flex.Org) error {
		return h.Control.ClearLink(ctx, org.ID, o.Group)
	})
}

type limitsClear struct {
	ofOrg
	Group string `arg:"" help:"The constraint group."`
}

// Run takes the limits away.
func (o *limitsClear) Run(ctx context.Context) error {
	return o.actOn(ctx, "clear limits", o.Group, func(h *app.App, org flex.Org) error {
		return h.Control.ClearLimits(ctx, org.ID, o.Group)
	})
}
