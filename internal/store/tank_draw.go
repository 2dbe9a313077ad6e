package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

// HeatDraw is what a tank or a heat pump draws by its plan for a time.
type HeatDraw struct {
	flex.Span
	Power flex.Watts
}

// Draws returns what the plan is expected to draw. A tank draws its element's power in its
// windows. A heat pump draws what its rooms take, from when that was last worked out.
func (p *TankPlan) Draws() []HeatDraw {
	if p.Freed {
		return nil
	}

	if p.Room != nil {
		return p.Room.draws(p.StoredAt)
	}

	var draws []HeatDraw
	for _, s := range p.Steps {
		draws = append(draws, HeatDraw{s.Span, min(s.Limit, p.Power)})
	}

	return draws
}

// draws are what the half-hours of a heat pump's plan take, the first from an instant on.
func (p *RoomPlan) draws(from time.Time) []HeatDraw {
	var draws []HeatDraw
	for i := range p.Course {
		c := &p.Course[i]
		span := flex.Span{From: from, To: c.End()}
		if span.Empty() {
			continue
		}

		draws = append(draws, HeatDraw{
			span,
			flex.Watts(c.Energy / span.Len().Hours()),
		})
		from = span.To
	}

	return draws
}

// HeatDraws returns what the tanks and heat pumps of the organisation draw by their plans in a
// span. A plan that cannot be read is left out, and logged.
func (tx *Tx) HeatDraws(
	ctx context.Context,
	span flex.Span,
) ([]HeatDraw, error) {
	var left leftOut
	plans, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (TankPlan, error) {
			p, err := scanHeatDraws(s)
			if !errors.Is(err, ErrUnreadable) {
				return p, err
			}
			left.add(p.AssetID, err)

			return TankPlan{Freed: true}, nil
		},
		`SELECT asset_id, power_w, from_at, steps, stored_at, heat FROM tank_plan
		WHERE org_id = $1 AND to_at > $2 AND from_at < $3 AND NOT freed`,
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	)

	left.log(ctx, tx.conn)

	var draws []HeatDraw
	for i := range plans {
		for _, d := range plans[i].Draws() {
			d.Span = d.Meet(span)
			if d.Power > 0 && !d.Empty() {
				draws = append(draws, d)
			}
		}
	}

	return draws, err
}

// scanHeatDraws reads of a plan what says what it draws, and into dest what is selected beside
// that.
func scanHeatDraws(s scanner, dest ...any) (TankPlan, error) {
	var from time.Time
	var steps string
	var room sql.Null[string]

	var p TankPlan
	err := s.Scan(append([]any{
		&p.AssetID,
		&p.Power,
		instant{&from},
		&steps,
		instant{&p.StoredAt},
		&room,
	}, dest...)...)
	if err != nil {
		return p, err
	}

	p.Room, err = readRoom(room)
	if err != nil {
		return p, unreadable(err)
	}

	p.Steps, err = readSteps(from, steps)

	return p, err
}
