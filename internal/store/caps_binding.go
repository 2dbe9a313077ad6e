package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Load is the power that a plugged-in asset draws, as far as is known. An asset that was freed
// while it was plugged in has no schedule, and draws any power from then on.
type Load struct {
	AssetID     flex.AssetID
	EventID     flex.EventID // of its schedule; zero if it has none
	Group       string       // constraint group of its site; empty for none
	Power       flex.Watts
	Assumed     bool      // nobody knows what it can draw: its power is none, or what its schedule assumes
	PluggedInAt time.Time // or freed since
	Wired       flex.Wiring
	Steps       []flex.Step // of the schedule in force; none if it has none
	Site        flex.SiteID
	// when its schedule has it done: at ready-by, or at the end of charge-now if that is
	// later; zero without a schedule
	Done time.Time
}

// Loads returns the loads of the plugged-in assets of the whole organisation, or of one
// group's sites. Power is zero where it is not known.
func (tx *Tx) Loads(ctx context.Context, group string) ([]Load, error) {
	if group != "" {
		return tx.loads(ctx, ` AND g.name = $2`, group)
	}
	return tx.loads(ctx, ``)
}

// loads reads the plugged-in assets that meet a condition, which follows that of the
// organisation.
func (tx *Tx) loads(
	ctx context.Context,
	where string,
	args ...any,
) ([]Load, error) {
	const columns = `SELECT s.asset_id, a.site_id, COALESCE(g.name, ''), s.vehicle_w, a.power_w, c.power_w, `
	const planned = `s.plugged_in_at, c.from_at, c.steps, c.ready_by, c.charge_now_to, a.phases, a.phase, c.event_id `
	const free = `s.plugged_out_at, c.from_at, CAST(NULL AS TEXT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), a.phases, a.phase, c.event_id `
	const tables = `FROM session s JOIN asset a ON a.id = s.asset_id LEFT JOIN schedule c ON c.event_id = s.event_id LEFT JOIN cap_site g ON g.site_id = s.site_id `

	all := append([]any{tx.org.Bytes()}, args...)
	open, err := rows(
		ctx,
		tx.conn,
		scanLoad,
		columns+planned+tables+`WHERE s.org_id = $1 AND s.plugged_out_at IS NULL`+where,
		all...,
	)
	if err != nil {
		return nil, err
	}

	// What was plugged in since has left in between: a process of a version before does not
	// note that, and nothing counts twice.
	const last = ` AND NOT EXISTS (SELECT 1 FROM session o WHERE o.asset_id = s.asset_id AND o.number > s.number)`

	freed, err := rows(
		ctx,
		tx.conn,
		scanLoad,
		columns+free+tables+`WHERE s.org_id = $1 AND s.freed`+last+where,
		all...,
	)

	return append(open, freed...), err
}

// scanLoad reads a row of loads.
func scanLoad(s scanner) (Load, error) {
	var car, own, planned sql.NullInt64
	var steps sql.NullString
	var from, now time.Time
	var phases int
	var l Load
	err := s.Scan(
		&l.AssetID,
		&l.Site,
		&l.Group,
		&car,
		&own,
		&planned,
		instant{&l.PluggedInAt},
		instant{&from},
		&steps,
		instant{&l.Done},
		instant{&now},
		&phases,
		&l.Wired.Phase,
		&l.EventID,
	)

	l.Wired.Phases = flex.PhasesOf(phases, new(flex.Watts(own.Int64)))
	l.Assumed = car.Int64 <= 0 && own.Int64 <= 0
	if now.After(l.Done) {
		l.Done = now
	}

	switch {
	case planned.Valid:
		l.Power = flex.Watts(planned.Int64)

	case car.Int64 > 0 && (own.Int64 <= 0 || car.Int64 < own.Int64):
		l.Power = flex.Watts(car.Int64)

	default:
		l.Power = flex.Watts(own.Int64)
	}

	if err == nil && steps.Valid {
		l.Steps, err = appendSteps(nil, from, steps.String)
	}

	return l, err
}

// CapGroup returns the name of the site's constraint group, empty if it lies in none.
func (tx *Tx) CapGroup(
	ctx context.Context,
	site flex.SiteID,
) (string, error) {
	var name string
	err := tx.row(
		ctx,
		`SELECT name FROM cap_site WHERE org_id = $1 AND site_id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
	).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}

	return name, err
}

// Binding is the headroom that caps left for a schedule, and which caps limited it.
type Binding struct {
	EventID flex.EventID
	AssetID flex.AssetID
	Limits  []flex.Step // without a gap
	Caps    []BindingCap
}

// BindingCap is a cap that limited a schedule for a time.
type BindingCap struct {
	flex.Span
	Group  string     // empty for the fleet's cap
	Power  flex.Watts // the cap
	Price  flex.Price // of headroom under it; zero if it is not known
	Starts bool       // it was the starts per minute, not the power
	// of a main fuse, the most that is reserved for the home's own load; zero if that is not known
	Home flex.Watts
	// it was the main fuse of the asset's own site, not a cap of the fleet or a group
	Site bool
	// of a main fuse, one phase of it: Power is what that carries of the asset's
	Phase bool
}

// PutBindings stores how caps limited schedules that were just committed.
func (tx *Tx) PutBindings(ctx context.Context, bs ...Binding) error {
	if len(bs) == 0 {
		return nil
	}

	args := make([]any, 0, 5*len(bs))
	for _, b := range bs {
		list := make([]capRecord, len(b.Caps))
		for i, c := range b.Caps {
			list[i] = capRecord{
				c.From.Unix(),
				c.To.Unix(),
				c.Group,
				int64(c.Power),
				int64(c.Price),
				c.Starts,
				c.Site,
				int64(c.Home),
				c.Phase,
			}
		}

		text, err := encode(list)
		if err != nil {
			return err
		}

		args = append(
			args,
			b.EventID.Bytes(),
			b.AssetID.Bytes(),
			micros(b.Limits[0].From),
			writeSteps(b.Limits),
			text,
		)
	}

	if err := tx.bulk(
		ctx,
		`INSERT INTO binding (event_id, asset_id, from_at, limits, caps)`,
		``,
		5,
		args,
	); err != nil {
		return fmt.Errorf("keep what caps did: %w", err)
	}

	// A schedule that came too late was dropped.
	_, err := tx.exec(
		ctx,
		`DELETE FROM binding WHERE event_id >= $1 AND event_id <= $2
		AND NOT EXISTS (SELECT 1 FROM schedule c WHERE c.event_id = binding.event_id)`,
		bs[0].EventID.Bytes(),
		bs[len(bs)-1].EventID.Bytes(),
	)

	return err
}

// Binding returns how caps limited a schedule of the organisation; it has no limits if they
// did not.
func (tx *Tx) Binding(
	ctx context.Context,
	id flex.EventID,
) (Binding, error) {
	var from time.Time
	var limits, text string
	var b Binding
	err := tx.row(
		ctx,
		`SELECT b.asset_id, b.from_at, b.limits, b.caps FROM binding b JOIN schedule c ON c.event_id = b.event_id
		WHERE c.org_id = $1 AND b.event_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	).Scan(
		&b.AssetID,
		instant{&from},
		&limits,
		&text,
	)

	if errors.Is(err, sql.ErrNoRows) {
		return b, nil
	}

	if err != nil {
		return b, err
	}

	b.EventID = id
	b.Limits, err = readSteps(from, limits)
	if err != nil {
		return b, err
	}

	var list []capRecord
	if err := decode("caps of a schedule", text, &list); err != nil {
		return b, err
	}

	for _, c := range list {
		b.Caps = append(b.Caps, c.bindingCap())
	}

	return b, nil
}

// bindingCap returns the cap of a record.
func (c capRecord) bindingCap() BindingCap {
	return BindingCap{
		Span: flex.Span{
			From: time.Unix(c.From, 0).UTC(),
			To:   time.Unix(c.To, 0).UTC(),
		},
		Group:  c.Group,
		Power:  flex.Watts(c.Power),
		Price:  flex.Price(c.Price),
		Starts: c.Starts,
		Site:   c.Site,
		Home:   flex.Watts(c.Home),
		Phase:  c.Phase,
	}
}

// CheckScope fails if a scope names a constraint group or a GSP group that does not exist.
func (tx *Tx) CheckScope(ctx context.Context, scope flex.Scope) error {
	if err := scope.CheckGSPGroup(); err != nil {
		return err
	}

	if scope.Group == "" {
		return nil
	}

	caps, _, err := tx.Caps(ctx)
	if err != nil {
		return err
	}

	if !slices.ContainsFunc(caps.Groups, func(c flex.CapGroup) bool {
		return c.Name == scope.Group
	}) {
		return flex.Fail(
			flex.NotFound,
			"no group is named %q: GET /caps, or flexd caps show, lists them",
			scope.Group,
		)
	}

	return nil
}
