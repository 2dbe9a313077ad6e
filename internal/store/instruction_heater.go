package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
)

// ScopeHeater is a tank or a heat pump under control of a scope, with what an instruction
// needs to know of it.
type ScopeHeater struct {
	Callable
	Plan  TankPlan // what of it says what the heater draws
	Taken bool     // its client has accepted that
}

// Draws are what the plan is expected to draw, as steps.
func (h *ScopeHeater) Draws() []flex.Step { return h.Plan.DrawSteps() }

// DrawSteps are what the plan is expected to draw, as steps: of a tank with what its
// thermostat leaves of it, where that is known.
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

// scopeHeaters reads the tanks and heat pumps of the organisation $1: since when, in which two
// days, and of which labels one was measured lately are to be filled in.
const scopeHeaters = `SELECT p.asset_id, p.power_w, p.from_at, p.steps, p.stored_at, p.heat, s.site_id, p.made_at, p.planned_at, p.expected,
			` + siteCalls + `,
			EXISTS (SELECT 1 FROM reading r WHERE r.asset_id = s.id AND r.at >= $%d AND (r.at / 86400000000) IN ($%d, $%d)
				AND r.label >= 10 AND r.label IN ($%d, $%d, $%d)),
			EXISTS (SELECT 1 FROM outbox o WHERE o.org_id = $1 AND o.subject = s.id AND o.accepted >= p.generation)
		FROM (SELECT a.id, a.site_id, a.org_id FROM asset a WHERE a.org_id = $1 AND a.type IN (` + heatTypes + `) AND ` + controlled + `) s
			JOIN tank_plan p ON p.asset_id = s.id
		WHERE p.org_id = $1 AND NOT p.freed`

// ScopeHeaters returns the tanks and heat pumps under control of a scope that have a plan, by
// their ids, for a call in a span; it was measured lately what one draws or how warm it keeps
// what it heats, if that was since an instant. One whose plan cannot be read is left out, and
// logged.
func (tx *Tx) ScopeHeaters(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	since time.Time,
) ([]ScopeHeater, error) {
	if tx.knownEmpty(hasTanks) {
		return nil, nil
	}

	where, args, err := tx.scopeWhere(ctx, scope, []any{tx.org.Bytes()})
	if err != nil {
		return nil, err
	}

	called, err := tx.CalledIn(ctx, span)
	if err != nil {
		return nil, err
	}

	args = append(args, tx.measuredSince(since)...)
	n := len(args)
	query := fmt.Sprintf(
		scopeHeaters+where+` ORDER BY s.id`,
		n-5,
		n-4,
		n-3,
		n-2,
		n-1,
		n,
	)

	var left leftOut
	var found []ScopeHeater
	err = eachRow(ctx, tx.conn, func(s scanner) error {
		h, err := scanScopeHeater(s)
		if errors.Is(err, ErrUnreadable) {
			left.add(h.Plan.AssetID, err)
			return nil
		}

		h.Called = called[h.Plan.AssetID]
		found = append(found, h)

		return err
	}, query, args...)

	left.log(ctx, tx.conn)

	return found, err
}

// measuredSince are the arguments of what was measured lately of heaters.
func (tx *Tx) measuredSince(since time.Time) []any {
	const day = int64(24 * time.Hour / time.Microsecond)

	return []any{
		micros(since),
		since.UnixMicro() / day,
		tx.now.UnixMicro() / day,
		labelNumbers[flex.HeatPower],
		labelNumbers[flex.RoomTemperature],
		labelNumbers[flex.TankTemperature],
	}
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

// HeatersReturn is how long after an instruction the return of heaters is spread, and so long
// it is noted what is expected of each.
const HeatersReturn = 12 * time.Hour

// HeaterCall is what an instruction has a heater keep to.
type HeaterCall struct {
	Called
	Instruction flex.InstructionID
	Window      flex.Span // of it
	Up          bool
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
				&h.Instruction,
			)

			return h, err
		},
		`SELECT `+calledColumns+`, i.from_at, i.to_at, i.change_w > 0, i.id FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
		WHERE c.asset_id = $1 AND c.org_id = $2 AND c.heater AND c.released_at IS NULL AND i.stopped_at IS NULL AND i.to_at > $3 ORDER BY i.id`,
		id.Bytes(),
		tx.org.Bytes(),
		micros(tx.now.Add(-closedFor)),
	)
}

// MarkCalled has tanks and heat pumps that an instruction calls be planned again.
func (tx *Tx) MarkCalled(
	ctx context.Context,
	heaters []flex.AssetID,
) error {
	return tx.markTanks(ctx, heaters)
}

// MarkFreed has those of some assets be planned again that are tanks or heat pumps which an
// instruction let go in this transaction.
func (tx *Tx) MarkFreed(
	ctx context.Context,
	assets []flex.AssetID,
) error {
	for chunk := range slices.Chunk(assets, outboxChunk) {
		list, args := in([]any{tx.org.Bytes(), micros(tx.now)}, chunk)
		n, err := tx.exec(
			ctx,
			`UPDATE tank_plan SET planned_at = 0, released = TRUE WHERE org_id = $1 AND NOT freed AND asset_id IN (
				SELECT c.asset_id FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
				WHERE c.org_id = $1 AND c.heater AND `+releasedNow+` AND c.asset_id IN `+list+`)`,
			args...,
		)

		if err != nil {
			return err
		}

		if n > 0 {
			tx.Wake(WakeControl)
		}
	}

	return nil
}

// Marked returns those of some assets that are tanks or heat pumps which are to be planned
// again, by their ids.
func (tx *Tx) Marked(
	ctx context.Context,
	assets []flex.AssetID,
) ([]flex.AssetID, error) {
	var marked []flex.AssetID
	for chunk := range slices.Chunk(assets, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		found, err := rows(
			ctx,
			tx.conn,
			scalar[flex.AssetID],
			`SELECT asset_id FROM tank_plan WHERE org_id = $1 AND planned_at = 0 AND NOT freed AND asset_id IN `+list+` ORDER BY asset_id`,
			args...,
		)

		if err != nil {
			return nil, err
		}

		marked = append(marked, found...)
	}

	return marked, nil
}

// ExpectOfHeater notes what a heater's plan is expected to draw with the instructions that call it.
func (tx *Tx) ExpectOfHeater(
	ctx context.Context,
	p *TankPlan,
) error {
	return tx.expectOf(
		ctx,
		p.AssetID,
		false,
		HeatersReturn,
		p.DrawSteps(),
	)
}

// HeatersCalledWith returns the tanks and heat pumps that an instruction calls beside one, by
// their ids.
func (tx *Tx) HeatersCalledWith(
	ctx context.Context,
	id flex.InstructionID,
	but flex.AssetID,
) ([]Called, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (Called, error) { return scanCalled(s) },
		`SELECT `+calledColumns+` FROM called_asset c
		WHERE c.org_id = $1 AND c.instruction_id = $2 AND c.heater AND c.released_at IS NULL AND c.asset_id <> $3 ORDER BY c.asset_id`,
		tx.org.Bytes(),
		id.Bytes(),
		but.Bytes(),
	)
}
