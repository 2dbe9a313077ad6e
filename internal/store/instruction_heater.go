package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"flexd/internal/flex"
)

// ScopeHeater is a tank or a heat pump under control of a scope, with what an instruction needs to know of it.
type ScopeHeater struct {
	Callable
	Plan  TankPlan // what of it says what the heater draws
	Taken bool     // its client has accepted that
}

// Draws are what the plan is expected to draw, as steps.
func (h *ScopeHeater) Draws() []flex.Step { return h.Plan.DrawSteps() }

// DrawSteps are what the plan is expected to draw, as steps: of a tank with what its thermostat leaves of it, where that is known.
func (p *TankPlan) DrawSteps() []flex.Step {
	if len(p.Expected) > 0 && !p.Freed {
		return p.Expected
	}

	var steps []flex.Step
	for _, d := range p.Draws() {
		steps = append(steps, flex.Step{
			Span:  d.Span,
			Limit: d.Power,
		})
	}

	return steps
}

// ScopeHeaters returns the tanks and heat pumps under control of a scope that have a plan, by their ids, for a call in a span; it was
// measured lately what one draws or how warm it keeps what it heats, if that was since an instant. One whose plan cannot be read is left
// out, and logged.
func (tx *Tx) ScopeHeaters(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	since time.Time,
) ([]ScopeHeater, error) {
	if tx.none(hasTanks) {
		return nil, nil
	}

	where, args, err := tx.scopeWhere(ctx, scope, tx.occupiesArgs(span))
	if err != nil {
		return nil, err
	}

	const day = int64(24 * time.Hour / time.Microsecond)
	args = append(
		args,
		micros(since),
		since.UnixMicro()/day,
		tx.now.UnixMicro()/day,
		labelNumbers[flex.HeatPower],
		labelNumbers[flex.RoomTemperature],
		labelNumbers[flex.TankTemperature],
	)

	n := len(args)

	var left leftOut
	var found []ScopeHeater
	err = eachRow(ctx, tx.conn, func(s scanner) error {
		h, err := scanScopeHeater(s)
		if errors.Is(err, ErrUnreadable) {
			left.add(h.Plan.AssetID, err)
			return nil
		}

		found = append(found, h)

		return err
	}, fmt.Sprintf(`SELECT p.asset_id, p.power_w, p.from_at, p.steps, p.stored_at, p.heat, s.site_id, p.made_at, p.planned_at, p.expected,
			(SELECT count(DISTINCT k.instruction_id) FROM called_asset k WHERE k.org_id = $1 AND k.site_id = s.site_id AND NOT k.dispatched),
			EXISTS (SELECT 1 FROM called_asset c JOIN instruction i ON i.id = c.instruction_id WHERE c.asset_id = s.id AND `+occupies+`),
			EXISTS (SELECT 1 FROM reading r WHERE r.asset_id = s.id AND r.at >= $%d AND (r.at / 86400000000) IN ($%d, $%d)
				AND r.label >= 10 AND r.label IN ($%d, $%d, $%d)),
			EXISTS (SELECT 1 FROM outbox o WHERE o.org_id = $1 AND o.subject = s.id AND o.accepted >= p.generation)
		FROM (SELECT a.id, a.site_id, a.org_id FROM asset a WHERE a.org_id = $1 AND a.type IN (`+heatTypes+`) AND `+controlled+`) s
			JOIN tank_plan p ON p.asset_id = s.id
		WHERE p.org_id = $1 AND NOT p.freed`+where+` ORDER BY s.id`, n-5, n-4, n-3, n-2, n-1, n), args...)

	left.log(ctx, tx.conn)

	return found, err
}

// scanScopeHeater reads a heater; of a plan that cannot be read, only whose it is.
func scanScopeHeater(s scanner) (ScopeHeater, error) {
	var h ScopeHeater
	var made, planned time.Time
	var expected string
	var err error
	h.Plan, err = scanHeatDraws(
		s,
		&h.SiteID,
		instant{&made},
		instant{&planned},
		&expected,
		&h.Calls,
		&h.Called,
		&h.Metered,
		&h.Taken,
	)

	h.Plan.MadeAt, h.Plan.PlannedAt = made, planned
	if err != nil || expected == "" {
		return h, err
	}

	h.Plan.Expected, err = readSteps(h.Plan.StoredAt, expected)

	return h, err
}

// HeaterCall is what an instruction has a heater keep to.
type HeaterCall struct {
	Called
	Window flex.Span // of the instruction
	Up     bool
}

// HeaterCalls returns what active instructions have a heater keep to, and those that ended lately.
func (tx *Tx) HeaterCalls(
	ctx context.Context,
	id flex.AssetID,
) ([]HeaterCall, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (HeaterCall, error) {
			var h HeaterCall
			var err error
			h.Called, err = scanCalled(
				s,
				instant{&h.Window.From},
				instant{&h.Window.To},
				&h.Up,
			)

			return h, err
		},
		`SELECT `+calledColumns+`, i.from_at, i.to_at, i.change_w > 0 FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
		WHERE c.asset_id = $1 AND c.org_id = $2 AND c.heater AND c.released_at IS NULL AND i.stopped_at IS NULL AND i.to_at > $3 ORDER BY i.id`,
		id.Bytes(),
		tx.org.Bytes(),
		micros(tx.now.Add(-closedFor)),
	)
}

// FreedHeaters returns which of some assets are tanks or heat pumps that an instruction let go in this transaction, in the order of
// their ids.
func (tx *Tx) FreedHeaters(
	ctx context.Context,
	assets []flex.AssetID,
) ([]Called, error) {
	return tx.freed(ctx, assets, `c.heater`)
}

// ExpectOfHeater notes what a heater's plan is expected to draw with the instructions that call it.
func (tx *Tx) ExpectOfHeater(
	ctx context.Context,
	p *TankPlan,
) error {
	return tx.expectOf(ctx, p.AssetID, false, p.DrawSteps())
}
